//! How much a unit matters to somebody, judged by the two of them alone.
//!
//! For notifications: a score that depends on neither the time nor the rest of the memory, so that who is told at
//! once and who catches up later are told the same. What is costly about a unit is done once, in its [`Portrait`],
//! what is costly about a listener once, in its [`Profile`]; bringing the two together is a few hundred operations.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::relevance::embed::{Direction, Embedder};
use crate::relevance::lexical::Document;
use crate::relevance::score::Kind;
use crate::relevance::tokenize::Tokenizer;
use crate::relevance::weights::{self, MEANT};
use crate::relevance::words::{Stems, is_empty_word};

/// Most distinct words of a unit that are kept.
const WORDS_MAX: usize = 8_192;

/// A unit, as far as it matters to anybody.
#[derive(Debug)]
pub struct Portrait {
    /// The words of content and question, sorted.
    words: Vec<u64>,
    /// The words of the purpose, sorted.
    purpose: Vec<u64>,
    author_role: Vec<u64>,
    direction: Option<Box<Direction>>,
    kind: Kind,
}

/// What somebody cares about.
#[derive(Debug)]
pub struct Profile {
    role: Wanted,
    interests: Vec<Wanted>,
    meaning: bool,
}

#[derive(Debug)]
struct Wanted {
    words: Vec<u64>,
    direction: Option<Box<Direction>>,
}

/// Cuts texts into stems and keeps their hashes.
struct Reader {
    tokenizer: Tokenizer,
    stems: Stems,
}

impl Reader {
    fn new() -> Self {
        Self { tokenizer: Tokenizer::default(), stems: Stems::new() }
    }

    /// The distinct words of texts that say something, sorted.
    fn words<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Vec<u64> {
        let mut words = Vec::new();
        for text in texts {
            self.tokenizer.each(text, &mut |word| {
                if words.len() < 4 * WORDS_MAX && !is_empty_word(word.text) {
                    words.push(hash(&self.stems.stem(word.text)));
                }
            });
        }
        words.sort_unstable();
        words.dedup();
        words.truncate(WORDS_MAX);
        words
    }
}

/// The same in every process: nothing random goes in.
fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

impl Portrait {
    /// Looks at a unit; with `meaning` at more than its words.
    pub fn of(document: &Document<'_>, kind: Kind, meaning: bool) -> Self {
        let mut reader = Reader::new();
        let question = document.question.unwrap_or_default();
        let texts = [
            (document.content, MEANT.content),
            (document.purpose, MEANT.purpose),
            (question, MEANT.question),
        ];
        let direction = meaning.then(|| Embedder::default().embed(texts)).flatten().map(Box::new);
        Self {
            words: reader.words([document.content, question]),
            purpose: reader.words([document.purpose]),
            author_role: reader.words([document.role]),
            direction,
            kind,
        }
    }

    /// The share of the words wanted that the unit has.
    fn has(&self, wanted: &[u64]) -> f32 {
        if wanted.is_empty() {
            return 0.0;
        }
        let one = |word: &u64| {
            if self.words.binary_search(word).is_ok() {
                1.0
            } else if self.purpose.binary_search(word).is_ok() {
                weights::WORD_IN_PURPOSE
            } else {
                0.0
            }
        };
        wanted.iter().map(one).sum::<f32>() / wanted.len() as f32
    }
}

