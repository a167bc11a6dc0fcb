//! MERGE (sections 6, 7 and 12): how a conflict ends.
//!
//! A conflict that was detected takes any strategy. One under vote takes ballots, or `human_escalation` without a
//! winner, which calls the vote off. An escalated one takes a human's decision alone, `human_escalation` with a
//! winner; without enforced authority any sender is the human. A resolved one takes nothing. Whatever the steps in
//! between, one MERGE is one entry.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::super::decide::{Change, Ground};
use super::super::event::Event;
use super::super::state::{ConflictNo, Slot, World};
use super::{record, relate};
use crate::protocol::{
    Ballot, Confidence, Conflict, ConflictId, ConflictStatus, ErrorCode, Intent, MemoryType, MergeRequest,
    Merged, Mode, Refusal, Relation, RelationType, Resolution, SideEffects, Strategy, Unit, UnitId, Warning,
};

pub(in super::super) fn merge(ground: &Ground<'_>, request: &MergeRequest) -> Result<Change, Refusal> {
    let case = Case::of(ground, request)?;
    case.check_transition()?;
    let named = case.named_winner()?;
    let mut conflict = Conflict::clone(case.conflict);
    let mut events = Vec::new();
    if request.strategy == Strategy::Vote {
        case.cast(named, &mut conflict, &mut events)?;
    }
    let mut warning = None;
    let (status, side_effects) = match case.outcome(named, &conflict)? {
        Outcome::Pending => ("pending_vote", SideEffects::default()),
        Outcome::Escalated(reason) => {
            let resolution = case.resolution(None);
            let reason: Box<str> = reason.into();
            events.push(Event::Escalated {
                conflict_id: conflict.id,
                resolution: resolution.clone(),
                reason: reason.clone(),
            });
            conflict.escalate(resolution, reason);
            ("escalated", SideEffects::default())
        }
        Outcome::Winner(winner) => {
            conflict.resolve(case.resolution(Some(winner)));
            ("resolved", case.prevails(winner, &mut events))
        }
        Outcome::Joined(text) => {
            conflict.resolve(case.resolution(None));
            let side_effects;
            (side_effects, warning) = case.join(text, &mut events);
            ("resolved", side_effects)
        }
    };
    Ok(Change::new(events, &Merged { status: status.to_owned(), conflict, side_effects, warning }))
}

/// What a strategy comes to.
enum Outcome<'a> {
    /// One of the two units prevails.
    Winner(UnitId),
    /// Both give way to a unit with this text.
    Joined(&'a str),
    /// Nobody but a human can say, for this reason.
    Escalated(String),
    /// More ballots are waited for.
    Pending,
}

/// A MERGE with the conflict that it names.
struct Case<'a> {
    ground: &'a Ground<'a>,
    request: &'a MergeRequest,
    number: ConflictNo,
    conflict: &'a Conflict,
    /// The older and the newer unit.
    sides: [&'a Slot; 2],
}

impl<'a> Case<'a> {
    fn of(ground: &'a Ground<'a>, request: &'a MergeRequest) -> Result<Self, Refusal> {
        let found = found(&ground.state.world, request);
        let case = found.map(|(number, conflict, sides)| Self { ground, request, number, conflict, sides });
        case.ok_or_else(|| {
            Refusal::new(
                ErrorCode::ConflictNotFound,
                format!("There is no conflict {:?}.", request.conflict_id),
                "Name a conflict that ATTUNE or DETECT has shown you.",
            )
            .with("key", json!("conflict_id"))
        })
    }

