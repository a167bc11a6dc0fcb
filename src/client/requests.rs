//! What can be asked that changes the Field: small builders that write payloads (section 7).

use serde::Serialize;
use serde_json::{Value, json};

use crate::protocol::{MemoryType, Mode, RelationType, Strategy};

/// REGISTER's request.
///
/// ```
/// use akashik_hub::client::Register;
///
/// let wish = Register::as_role("strategist").interested_in("market growth").requiring("MERGE");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Register {
    role: String,
    interests: Vec<String>,
    required_operations: Vec<String>,
}

impl Register {
    /// In this role.
    pub fn as_role(role: impl Into<String>) -> Self {
        Self { role: role.into(), ..Self::default() }
    }

    /// Adds an interest.
    #[must_use]
    pub fn interested_in(mut self, interest: impl Into<String>) -> Self {
        self.interests.push(interest.into());
        self
    }

    /// Adds an operation that the Field must serve, else it rejects.
    #[must_use]
    pub fn requiring(mut self, operation: impl Into<String>) -> Self {
        self.required_operations.push(operation.into());
        self
    }

    pub(super) fn payload(&self, id: &str) -> Value {
        json!({
            "id": id, "role": self.role, "interests": self.interests,
            "required_operations": self.required_operations,
        })
    }
}

impl From<&str> for Register {
    fn from(role: &str) -> Self {
        Self::as_role(role)
    }
}

impl From<String> for Register {
    fn from(role: String) -> Self {
        Self::as_role(role)
    }
}

#[derive(Debug, Clone, Default, Serialize)]
struct Intent {
    purpose: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Confidence {
    score: f64,
    reason: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumptions: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Relation {
    #[serde(rename = "type")]
    kind: RelationType,
    target_id: String,
}

/// RECORD's request: a unit in the making.
///
/// ```no_run
/// # async fn example(client: akashik_hub::client::Client) -> Result<(), akashik_hub::client::ClientError> {
/// use akashik_hub::client::Record;
///
/// let first = client
///     .record(Record::finding("It grows at 23 % a year.").because("Size the market").sure(0.7, "Three reports."))
///     .await?;
/// let second = Record::finding("It grows at 14 %.")
///     .because("Check the estimate")
///     .sure(0.8, "The books of 60 customers.")
///     .evidence("books-2026")
///     .contradicts(first.memory_unit_id);
/// for conflict in client.record(second).await?.conflicts_detected {
///     println!("opened {conflict}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    mode: Mode,
    #[serde(rename = "type")]
    kind: MemoryType,
    content: String,
    intent: Intent,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relations: Vec<Relation>,
}

impl Record {
    /// A unit of any type, committed unless [`Record::as_draft`] says otherwise.
    pub fn new(kind: MemoryType, content: impl Into<String>) -> Self {
        Self {
            mode: Mode::Committed,
            kind,
            content: content.into(),
            intent: Intent::default(),
            confidence: None,
            relations: Vec::new(),
        }
    }

    /// A finding.
    pub fn finding(content: impl Into<String>) -> Self {
        Self::new(MemoryType::Finding, content)
    }

    /// A decision.
    pub fn decision(content: impl Into<String>) -> Self {
        Self::new(MemoryType::Decision, content)
    }

    /// An observation.
    pub fn observation(content: impl Into<String>) -> Self {
        Self::new(MemoryType::Observation, content)
    }

    /// A question.
    pub fn question(content: impl Into<String>) -> Self {
        Self::new(MemoryType::Question, content)
    }

    /// Its author's own for now.
    #[must_use]
    pub fn as_draft(mut self) -> Self {
        self.mode = Mode::Draft;
        self
    }

    /// Why it is recorded. Every unit needs it.
    #[must_use]
    pub fn because(mut self, purpose: impl Into<String>) -> Self {
        self.intent.purpose = purpose.into();
        self
    }

    /// The task that it serves.
    #[must_use]
    pub fn for_task(mut self, task_id: impl Into<String>) -> Self {
        self.intent.task_id = Some(task_id.into());
        self
    }

