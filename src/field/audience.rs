//! What an entry gives notice of, and who hears of it (section 7, SUBSCRIBE).
//!
//! Notices are made of the entry and of what never changes in the world (committed units, the pair of a conflict), so
//! that who is told at once and who reads the log a year later are told the same. Drafts give none: only the COMMIT
//! does.

use std::ops::Range;
use std::sync::Arc;

use super::event::{Entry, Event};
use super::kept::Wanting;
use super::rules::excerpt;
use super::state::{Slot, UnitNo, World};
use crate::protocol::{
    Conflict, ConflictId, Cursor, EventName, EventSet, MemoryType, Mode, Resolution, Subscription, Unit,
    UnitId, UnitStatus,
};

/// Characters of an agent's own words in a summary.
const SAID: usize = 160;

/// Something that happened, as listeners hear of it.
#[derive(Debug)]
pub struct Notice {
    /// Its place: the entry's epoch, and its number among the entry's notices.
    pub cursor: Cursor,
    /// What happened.
    pub event: EventName,
    /// Whose doing it was; [`crate::protocol::SYSTEM`] for the Field's own.
    pub actor: Arc<str>,
    /// What it is about.
    pub subject: Subject,
    /// A sentence that tells it.
    pub summary: String,
}

/// What a notice is about.
#[derive(Debug)]
pub enum Subject {
    /// A unit, as it stood once this had happened.
    Unit {
        /// The unit.
        unit: Arc<Unit>,
        /// Its status then.
        status: UnitStatus,
        /// Epoch of its commit.
        epoch: u64,
    },
    /// A conflict.
    Conflict {
        /// Which one.
        id: ConflictId,
        /// Who wrote the older and who the newer unit.
        authors: [Option<Arc<str>>; 2],
    },
    /// An agent.
    Agent(Arc<str>),
}

/// What a debounced subscription tells apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the id of what its name says")]
pub enum Concern {
    Unit(UnitId),
    Conflict(ConflictId),
    Agent(Arc<str>),
}

impl Notice {
    /// The entity that it is about.
    pub fn concern(&self) -> Concern {
        match &self.subject {
            Subject::Unit { unit, .. } => Concern::Unit(unit.id),
            Subject::Conflict { id, .. } => Concern::Conflict(*id),
            Subject::Agent(id) => Concern::Agent(Arc::clone(id)),
        }
    }

    /// Whether an agent wrote one of the units that it is about.
    pub fn concerns_author(&self, agent: &str) -> bool {
        match &self.subject {
            Subject::Unit { unit, .. } => *unit.source.agent_id == *agent,
            Subject::Conflict { authors, .. } => authors.iter().flatten().any(|author| **author == *agent),
            Subject::Agent(_) => false,
        }
    }
}

/// The names of what an entry gives notice of, told without looking at the world.
pub fn announced(entry: &Entry) -> EventSet {
    let mut set = EventSet::NONE;
    for event in &entry.events {
        set = match event {
            Event::Recorded { unit, supersedes } | Event::Committed { unit, supersedes }
                if unit.mode == Mode::Committed =>
            {
                let superseded = (!supersedes.is_empty()).then_some(EventName::MemorySuperseded);
                set.with(EventName::MemoryRecorded).or(superseded.into_iter().collect())
            }
            Event::Retracted { .. } => set.with(EventName::MemoryRetracted),
            Event::Archived { .. } => set.with(EventName::MemoryArchived),
            Event::ConflictCreated { contested, .. } => {
                let contested = (!contested.is_empty()).then_some(EventName::MemoryContested);
                set.with(EventName::ConflictDetected).or(contested.into_iter().collect())
            }
            Event::Merged { superseded, .. } => {
                let superseded = (!superseded.is_empty()).then_some(EventName::MemorySuperseded);
                set.with(EventName::ConflictResolved).or(superseded.into_iter().collect())
            }
            Event::Escalated { .. } => set.with(EventName::ConflictEscalated),
            Event::Registered { resumed: false, .. } => set.with(EventName::AgentJoined),
            Event::Deregistered { .. } => set.with(EventName::AgentLeft),
            Event::Failed { .. } => set.with(EventName::AgentFailed),
            _ => set,
        };
    }
    set
}

