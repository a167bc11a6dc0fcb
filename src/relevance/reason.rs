//! The reason of a score in words: facts about the unit, then the factors that counted most.

use crate::relevance::score::{Candidate, Factors, Serves, View};
use crate::relevance::weights;

/// Words shared with the need that are shown.
const SHOWN_WORDS: usize = 4;
/// Parts of the reason after the facts; beside them stand the asker's task and a declared relation.
const SHOWN_FACTORS: usize = 2;
/// What a factor must add to the score to be named, as a part of what the strongest one adds.
const NAMED_SHARE: f32 = 0.2;
/// Characters of a role that are shown.
const SHOWN_NAME_CHARS: usize = 64;

/// "Finding by market_researcher, 3 epochs ago; shares growth, market with your hint".
pub(super) fn sentence(view: &mut View<'_>, candidate: Candidate, factors: &Factors) -> String {
    // What each adds, whether it is particular to this asker, its words.
    let mut parts = [
        (factors.lexical.contribution, false, words(view, candidate.number)),
        (factors.semantic.contribution, false, meaning(view, factors)),
        (factors.task.contribution, true, task(view, candidate)),
        tie(view, candidate.number, factors),
        (factors.role.contribution, false, role(view, candidate.number)),
        (
            factors.kind.contribution,
            false,
            (factors.kind.value > 0.75).then(|| "important by its type".into()),
        ),
        (factors.recency.contribution, false, (factors.recency.value >= 0.5).then(|| "recent".into())),
    ];
    // Stable: equals stay in this order.
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let least = parts[0].0 * NAMED_SHARE;
    let mut reason = facts(view, candidate);
    let mut room = SHOWN_FACTORS;
    for (_, particular, words) in parts.into_iter().filter(|part| part.0 >= least) {
        let Some(words) = words.filter(|_| particular || room > 0) else { continue };
        room -= usize::from(!particular);
        reason.push_str("; ");
        reason.push_str(&words);
    }
    reason
}

fn facts(view: &View<'_>, candidate: Candidate) -> String {
    let kind = candidate.kind.word();
    let (first, rest) = kind.split_at(1);
    let role = name(view.index.name(view.index.role(candidate.number)));
    let author =
        if role.is_empty() { name(view.index.name(view.index.author(candidate.number))) } else { role };
    let by = if author.is_empty() { String::new() } else { format!(" by {author}") };
    let age = match view.need.now.saturating_sub(candidate.epoch) {
        0 => "of this epoch".to_owned(),
        1 => "1 epoch ago".to_owned(),
        epochs => format!("{epochs} epochs ago"),
    };
    format!("{}{rest}{by}, {age}", first.to_uppercase())
}

/// The words that the unit shares with the need.
fn words(view: &mut View<'_>, document: u32) -> Option<String> {
    let likeness = view.likeness(document);
    // The author's role is among a unit's words; the role's own part of the reason says that better.
    if view.hint.is_none() && likeness > 0.0 && view.need.interests.is_empty() {
        return None;
    }
    let query = view.hint.as_ref().unwrap_or(&view.profile);
    let shared = query.shared(view.index, document, SHOWN_WORDS);
    (!shared.is_empty()).then(|| format!("shares {} with your {}", shared.join(", "), whose(view)))
}

/// That the unit says something like the need, if it is near enough to be seen.
fn meaning(view: &View<'_>, factors: &Factors) -> Option<String> {
    let seen = factors.semantic.value >= weights::SHOWN_NEARNESS;
    seen.then(|| format!("close in meaning to your {}", whose(view)))
}

/// What ties the unit to something closer: a declared relation, which says more, or its place in a session.
fn tie(view: &View<'_>, document: u32, factors: &Factors) -> (f32, bool, Option<String>) {
    let added = factors.relations.contribution;
    let declared = |via| view.need.web?.in_words(document, via);
    match view.closeness.tie_of(document).and_then(|tie| declared(tie.via)) {
        Some(words) => (added, true, Some(words)),
        None => (added, false, Some(format!("next to what is closer to your {}", whose(view)))),
    }
}

/// "serves task-market-sizing".
fn task(view: &View<'_>, candidate: Candidate) -> Option<String> {
    let task = name(view.need.task?);
    match candidate.serves {
        Serves::Task => Some(format!("serves {task}")),
        Serves::Dependent => Some(format!("serves a task that {task} is tied to")),
        Serves::Others => None,
    }
}

/// What the need is made of.
fn whose(view: &View<'_>) -> &'static str {
    match &view.hint {
        Some(_) => "hint",
        None if view.need.interests.is_empty() => "role",
        None => "role and interests",
    }
}

/// How the unit touches the asker's role, beyond the words named already.
fn role(view: &mut View<'_>, document: u32) -> Option<String> {
    let likeness = view.likeness(document);
    if likeness >= 0.99 {
        return Some("its author has your role".to_owned());
    }
    if likeness > 0.0 {
        return Some("its author's role is like yours".to_owned());
    }
    view.hint.as_ref()?;
    let shared = view.profile.shared(view.index, document, SHOWN_WORDS);
    (!shared.is_empty()).then(|| format!("touches {} of your role and interests", shared.join(", ")))
}

/// A name in one line of bounded length.
fn name(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN_NAME_CHARS)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use crate::relevance::{Candidate, Document, Index, Kind, Need, Serves, rank};

    fn reason(hint: Option<&str>, role: &str, interests: &[&str], kind: Kind, epoch: u64) -> String {
        let mut index = Index::new();
        for content in ["The HR market shows growth of 23%", "else", "more"] {
            let purpose = "Validate the market size";
            index.push(&Document {
                content,
                purpose,
                question: None,
                author: "researcher-01",
                role: "market_researcher",
                session: None,
            });
        }
        let interests = interests.to_vec();
        let need = Need {
            hint,
            role,
            interests,
            now: 100,
            horizon: 3,
            warm: 0,
            recency_weight: None,
            meaning: false,
            direction: None,
            task: None,
            web: None,
            context: vec![],
            threshold: 0.0,
            take: 1,
        };
        let unit = Candidate { number: 0, serves: Serves::Others, kind, epoch };
        rank(&index, &need, [unit].into_iter()).best.remove(0).reason
    }

    #[test]
    fn reads_as_a_sentence() {
        assert_eq!(
            reason(Some("About the growth of our HR market"), "strategist", &[], Kind::Finding, 97),
            "Finding by market_researcher, 3 epochs ago; shares growth, HR, market with your hint"
        );
        assert_eq!(
            reason(None, "strategist", &["growth"], Kind::HumanDirective, 99),
            "Human directive by market_researcher, 1 epoch ago; shares growth with your role and interests; important by its type"
        );
        assert_eq!(
            reason(Some("growth"), "market researcher", &[], Kind::Observation, 1),
            "Observation by market_researcher, 99 epochs ago; shares growth with your hint"
        );
        assert_eq!(
            reason(None, "market_researcher", &[], Kind::Observation, 1),
            "Observation by market_researcher, 99 epochs ago; its author has your role"
        );
        assert_eq!(
            reason(Some("unrelated"), "qa", &[], Kind::Observation, 1),
            "Observation by market_researcher, 99 epochs ago"
        );
    }
}