    /// Section 6: whether the conflict takes this strategy where it stands.
    fn check_transition(&self) -> Result<(), Refusal> {
        let asks = self.request.strategy == Strategy::HumanEscalation;
        let decides = asks && self.request.winner_id.is_some();
        let Conflict { id, status, unit_a, unit_b, .. } = *self.conflict;
        let (takes, advice) = match status {
            ConflictStatus::Detected => (
                !decides,
                "A human decides what is escalated: send human_escalation without winner_id first.",
            ),
            ConflictStatus::Resolving => (
                self.request.strategy == Strategy::Vote || (asks && !decides),
                "Cast your ballot with strategy vote and resolution.winner_id, or call the vote off with \
                 human_escalation without winner_id.",
            ),
            ConflictStatus::Escalated => (
                decides,
                "Only a human's decision ends it: strategy human_escalation with resolution.winner_id.",
            ),
            ConflictStatus::Resolved => {
                (false, "A resolution is final. Record a unit that contradicts the winner if it is wrong.")
            }
        };
        if takes {
            return Ok(());
        }
        let code = ErrorCode::InvalidTransition;
        let refusal = if asks && status == ConflictStatus::Escalated {
            // What was asked for has happened before; only the decision is missing.
            let advice = format!("Name the winner, one of {unit_a}, {unit_b} (resolution.winner_id).");
            let said = format!("{id} is already escalated: {} needs a winner now.", self.request.strategy);
            Refusal::new(code, said, advice)
        } else {
            let with = if decides { " with a winner_id" } else { "" };
            let said = format!("{id} is {status}: {}{with} does not apply to it.", self.request.strategy);
            Refusal::new(code, said, advice)
        };
        Err(refusal.with("conflict_id", json!(id)).with("status", json!(status)))
    }

    fn failed(&self, key: &str, said: String, advice: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
        Refusal::new(ErrorCode::MergeFailed, said, advice)
            .with("key", json!(format!("resolution.{key}")))
            .with("conflict_id", json!(self.conflict.id))
            .with("status", json!(self.conflict.status))
    }

    /// The unit that the sender names as winner; what it names must make sense with the strategy.
    fn named_winner(&self) -> Result<Option<UnitId>, Refusal> {
        let Conflict { unit_a, unit_b, .. } = *self.conflict;
        let joins = self.request.strategy == Strategy::Synthesis;
        if !joins && self.request.synthesis.as_deref().is_some_and(|text| !text.trim().is_empty()) {
            // Dropped in silence, the text would be lost, for a resolution is final.
            let said = format!("A synthesis does not go with strategy {}.", self.request.strategy);
            return Err(self.failed("synthesis", said, "Leave it out, or send strategy synthesis."));
        }
        let Some(text) = &self.request.winner_id else { return Ok(None) };
        if joins {
            let advice = "Leave winner_id out, or choose a strategy that decides for one of the two.";
            return Err(self.failed("winner_id", "A synthesis has no winner.".to_owned(), advice));
        }
        let of_pair = |id: &UnitId| self.conflict.partner_of(*id).is_some();
        let named = text.parse::<UnitId>().ok().filter(of_pair);
        named.map(Some).ok_or_else(|| {
            let said = format!("{text:?} is none of the two units of {}.", self.conflict.id);
            self.failed("winner_id", said, format!("Send winner_id as {unit_a} or {unit_b}."))
        })
    }