/// What an entry gives notice of, in the order of section 12: recorded, superseded, retracted, conflict detected,
/// conflict escalated, conflict resolved, contested, archived. `world` is any state that has applied the entry.
///
/// The archived ones, of which there may be very many, are told apart: see [`archived`].
///
/// # Errors
/// The texts of some units that it tells of are in the log alone.
pub fn notices(world: &World, entry: &Entry) -> Result<Notices, Wanting> {
    let mut teller = Teller { world, entry, told: Vec::new(), wanting: Vec::new() };
    for event in &entry.events {
        teller.tell(event);
    }
    Wanting::check(world, teller.wanting)?;
    let mut told = teller.told;
    // Stable: within a rank the order of the events stands.
    told.sort_by_key(|(rank, _)| *rank);
    let places = told.len() as u32;
    let place = |(index, (_, notice)): (u32, (Rank, Option<Notice>))| {
        let mut notice = notice?;
        notice.cursor.index = index;
        Some(notice)
    };
    Ok(Notices { told: (0..).zip(told).filter_map(place).collect(), places })
}

/// The notices of an entry, but for those of archived units.
#[derive(Debug)]
pub struct Notices {
    /// Those that can be given, each with its place.
    pub told: Vec<Notice>,
    /// How many places there are. One stays empty where what it would tell of is purged, so that the others keep theirs.
    pub places: u32,
}

/// How many places the notices of an entry take but for those of archived units: what [`Notices::places`] says, told
/// without looking at the world, or at texts that are in the log alone.
pub fn places(entry: &Entry) -> u32 {
    let of_event = |event: &Event| match event {
        Event::Registered { resumed: false, .. }
        | Event::Deregistered { .. }
        | Event::Failed { .. }
        | Event::Retracted { .. }
        | Event::Escalated { .. } => 1,
        Event::Recorded { unit, supersedes } | Event::Committed { unit, supersedes }
            if unit.mode == Mode::Committed =>
        {
            1 + supersedes.len()
        }
        Event::ConflictCreated { contested, .. } => 1 + contested.len(),
        Event::Merged { superseded, .. } => 1 + superseded.len(),
        _ => 0,
    };
    entry.events.iter().map(|event| of_event(event) as u32).sum()
}

/// The authors whose conflicts an entry resolved.
pub fn resolved_of<'a>(world: &'a World, entry: &'a Entry) -> impl Iterator<Item = Arc<str>> + 'a {
    let conflicts = entry.events.iter().filter_map(|event| match event {
        Event::Merged { conflict_id, .. } => world.find_conflict(*conflict_id),
        _ => None,
    });
    conflicts.flat_map(|no| authors(world, &world.conflicts[no as usize])).flatten()
}

/// Who wrote the units of a conflict, also of one that is purged: its author is told of what was decided about it.
fn authors(world: &World, conflict: &Conflict) -> [Option<Arc<str>>; 2] {
    let author = |id| world.find_ever(id).map(|no| Arc::clone(&world.agent(world.slot(no).author).agent.id));
    [conflict.unit_a, conflict.unit_b].map(author)
}

/// How many units an entry archived: so many places come behind those of [`notices`].
pub fn archived_places(entry: &Entry) -> u32 {
    entry.events.iter().filter(|event| matches!(event, Event::Archived { .. })).map(Event::width).sum()
}