    /// The question that it is about.
    #[must_use]
    pub fn asking(mut self, question: impl Into<String>) -> Self {
        self.intent.question = Some(question.into());
        self
    }

    /// How sure the author is, 0 to 1, and why. Every committed unit needs it.
    #[must_use]
    pub fn sure(mut self, score: f64, reason: impl Into<String>) -> Self {
        self.confidence =
            Some(Confidence { score, reason: reason.into(), evidence: Vec::new(), assumptions: Vec::new() });
        self
    }

    /// What the confidence rests on; call [`Record::sure`] first, for without it there is nothing to rest.
    #[must_use]
    pub fn evidence(mut self, item: impl Into<String>) -> Self {
        if let Some(confidence) = &mut self.confidence {
            confidence.evidence.push(item.into());
        }
        self
    }

    /// What must hold for it to stand; call [`Record::sure`] first.
    #[must_use]
    pub fn assuming(mut self, item: impl Into<String>) -> Self {
        if let Some(confidence) = &mut self.confidence {
            confidence.assumptions.push(item.into());
        }
        self
    }

    /// Relates it to another unit.
    #[must_use]
    pub fn relates(mut self, kind: RelationType, target: impl ToString) -> Self {
        self.relations.push(Relation { kind, target_id: target.to_string() });
        self
    }

    /// Takes another unit's place.
    #[must_use]
    pub fn supersedes(self, target: impl ToString) -> Self {
        self.relates(RelationType::Supersedes, target)
    }

    /// Contradicts another unit.
    #[must_use]
    pub fn contradicts(self, target: impl ToString) -> Self {
        self.relates(RelationType::Contradicts, target)
    }

    /// Supports another unit.
    #[must_use]
    pub fn supports(self, target: impl ToString) -> Self {
        self.relates(RelationType::Supports, target)
    }
}

/// COMMIT's request.
///
/// ```no_run
/// # async fn example(client: akashik_hub::client::Client) -> Result<(), akashik_hub::client::ClientError> {
/// use akashik_hub::client::{Commit, Record};
///
/// let draft = client.record(Record::decision("Go.").because("Decide on the launch").as_draft()).await?;
/// client.commit(Commit::of(draft.memory_unit_id).sure(0.9, "Slept over it.")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Commit {
    memory_unit_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relations: Option<Vec<Relation>>,
}

impl Commit {
    /// Of this draft, as it stands.
    pub fn of(unit: impl ToString) -> Self {
        Self { memory_unit_id: unit.to_string(), confidence: None, relations: None }
    }

    /// With this confidence in place of the draft's.
    #[must_use]
    pub fn sure(mut self, score: f64, reason: impl Into<String>) -> Self {
        self.confidence =
            Some(Confidence { score, reason: reason.into(), evidence: Vec::new(), assumptions: Vec::new() });
        self
    }

    /// With this relation; the ones given here take the place of the draft's.
    #[must_use]
    pub fn relates(mut self, kind: RelationType, target: impl ToString) -> Self {
        let relation = Relation { kind, target_id: target.to_string() };
        self.relations.get_or_insert_default().push(relation);
        self
    }
}

#[derive(Debug, Clone, Default, Serialize)]
struct Resolution {
    rationale: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    winner_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    synthesis: Option<String>,
}

/// MERGE's request.
///
/// ```
/// use akashik_hub::client::Merge;
/// use akashik_hub::protocol::Strategy;
///
/// let decided = Merge::by(Strategy::ConfidenceWeighted, "conflict-7").because("The better sources.");
/// let joined = Merge::joined("conflict-7", "14 to 23 %, as it is counted.").because("Both are right.");
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Merge {
    conflict_id: String,
    strategy: Strategy,
    resolution: Resolution,
}

impl Merge {
    /// Of this conflict, by a strategy. Every MERGE needs [`Merge::because`].
    pub fn by(strategy: Strategy, conflict: impl ToString) -> Self {
        Self { conflict_id: conflict.to_string(), strategy, resolution: Resolution::default() }
    }