    /// What the strategy comes to; `conflict` has the sender's ballot already, where there is one.
    fn outcome(&self, named: Option<UnitId>, conflict: &Conflict) -> Result<Outcome<'a>, Refusal> {
        let strategy = self.request.strategy;
        let result = match strategy {
            Strategy::LastWriteWins => self.by_epoch(),
            Strategy::ConfidenceWeighted => self.by_confidence(),
            Strategy::EvidenceCount => self.by_evidence(),
            // There are no tokens, so nobody's authority exceeds another's.
            Strategy::Authority => {
                Outcome::Escalated("Authority is not enforced here, so everybody's is the same.".to_owned())
            }
            Strategy::HumanEscalation => return Ok(self.human(named)),
            Strategy::Synthesis => return self.synthesis(),
            Strategy::Vote => return Ok(count(conflict, self.ground.policy.limits.vote_quorum)),
        };
        match (&result, named) {
            (Outcome::Winner(winner), Some(named)) if *winner != named => Err(self
                .failed(
                    "winner_id",
                    format!("By {strategy} {winner} prevails, not {named}."),
                    "Leave winner_id out to take the strategy's own result, or choose another strategy.",
                )
                .with("winner_id", json!(winner))),
            _ => Ok(result),
        }
    }

    fn by_epoch(&self) -> Outcome<'a> {
        let [a, b] = self.sides.map(|slot| slot.epoch);
        self.greater(&a, &b).unwrap_or_else(|| {
            Outcome::Escalated(format!("{} were committed in the same epoch, {a}.", self.both()))
        })
    }

    fn by_confidence(&self) -> Outcome<'a> {
        let [a, b] = self.sides.map(score);
        let missing = |slot: &Slot| Outcome::Escalated(format!("{} has no confidence.score.", slot.id));
        match (a, b) {
            (None, _) => missing(self.sides[0]),
            (_, None) => missing(self.sides[1]),
            (Some(a), Some(b)) => self.greater(&a, &b).unwrap_or_else(|| {
                Outcome::Escalated(format!("{} have the same confidence.score, {a}.", self.both()))
            }),
        }
    }

    fn by_evidence(&self) -> Outcome<'a> {
        let weigh = |slot: &Slot| (self.supports(slot), slot.evidence_items());
        let [a, b] = self.sides.map(weigh);
        self.greater(&a, &b).unwrap_or_else(|| {
            let (supports, items) = a;
            Outcome::Escalated(format!(
                "{} have as much evidence: {supports} supporting units and {items} evidence items each.",
                self.both()
            ))
        })
    }

    /// How many live units support one, itself left out.
    fn supports(&self, slot: &Slot) -> usize {
        let inbound = self.ground.state.world.inbound_of(slot.id);
        let sources = inbound.filter(|(kind, _, source)| {
            *kind == RelationType::Supports && source.status.is_live() && source.id != slot.id
        });
        sources.map(|(_, _, source)| source.id).collect::<BTreeSet<_>>().len()
    }

    /// The side with more; nothing where they are equal.
    fn greater<T: PartialOrd>(&self, a: &T, b: &T) -> Option<Outcome<'a>> {
        if a > b {
            Some(Outcome::Winner(self.conflict.unit_a))
        } else {
            (a < b).then_some(Outcome::Winner(self.conflict.unit_b))
        }
    }

    fn both(&self) -> String {
        format!("{} and {}", self.conflict.unit_a, self.conflict.unit_b)
    }

    /// What `human_escalation` comes to: with a winner the conflict was escalated before, as was checked.
    fn human(&self, named: Option<UnitId>) -> Outcome<'a> {
        let who = self.sender();
        match named {
            Some(winner) => Outcome::Winner(winner),
            None if self.conflict.status == ConflictStatus::Resolving => {
                Outcome::Escalated(format!("{who} called the vote off and asks for a human's decision."))
            }
            None => Outcome::Escalated(format!("{who} asks for a human's decision.")),
        }
    }

    fn synthesis(&self) -> Result<Outcome<'a>, Refusal> {
        match self.request.synthesis.as_deref() {
            Some(text) if !text.trim().is_empty() => Ok(Outcome::Joined(text)),
            _ => Err(self.failed(
                "synthesis",
                "resolution.synthesis is missing or empty.".to_owned(),
                "Send resolution.synthesis as the text that takes the place of both units.",
            )),
        }
    }

    /// Takes the sender's ballot.
    fn cast(
        &self,
        named: Option<UnitId>,
        conflict: &mut Conflict,
        events: &mut Vec<Event>,
    ) -> Result<(), Refusal> {
        let Some(winner_id) = named else {
            return Err(self.failed(
                "winner_id",
                "resolution.winner_id is missing: a ballot says which unit is to prevail.".to_owned(),
                format!("Send winner_id as {} or {}.", conflict.unit_a, conflict.unit_b),
            ));
        };
        let rationale = self.request.rationale.clone();
        events.push(Event::Voted { conflict_id: conflict.id, winner_id, rationale });
        conflict.cast(Ballot { agent_id: self.sender(), winner_id });
        Ok(())
    }

    /// Who sent the MERGE, in the text that the world holds already.
    fn sender(&self) -> Arc<str> {
        let Ground { state, agent, message, .. } = self.ground;
        let id = agent.map_or(&message.agent_id, |no| &state.world.agent(no).agent.id);
        Arc::clone(id)
    }

    fn resolution(&self, winner_id: Option<UnitId>) -> Resolution {
        Resolution {
            strategy: self.request.strategy,
            winner_id,
            rationale: self.request.rationale.clone(),
            resolved_by: self.sender(),
            epoch_resolved: self.ground.epoch,
        }
    }

    /// One side takes the other's place.
    fn prevails(&self, winner: UnitId, events: &mut Vec<Event>) -> SideEffects {
        let losers: Vec<_> = self.sides.iter().copied().filter(|slot| slot.id != winner).collect();
        let superseded: Vec<_> = losers.iter().map(|slot| slot.id).collect();
        events.push(Event::Merged {
            conflict_id: self.conflict.id,
            resolution: self.resolution(Some(winner)),
            superseded: superseded.clone(),
        });
        self.settle_others(&losers, winner, events);
        SideEffects {
            superseded_units: superseded,
            new_unit_id: None,
            notified_agents: self.connected_authors(),
        }
    }

    /// A new unit takes the place of both.
    fn join(&self, text: &str, events: &mut Vec<Event>) -> (SideEffects, Option<Warning>) {
        let unit = Arc::new(self.joined_unit(text));
        let (new, superseded) = (unit.id, self.sides.map(|slot| slot.id).to_vec());
        events.push(Event::Recorded { unit: Arc::clone(&unit), supersedes: superseded.clone() });
        let warning = super::unenriched(self.ground, &unit, events);
        events.push(Event::Merged {
            conflict_id: self.conflict.id,
            resolution: self.resolution(None),
            // The RECORD before says which.
            superseded: Vec::new(),
        });
        self.settle_others(&self.sides, new, events);
        // It is compared behind: whoever resolves one conflict is not asked about the next at once.
        super::detected::deferred(self.ground, &unit, events);
        let side_effects = SideEffects {
            superseded_units: superseded,
            new_unit_id: Some(new),
            notified_agents: self.connected_authors(),
        };
        (side_effects, warning)
    }

    /// The unit that a synthesis makes, by the sender.
    fn joined_unit(&self, text: &str) -> Unit {
        let elaborates = |slot: &Slot| Relation {
            kind: RelationType::Elaborates,
            target_id: slot.id.to_string().into(),
            description: None,
        };
        Unit {
            id: UnitId::new(self.ground.epoch, 0),
            mode: Mode::Committed,
            kind: MemoryType::Synthesis,
            content: text.into(),
            intent: joined_intent(&self.ground.state.world, self.request, self.conflict, self.sides),
            confidence: lower_confidence(self.sides),
            source: record::source(self.ground),
            relations: self.sides.map(elaborates).to_vec(),
        }
    }

    /// The other conflicts of units that have lost their place end in favour of the partners.
    fn settle_others(&self, losers: &[&Slot], successor: UnitId, events: &mut Vec<Event>) {
        let world = &self.ground.state.world;
        let mut settled = BTreeSet::from([self.number]);
        let why = |left: UnitId| format!("{left} was superseded by {successor}.");
        for no in losers.iter().filter_map(|slot| world.find(slot.id)) {
            relate::settle(self.ground, no, Strategy::LastWriteWins, why, &mut settled, events);
        }
    }

    /// The authors of both units who are connected now: they are told, subscribed or not.
    fn connected_authors(&self) -> Vec<Arc<str>> {
        let Ground { state, agent, connected, .. } = self.ground;
        let mut told: Vec<Arc<str>> = Vec::new();
        for author in self.sides.map(|slot| slot.author) {
            let here = state.presence.of(author).connections > 0 || (*connected && *agent == Some(author));
            let id = &state.world.agent(author).agent.id;
            if here && !told.contains(id) {
                told.push(Arc::clone(id));
            }
        }
        told
    }
}

