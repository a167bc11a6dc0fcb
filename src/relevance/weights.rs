//! Every number that was chosen, in one place.
//!
//! What each factor is worth, by switching it off (its weight 0) on two sets: the questions about three long
//! conversations that the README tells of, and 40 needs that share almost no word with the note that answers them;
//! with meaning on.
//!
//! | | conversations: recall@10 | nDCG@10 | notes: recall@10 |
//! |---|---|---|---|
//! | all factors | .813 | .610 | .900 |
//! | without lexical | .576 | .383 | .925 |
//! | without semantic | .792 | .601 | .050 |
//! | without neighbours in the session | .706 | .567 | .900 |
//! | without role | .813 | .610 | .900 |
//! | without type | .813 | .610 | .900 |
//! | without recency | .812 | .612 | .900 |
//! | without diversity | .815 | .614 | .900 |
//!
//! Those who speak there have one role and say observations only, no question asks for what is new, and few speak: so
//! role, type, recency and diversity can only cost there, and show that they cost nothing. Nor are there tasks or
//! declared relations; what those must do, the tests of `field` say.
//!
//! The choice is flat: one step of any of them (`SEMANTIC` 0.6 or 0.8, `RELATIONS` 0.55 or 0.65, `FADE` 0.75 or 0.85,
//! `HALF_CLOSE` 0.4 or 0.6, half or half as much again of recency or damping) moves recall@10 on the conversations by
//! at most .011 and nDCG@10 by at most .005.

use crate::relevance::score::{Kind, Serves};

/// What one occurrence in a unit's content counts, in the steps in which frequencies are kept.
pub(super) const OCCURRENCE: u32 = 4;

/// What one occurrence in each field counts, in quarters of an occurrence in the content.
pub(super) struct Field {
    pub content: u32,
    pub purpose: u32,
    pub question: u32,
    pub author: u32,
    pub role: u32,
}

pub(super) const FIELD: Field = Field {
    content: OCCURRENCE, // the unit itself
    purpose: 2,          // often the same sentence over and over
    question: 3,         // what the unit answers, in the words of who asks
    author: 4,           // a need that names an agent means what that agent said
    role: 1,             // has a factor of its own
};

/// BM25: how soon further occurrences stop to count. Units are short; a word said twice is hardly more.
pub(super) const K1: f32 = 0.9;
/// BM25: how much a long unit is held against it. Mildly: long units say more.
pub(super) const B: f32 = 0.4;

/// Share of the most telling word's weight below which a word is not looked up.
pub(super) const LEAST_SHARE: f32 = 0.02;
/// What the words of a need that no unit has add to the ideal.
#[derive(Clone, Copy)]
pub(super) struct Unknown {
    /// Each, in weights of a word that one unit has.
    pub each: f32,
    /// All, in weights of the words that are known: a long need must not make them worthless.
    pub most: f32,
}

/// Where words alone count: it may be a slip.
pub(super) const UNKNOWN_WORD: Unknown = Unknown { each: 0.5, most: 1.0 };
/// Where meaning counts too: the need is asked in other words than the answer is given in.
pub(super) const UNKNOWN_WORD_BESIDE_MEANING: Unknown = Unknown { each: 2.0, most: 8.0 };
/// The least ideal, in the same measure, so that meeting only words that all units have is no match.
pub(super) const LEAST_IDEAL: f32 = 0.5;

/// What a word tells that so many of the documents have (BM25's inverse document frequency).
pub(super) fn rarity(documents: usize, of: u32) -> f32 {
    let (documents, of) = (documents as f32, of as f32);
    (1.0 + (of - documents + 0.5).max(0.0) / (documents + 0.5)).ln()
}

/// What asking a word so many times makes of its weight.
pub(super) fn repeated(count: u32) -> f32 {
    1.0 + (count as f32).ln() * 0.5
}

/// The match that counts half: a document with a fifth of a hint's weight is worth reading.
pub(super) const HALF_MATCH: f32 = 0.2;

/// A closeness of any size as a value in 0..1 that is a half at `half`.
pub(super) fn bent(close: f32, half: f32) -> f32 {
    close / (close + half)
}

/// What a cosine of 1 is worth, in matches of every word. Like meanings are seldom nearer than 0.6, and unlike ones
/// seldom as near as 0.2: a clear likeness is worth four tenths of the words.
pub(super) const SEMANTIC: f32 = 0.7;
/// What a document takes over of that by which the closest around it in its session is closer than itself. An answer
/// often has none of the words of its question; but it must not push out what is close by itself.
pub(super) const RELATIONS: f32 = 0.6;
/// What is left of that with each further step between the two.
pub(super) const FADE: f32 = 0.8;
/// What a document takes over of that by which another is closer that a declared relation ties it to. As much as for
/// neighbours: authors who declare a relation mean it.
pub(super) const TIES: f32 = 0.6;
/// What is left of that with a second relation between: what two units have in common may be little.
pub(super) const TIE_FADE: f32 = 0.5;
/// How close a unit of the asker's context (of its task, or its own) counts for what is tied to it, in closenesses
/// that count half: the context is near, but the hint says better what is needed now.
pub(super) const CONTEXT: f32 = 0.5;
/// The closeness that counts half when meaning is weighed: there is more of it than of shared words.
pub(super) const HALF_CLOSE: f32 = 0.5;