impl Profile {
    /// Who plays this role and cares for these things; with `meaning`, in other words too.
    pub fn new<'a>(role: &'a str, interests: impl IntoIterator<Item = &'a str>, meaning: bool) -> Self {
        let mut reader = Reader::new();
        let mut embedder = Embedder::default();
        let mut wanted = |text: &'a str| Wanted {
            words: reader.words([text]),
            direction: meaning.then(|| embedder.embed([(text, 1.0)])).flatten().map(Box::new),
        };
        Self { role: wanted(role), interests: interests.into_iter().map(wanted).collect(), meaning }
    }

    /// Whether meaning counts.
    pub fn meaning(&self) -> bool {
        self.meaning
    }

    /// How much a unit matters, 0..=1: how close it is to the role or to the closest interest, in words or meaning;
    /// the importance of its type; a little for an author in the same role.
    pub fn relevance(&self, unit: &Portrait) -> f32 {
        let wanted = std::iter::once(&self.role).chain(&self.interests);
        let close = wanted.map(|wanted| wanted.closeness(unit)).fold(0.0, f32::max);
        let shared =
            self.role.words.iter().filter(|word| unit.author_role.binary_search(word).is_ok()).count();
        let all = self.role.words.len() + unit.author_role.len() - shared;
        let role = if all == 0 { 0.0 } else { shared as f32 / all as f32 };
        let parts = &weights::AFFINITY;
        parts.closeness * close + parts.role * role + parts.kind * weights::kind_value(unit.kind)
    }

    /// Whether a unit is about one of the interests: more than half of its words, or as much in meaning.
    pub fn is_interested(&self, unit: &Portrait) -> bool {
        self.interests.iter().any(|wanted| wanted.closeness(unit) >= weights::INTERESTED)
    }
}

impl Wanted {
    /// 0..=1: either of words and meaning suffices, both are more.
    fn closeness(&self, unit: &Portrait) -> f32 {
        let words = unit.has(&self.words);
        let meaning = match (&self.direction, &unit.direction) {
            (Some(wanted), Some(found)) => {
                let cosine: f32 = wanted.iter().zip(found.iter()).map(|(a, b)| a * b).sum();
                weights::likeness(cosine)
            }
            _ => 0.0,
        };
        words + meaning - words * meaning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(content: &str, role: &str, kind: Kind, meaning: bool) -> Portrait {
        let document = Document { content, purpose: "", question: None, author: "a", role, session: None };
        Portrait::of(&document, kind, meaning)
    }

    #[test]
    fn each_part_counts_by_itself() {
        let analyst = Profile::new("market analyst", ["pricing of rivals"], false);
        let score = |content: &str, role: &str, kind| analyst.relevance(&unit(content, role, kind, false));
        let nothing = score("The build is green.", "engineer", Kind::Observation);
        assert_eq!(nothing, 0.0);
        let words = score("Rivals change their pricing weekly.", "engineer", Kind::Observation);
        let role = score("The build is green.", "market analyst", Kind::Observation);
        let kind = score("The build is green.", "engineer", Kind::Decision);
        assert!(words > kind && kind > role && role > nothing, "{words} {kind} {role}");
        let all = score("Rivals change their pricing weekly.", "market analyst", Kind::Decision);
        assert!((all - 1.0).abs() < 1e-6, "{all}");
    }

    #[test]
    fn meaning_finds_other_words() {
        let profile = |meaning| Profile::new("engineer", ["database performance"], meaning);
        let other = "Queries in Postgres became slow after the index was dropped.";
        let words = profile(false).relevance(&unit(other, "x", Kind::Observation, false));
        let meaning = profile(true).relevance(&unit(other, "x", Kind::Observation, true));
        assert!(words == 0.0 && meaning > 0.15, "{words} {meaning}");
        let unlike = unit("The cake was baked with lemon.", "x", Kind::Observation, true);
        assert!(profile(true).relevance(&unlike) < meaning / 2.0);
    }

    #[test]
    fn questions_about_an_interest() {
        let profile = Profile::new("strategist", ["market growth", "hiring"], false);
        let asks = |content: &str| profile.is_interested(&unit(content, "x", Kind::Question, false));
        assert!(asks("How fast does the market grow?") && asks("Whom do we hire?"));
        assert!(!asks("Which strategist works today?"), "a role is no interest");
        assert!(!asks("Where is the config file?"));
    }

    proptest::proptest! {
        #[test]
        fn always_a_share(content in "(?s).{0,80}", role in ".{0,20}", interest in ".{0,20}", meaning: bool) {
            let profile = Profile::new(&role, [interest.as_str()], meaning);
            let portrait = unit(&content, &role, Kind::Finding, meaning);
            let score = profile.relevance(&portrait);
            proptest::prop_assert!((0.0..=1.0).contains(&score), "{score}");
            proptest::prop_assert_eq!(score, profile.relevance(&unit(&content, &role, Kind::Finding, meaning)));
        }
    }
}