/// Why a synthesis is made: what its originals were for, and to resolve their conflict.
fn joined_intent(world: &World, request: &MergeRequest, conflict: &Conflict, sides: [&Slot; 2]) -> Intent {
    let [a, b] = sides.map(|slot| world.task_of(slot));
    // What is contested is not archived, so both are held whole.
    let [asked, other_asked] = sides.map(|slot| slot.whole().and_then(|unit| unit.intent.question.as_ref()));
    let rationale = super::excerpt(&request.rationale, super::SAID);
    let Conflict { id, unit_a, unit_b, .. } = conflict;
    Intent {
        purpose: format!("Resolve {id} between {unit_a} and {unit_b}: {rationale}").into(),
        // Of two different ones the synthesis would claim to be about one alone.
        task_id: shared(a, b),
        question: shared(asked, other_asked),
    }
}

/// What a MERGE is going to write, as far as a world tells.
pub enum Writes<'a> {
    /// A unit with this text and intent.
    Unit(&'a str, Intent),
    /// It cannot be told yet: this world does not know the conflict.
    Unknown,
    /// No unit.
    Nothing,
}

/// The unit that a MERGE makes if it is done: what it will say, told before it is decided.
pub fn writes<'a>(world: &World, request: &'a MergeRequest) -> Writes<'a> {
    let Some(text) = request.synthesis.as_deref().filter(|_| request.strategy == Strategy::Synthesis) else {
        return Writes::Nothing;
    };
    match found(world, request) {
        None => Writes::Unknown,
        // Any other takes no synthesis any more.
        Some((_, conflict, sides)) if conflict.status == ConflictStatus::Detected => {
            Writes::Unit(text, joined_intent(world, request, conflict, sides))
        }
        Some(_) => Writes::Nothing,
    }
}