/// The least cosine that a reader is told of: few units that have nothing to do with a need are as near.
pub(super) const SHOWN_NEARNESS: f32 = 0.25;

/// What the words of each text of a document count for its meaning.
pub(super) struct Meant {
    pub content: f32,
    pub purpose: f32,
    pub question: f32,
}

pub(super) const MEANT: Meant = Meant {
    content: 1.0,   // the unit itself
    purpose: 0.25,  // often the same sentence over and over
    question: 0.75, // what the unit answers, in the words of who asks
};

/// The part of each factor in a score; they sum to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    /// Words, meaning and neighbours together.
    pub closeness: f32,
    pub role: f32,
    pub kind: f32,
    pub recency: f32,
    /// 0 where the asker names no task.
    pub task: f32,
}

/// With a hint: what the agent says it needs decides, the rest parts the equals.
const WITH_HINT: Weights = Weights { closeness: 0.87, role: 0.05, kind: 0.06, recency: 0.02, task: 0.0 };
/// Without one: who the agent is, what matters in general, what is new.
const WITHOUT_HINT: Weights = Weights { closeness: 0.35, role: 0.15, kind: 0.25, recency: 0.25, task: 0.0 };
/// The part of the task where one is named. With a hint it parts what is about equally close; without one it is the
/// clearest word on what is needed.
const TASK_WITH_HINT: f32 = 0.15;
const TASK_WITHOUT_HINT: f32 = 0.3;

impl Weights {
    /// The weights for a need. What is asked for takes its part, and the others share what is left: the task where one
    /// is named, then recency where its weight is.
    pub fn new(hint: bool, task: bool, recency: Option<f32>) -> Self {
        let (usual, of_task) =
            if hint { (WITH_HINT, TASK_WITH_HINT) } else { (WITHOUT_HINT, TASK_WITHOUT_HINT) };
        let usual = if task { Self { task: of_task, ..usual.scaled(1.0 - of_task) } } else { usual };
        let Some(recency) = recency.filter(|weight| weight.is_finite()) else { return usual };
        let recency = recency.clamp(0.0, 1.0);
        Self { recency, ..usual.scaled((1.0 - recency) / (1.0 - usual.recency)) }
    }

    fn scaled(self, by: f32) -> Self {
        let Self { closeness, role, kind, recency, task } = self;
        let [closeness, role, kind, recency, task] =
            [closeness, role, kind, recency, task].map(|weight| weight * by);
        Self { closeness, role, kind, recency, task }
    }
}

/// How much a unit serves the asker's task.
pub(super) fn task_value(serves: Serves) -> f32 {
    match serves {
        Serves::Task => 1.0,
        Serves::Dependent => 0.5, // what it rests on, or what rests on it
        Serves::Others => 0.0,
    }
}

/// Importance of a type, in the order of the specification's section on relevance.
pub(super) fn kind_value(kind: Kind) -> f32 {
    match kind {
        Kind::Decision | Kind::Contradiction | Kind::HumanDirective => 1.0, // binds or splits the team
        Kind::Constraint | Kind::Correction | Kind::Finding => 0.75,        // facts to work with
        Kind::Question | Kind::Synthesis => 0.5,                            // points to facts elsewhere
        Kind::Assumption | Kind::Intention => 0.25,                         // may turn out otherwise
        Kind::Observation => 0.0,                                           // raw material
    }
}

/// Epochs after which recency has lost half its value.
const RECENCY_HALF: f32 = 50.0;

/// Recency of a unit so many epochs old: 1 now, never 0, so that it orders units of any age.
pub(super) fn recency_value(age: u64) -> f32 {
    RECENCY_HALF / (RECENCY_HALF + age as f32)
}

/// What a need's words count for the role factor when they stand in the text, not in the author's role.
pub(super) const ROLE_IN_TEXT: f32 = 0.6;

/// How much the first better unit of the same author damps.
const DAMPING_STEP: f32 = 0.01;
/// The first so many better units damp, each by a step; further ones no more: two agents that talk all day must not
/// hide each other.
pub(super) const DAMPED_PLACES: usize = 5;
/// What is left of a score that is damped the most.
pub(super) const DAMPED_MOST: f32 = 1.0 - DAMPING_STEP * DAMPED_PLACES as f32;

/// What is left of a score when the same author has so many better ones.
pub(super) fn damping(better: u32) -> f32 {
    1.0 - DAMPING_STEP * better.min(DAMPED_PLACES as u32) as f32
}

/// What makes a unit matter to a listener, judged by the two of them alone; the parts sum to 1.
pub(super) struct Affinity {
    pub closeness: f32,
    pub role: f32,
    pub kind: f32,
}

/// A unit about something else is worth at most a quarter: a threshold of 0.3 keeps what concerns the listener.
pub(super) const AFFINITY: Affinity = Affinity { closeness: 0.65, role: 0.1, kind: 0.25 };
/// What a listener's word counts that stands in a unit's purpose alone.
pub(super) const WORD_IN_PURPOSE: f32 = 0.7;
/// The closeness from which a question concerns an interest: half of the interest's words.
pub(super) const INTERESTED: f32 = 0.5;

/// A cosine as a likeness in 0..=1. Unlike texts are seldom nearer than 0.2, like ones seldom nearer than 0.6.
pub(super) fn likeness(cosine: f32) -> f32 {
    ((cosine - 0.1) / 0.5).clamp(0.0, 1.0)
}