/// Notices of some of the units that an entry archived, in the order in which its events name them; `places` is how many places come
/// before the first of all.
///
/// # Errors
/// The texts of some of them are in the log alone.
pub fn archived(world: &World, entry: &Entry, places: u32, some: Range<u32>) -> Result<Vec<Notice>, Wanting> {
    let (mut told, mut wanting) = (Vec::new(), Vec::new());
    let mut before = 0;
    for event in &entry.events {
        let Event::Archived { units, status, reason } = event else { continue };
        let reason = excerpt(reason, SAID);
        let own = some.start.saturating_sub(before)..some.end.saturating_sub(before).min(event.width());
        for at in own {
            let Some(no) = world.find(units.as_slice()[at as usize]) else { continue };
            let slot = world.slot(no);
            if slot.mode != Mode::Committed {
                continue;
            }
            let Some(unit) = slot.whole() else {
                wanting.push(no);
                continue;
            };
            told.push(Notice {
                cursor: Cursor::new(entry.epoch, places + before + at),
                event: EventName::MemoryArchived,
                actor: Arc::clone(&entry.agent_id),
                subject: Subject::Unit { unit: Arc::clone(unit), status: *status, epoch: slot.epoch },
                summary: format!("{} was archived: {reason}", slot.id),
            });
        }
        before += event.width();
    }
    Wanting::check(world, wanting)?;
    Ok(told)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Agent,
    Recorded,
    Superseded,
    Retracted,
    Detected,
    Escalated,
    Resolved,
    Contested,
}

struct Teller<'a> {
    world: &'a World,
    entry: &'a Entry,
    /// Nothing stands for a notice that cannot be given any more.
    told: Vec<(Rank, Option<Notice>)>,
    /// Units whose texts are not there.
    wanting: Vec<UnitNo>,
}