/// The conflict that a request names, with the older and the newer unit.
fn found<'w>(world: &'w World, request: &MergeRequest) -> Option<(ConflictNo, &'w Conflict, [&'w Slot; 2])> {
    let number = request.conflict_id.parse::<ConflictId>().ok().and_then(|id| world.find_conflict(id))?;
    let conflict = &*world.conflicts[number as usize];
    let side = |id| world.find(id).map(|no| world.slot(no));
    Some((number, conflict, [side(conflict.unit_a)?, side(conflict.unit_b)?]))
}

/// What the ballots come to: a side with more than half of the quorum prevails; a full vote without one is tied.
fn count(conflict: &Conflict, quorum: usize) -> Outcome<'static> {
    let of = |unit| conflict.ballots.iter().filter(|ballot| ballot.winner_id == unit).count();
    let (a, b) = (of(conflict.unit_a), of(conflict.unit_b));
    let decides = |most: usize, other: usize| most > other && most * 2 > quorum;
    if decides(a, b) {
        Outcome::Winner(conflict.unit_a)
    } else if decides(b, a) {
        Outcome::Winner(conflict.unit_b)
    } else if a + b >= quorum {
        Outcome::Escalated(format!("The vote is tied, {a} to {b}."))
    } else {
        Outcome::Pending
    }
}

fn score(slot: &Slot) -> Option<f64> {
    slot.score()
}

/// What both say, or the one that says anything.
fn shared<T: PartialEq + Clone>(a: Option<&T>, b: Option<&T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => a.or(b).cloned(),
    }
}

/// A synthesis is as sure as the less sure of its originals. Units recorded at level 0 may lack a score.
fn lower_confidence(sides: [&Slot; 2]) -> Option<Confidence> {
    let scored = |slot: &Slot| score(slot).map(|score| (slot.id, score));
    let (score, reason) = match sides.map(scored) {
        [Some((a, one)), Some((b, two))] => {
            (one.min(two), format!("The lower of {a} ({one}) and {b} ({two}), which it joins."))
        }
        [Some((id, score)), None] | [None, Some((id, score))] => {
            (score, format!("That of {id} ({score}); the other unit that it joins has none."))
        }
        [None, None] => return None,
    };
    Some(Confidence {
        score: Some(score),
        reason: Some(reason.into()),
        evidence: Vec::new(),
        assumptions: Vec::new(),
    })
}