    /// Into one unit with this text, which takes the place of both.
    pub fn joined(conflict: impl ToString, synthesis: impl Into<String>) -> Self {
        let mut merge = Self::by(Strategy::Synthesis, conflict);
        merge.resolution.synthesis = Some(synthesis.into());
        merge
    }

    /// Why.
    #[must_use]
    pub fn because(mut self, rationale: impl Into<String>) -> Self {
        self.resolution.rationale = rationale.into();
        self
    }

    /// What is to decide; a Field says in its capabilities which it serves.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// In favour of this unit: a ballot, or a human's decision on a conflict that was escalated.
    #[must_use]
    pub fn for_winner(mut self, unit: impl ToString) -> Self {
        self.resolution.winner_id = Some(unit.to_string());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Attune, Detect, Replay};
    use super::*;
    use crate::protocol::{ConflictStatus, ExtendedScope, Format, Limits, Operation, Request, TemporalLayer};

    /// The payload as a hub would read it.
    fn read(operation: Operation, payload: &impl Serialize) -> Request {
        let Value::Object(map) = serde_json::to_value(payload).unwrap() else { panic!("no object") };
        Request::read(operation, "a", map, &Limits::default(), 3).unwrap()
    }

    #[test]
    fn a_hub_understands_what_the_builders_write() {
        let unit = Record::finding("text").because("why").sure(0.8, "so").evidence("e").supersedes("mem-3");
        let Request::Record(unit) = read(Operation::Record, &unit) else { panic!() };
        assert_eq!((unit.kind, unit.mode, unit.relations.len()), (MemoryType::Finding, Mode::Committed, 1));
        assert_eq!(unit.confidence.unwrap().evidence.len(), 1);

        let attune = Attune::for_role("r", 7).hint("h").since(5).format(Format::IdsOnly).including_own();
        let Request::Attune(attune) = read(Operation::Attune, &attune) else { panic!() };
        assert_eq!((attune.scope.max_units, attune.since_epoch), (7, Some(5)));
        let attune = Attune::for_role("r", 7).max_tokens(9).interested_in("x").on_task("t").at_least(0.5);
        let attune = attune.layer(TemporalLayer::Past).recency(0.25).explained().as_of(3);
        let Request::Attune(attune) = read(Operation::Attune, &attune) else { panic!() };
        assert!(attune.explain && attune.scope.as_of_epoch == Some(3));
        assert_eq!(
            attune.scope.extended,
            ExtendedScope {
                max_tokens: Some(9),
                interests: vec!["x".into()],
                active_task_id: Some("t".into()),
                temporal_layers: vec![TemporalLayer::Past],
                relevance_threshold: Some(0.5),
                recency_weight: Some(0.25),
            }
        );

        let register = Register::as_role("r").interested_in("x").payload("a");
        let Request::Register(register) = read(Operation::Register, &register) else { panic!() };
        assert_eq!(register.interests.len(), 1);

        read(Operation::Detect, &Detect::list().status(ConflictStatus::Detected).involving("b"));
        let vote = Merge::by(Strategy::Vote, "conflict-4").for_winner("mem-2").because("w");
        let Request::Merge(vote) = read(Operation::Merge, &vote) else { panic!() };
        assert_eq!((&*vote.rationale, vote.winner_id.as_deref()), ("w", Some("mem-2")));
        let joined = Merge::joined("conflict-4", "text").because("w");
        let Request::Merge(joined) = read(Operation::Merge, &joined) else { panic!() };
        assert_eq!((joined.strategy, joined.synthesis.as_deref()), (Strategy::Synthesis, Some("text")));
        read(Operation::Replay, &Replay::unit("mem-1").as_of(4));
        let commit = Commit::of("mem-1").sure(1.0, "r").relates(RelationType::Answers, "mem-2");
        read(Operation::Commit, &commit);
    }
}