impl Teller<'_> {
    fn tell(&mut self, event: &Event) {
        match event {
            Event::Registered { role, resumed: false, .. } => {
                let id = &self.entry.agent_id;
                self.agent(EventName::AgentJoined, id, format!("{id} joined as {role}."));
            }
            Event::Deregistered { agent } => {
                self.agent(EventName::AgentLeft, agent, format!("{agent} left."));
            }
            Event::Failed { agent } => {
                let said = format!("{agent} lost its connection and did not return.");
                self.agent(EventName::AgentFailed, agent, said);
            }
            Event::Recorded { unit, supersedes } | Event::Committed { unit, supersedes }
                if unit.mode == Mode::Committed =>
            {
                self.recorded(unit, supersedes);
            }
            Event::Retracted { memory_unit_id, reason } => {
                let reason = excerpt(reason, SAID);
                let said = |unit: &Unit| format!("{} was retracted: {reason}", unit.id);
                self.unit(
                    Rank::Retracted,
                    EventName::MemoryRetracted,
                    *memory_unit_id,
                    UnitStatus::Retracted,
                    said,
                );
            }
            Event::ConflictCreated { conflict, contested } => {
                let said = format!("{}: {}", conflict.id, excerpt(&conflict.description, SAID));
                if self.world.lists(conflict) {
                    self.conflict(Rank::Detected, EventName::ConflictDetected, conflict, said);
                } else {
                    // Its description tells what one of its units said, which is purged.
                    self.told.push((Rank::Detected, None));
                }
                for id in contested {
                    let said = |unit: &Unit| match conflict.partner_of(unit.id) {
                        Some(other) => format!("{} is contested by {other} in {}.", unit.id, conflict.id),
                        None => format!("{} is contested in {}.", unit.id, conflict.id),
                    };
                    self.unit(Rank::Contested, EventName::MemoryContested, *id, UnitStatus::Contested, said);
                }
            }
            Event::Merged { conflict_id, resolution, superseded } => {
                self.resolved(*conflict_id, resolution, superseded);
            }
            Event::Escalated { conflict_id, resolution, reason } => {
                let why = excerpt(&resolution.rationale, SAID);
                let said = format!("{conflict_id} waits for a human's decision. {reason} {why}");
                self.known_conflict(Rank::Escalated, EventName::ConflictEscalated, *conflict_id, said);
            }
            _ => {}
        }
    }

    fn push(&mut self, rank: Rank, event: EventName, subject: Subject, summary: String) {
        let (cursor, actor) = (Cursor::new(self.entry.epoch, 0), Arc::clone(&self.entry.agent_id));
        self.told.push((rank, Some(Notice { cursor, event, actor, subject, summary })));
    }

    fn agent(&mut self, event: EventName, id: &Arc<str>, summary: String) {
        self.push(Rank::Agent, event, Subject::Agent(Arc::clone(id)), summary);
    }

    fn recorded(&mut self, unit: &Arc<Unit>, supersedes: &[UnitId]) {
        let contests = |event: &Event| matches!(event, Event::ConflictCreated { contested, .. } if contested.contains(&unit.id));
        let is_contested = self.entry.events.iter().any(contests);
        let waits = |event: &Event| matches!(event, Event::Unenriched { memory_unit_id } if *memory_unit_id == unit.id);
        let status = if is_contested {
            UnitStatus::Contested
        } else if self.entry.events.iter().any(waits) {
            UnitStatus::PendingEnrichment
        } else {
            UnitStatus::Active
        };
        if self.world.find(unit.id).is_none() {
            // It is purged: the log knows what it said, nobody else is told.
            self.told.push((Rank::Recorded, None));
        } else {
            let summary =
                format!("{} by {}: {}", title(unit.kind), unit.source.agent_id, excerpt(&unit.content, SAID));
            let subject = Subject::Unit { unit: Arc::clone(unit), status, epoch: self.entry.epoch };
            self.push(Rank::Recorded, EventName::MemoryRecorded, subject, summary);
        }
        self.superseded(supersedes, Some(unit.id));
    }

    fn superseded(&mut self, units: &[UnitId], successor: Option<UnitId>) {
        for id in units {
            let said = |unit: &Unit| match successor {
                Some(by) => format!("{} was superseded by {by}: {}", unit.id, excerpt(&unit.content, SAID)),
                None => format!("{} was superseded: {}", unit.id, excerpt(&unit.content, SAID)),
            };
            self.unit(Rank::Superseded, EventName::MemorySuperseded, *id, UnitStatus::Superseded, said);
        }
    }

    /// Gives notice of a unit of the world; of one that is no longer there only the place is kept.
    fn unit(
        &mut self,
        rank: Rank,
        event: EventName,
        id: UnitId,
        status: UnitStatus,
        said: impl FnOnce(&Unit) -> String,
    ) {
        let committed = |slot: &Slot| slot.mode == Mode::Committed;
        let known = self.world.find(id).map(|no| (no, self.world.slot(no)));
        let Some((no, slot)) = known.filter(|(_, slot)| committed(slot)) else {
            self.told.push((rank, None));
            return;
        };
        let Some(unit) = slot.whole().or_else(|| self.entry.unit(id)) else {
            self.wanting.push(no);
            return;
        };
        let (unit, epoch) = (Arc::clone(unit), slot.epoch);
        let summary = said(&unit);
        self.push(rank, event, Subject::Unit { unit, status, epoch }, summary);
    }

    fn resolved(&mut self, id: ConflictId, resolution: &Resolution, superseded: &[UnitId]) {
        self.superseded(superseded, resolution.winner_id);
        let outcome = match (resolution.winner_id, self.entry.synthesis()) {
            (Some(winner), _) => format!("{winner} prevails"),
            (None, Some(unit)) => format!("both are joined in {}", unit.id),
            (None, None) => "neither prevails".to_owned(),
        };
        let why = excerpt(&resolution.rationale, SAID);
        let said = format!("{id} was resolved by {}, {outcome}: {why}", resolution.strategy);
        self.known_conflict(Rank::Resolved, EventName::ConflictResolved, id, said);
    }

    /// Gives notice of a conflict of the world; of one that is no longer there only the place is kept.
    fn known_conflict(&mut self, rank: Rank, event: EventName, id: ConflictId, summary: String) {
        let Some(no) = self.world.find_conflict(id) else {
            self.told.push((rank, None));
            return;
        };
        let conflict = Arc::clone(&self.world.conflicts[no as usize]);
        self.conflict(rank, event, &conflict, summary);
    }

    fn conflict(&mut self, rank: Rank, event: EventName, conflict: &Conflict, summary: String) {
        let authors = authors(self.world, conflict);
        self.push(rank, event, Subject::Conflict { id: conflict.id, authors }, summary);
    }
}

/// A type at the beginning of a sentence.
fn title(kind: MemoryType) -> String {
    let name = kind.name().replace('_', " ");
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Who listens, and to what.
#[derive(Debug, Clone)]
pub struct Listener {
    /// Who is told; nobody in particular: an observer, who hears of everyone's doings.
    pub agent: Option<Arc<str>>,
    /// What was asked for.
    pub subscription: Arc<Subscription>,
    events: EventSet,
    /// Epoch of the entry, or of the state, that says so: earlier entries change nothing about it.
    since: u64,
    /// Whether the subscription is the Field's, which its agent can change and end by SUBSCRIBE.
    kept: bool,
}

/// What an entry means for a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It listens on.
    None,
    /// It listens for something else from now on.
    Changed,
    /// Its agent has another role or other interests from now on.
    Profile,
    /// Its subscription has ended.
    Ended,
}

impl Listener {
    /// An agent's subscription, as it is known since an epoch.
    pub fn new(agent: Arc<str>, subscription: Arc<Subscription>, since: u64) -> Self {
        let events = subscription.events.iter().copied().collect();
        Self { agent: Some(agent), subscription, events, since, kept: true }
    }

    /// An agent that listens for as long as it likes, without a subscription in the Field.
    pub fn passing(agent: Arc<str>, subscription: Arc<Subscription>, since: u64) -> Self {
        Self { kept: false, ..Self::new(agent, subscription, since) }
    }

    /// Somebody who watches on behalf of no agent.
    pub fn observer(subscription: Arc<Subscription>) -> Self {
        let events = subscription.events.iter().copied().collect();
        Self { agent: None, subscription, events, since: u64::MAX, kept: false }
    }

    /// The same without a pause between notifications, for who looks at a pace of its own.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        Arc::make_mut(&mut self.subscription).debounce_ms = 0;
        self
    }

    /// The epoch since which this is so.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// What is listened for.
    pub fn events(&self) -> EventSet {
        self.events
    }

    /// Takes note of what an entry changes about the subscription, from its place in the order on.
    pub fn pass(&mut self, entry: &Entry) -> Turn {
        let Some(agent) = self.agent.as_ref().filter(|_| entry.epoch > self.since) else { return Turn::None };
        let mut turn = Turn::None;
        for event in &entry.events {
            match event {
                Event::Subscribed { subscription } if self.is_own(&entry.agent_id, &subscription.id) => {
                    self.subscription = Arc::clone(subscription);
                    self.events = subscription.events.iter().copied().collect();
                    turn = Turn::Changed;
                }
                Event::Unsubscribed { subscription_id } if self.is_own(&entry.agent_id, subscription_id) => {
                    return Turn::Ended;
                }
                Event::Deregistered { agent: left } if left == agent => return Turn::Ended,
                Event::Registered { .. } if entry.agent_id == *agent => turn = Turn::Profile,
                _ => {}
            }
        }
        turn
    }

    /// Whether an agent's words about a subscription are about this one.
    fn is_own(&self, agent: &str, subscription: &str) -> bool {
        self.kept && self.agent.as_deref() == Some(agent) && *self.subscription.id == *subscription
    }

    /// Whether the listener is told of this, relevance aside: what it asked for, but its own doings only where they
    /// touch a conflict of its units.
    pub fn hears(&self, notice: &Notice) -> bool {
        if !self.events.contains(notice.event) {
            return false;
        }
        let Some(agent) = &self.agent else { return true };
        let excepted = matches!(notice.event, EventName::ConflictDetected | EventName::ConflictResolved);
        notice.actor != *agent || excepted && notice.concerns_author(agent)
    }

    /// Whether the listener has to do something about it. `interested`: whether a unit is about one of its interests.
    pub fn must_act(&self, notice: &Notice, interested: impl FnOnce() -> bool) -> bool {
        let Some(agent) = &self.agent else { return false };
        match notice.event {
            EventName::ConflictDetected | EventName::MemoryContested => notice.concerns_author(agent),
            EventName::MemoryRecorded => {
                let asks = matches!(&notice.subject,
                    Subject::Unit { unit, .. } if unit.kind == MemoryType::Question);
                asks && interested()
            }
            // Where authority is not enforced, every agent has the authority to decide.
            EventName::ConflictEscalated => true,
            _ => false,
        }
    }
}
