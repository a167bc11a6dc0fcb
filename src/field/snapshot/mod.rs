//! A state as bytes, so that a start need not apply the whole log again.
//!
//! A [`Snapshot`] is a cheap immutable copy of a state. It is written in parts of about a mebibyte, each of which can be
//! read back alone, in any thread ([`read_part`]); an [`Assembly`] puts them together. What comes of it is the state
//! that the log would give, up to the entry that the snapshot ends with, and knows besides when each agent last sent
//! anything. Where the parts are kept, and whether they are whole and belong to a log, is the caller's to know.
//!
//! Every field of the state is named here or in `units`, without `..`, so that forgetting a new one does not compile.
//! What can be told from other fields is left out and made anew. A change that lets the same log come to another state,
//! or writes anything otherwise, raises [`FORMAT`].

mod assembly;
mod bytes;
mod units;

use std::sync::Arc;

use imbl::Vector;

use super::presence::Whereabouts;
use super::shelf::{Coldness, Marks, Sweep};
use super::state::{AgentRecord, Answered, Chain, Entity, Ledger, State, SubscriptionRecord, World};
use crate::protocol::{
    AgentStatus, ConflictStatus, ConflictType, DetectedBy, EventName, MemoryType, Mode, RelationType,
    Strategy, UnitStatus,
};
pub use assembly::{Assembly, Piece, read_part};
use bytes::{Hash64, Source, Stored, listed};
use units::SlotsWriter;

/// What bytes mean and what a log comes to; see above.
const FORMAT: u32 = 3;

/// About how large a part gets.
const PART_BYTES: usize = 1 << 20;
/// Values of one list that stand together: a longer list goes on in the next value.
const LIST: usize = 4_096;

/// What a part holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Counts, first of all.
    Head,
    /// Units and what changes about them.
    Slots,
    /// Chains of supersession.
    Chains,
    /// Committed units in their order.
    Timeline,
    /// Units that stand in no timeline.
    Offstage,
    /// Units that wait for their embedding.
    Pending,
    /// Units that are still to be compared with others.
    Uncompared,
    /// Agents, with how many live units each has, and how many live ones are archived.
    Agents,
    /// Tasks, in the order of their numbers.
    Tasks,
    /// Conflicts.
    Conflicts,
    /// Conflicts that wait for a decision.
    Unresolved,
    /// Each unit's conflicts.
    Disputes,
    /// Each contested unit's unresolved conflicts.
    OpenDisputes,
    /// Relations by their target.
    Inbound,
    /// Where in the log something is mentioned.
    Mentions,
    /// Subscriptions.
    Subscriptions,
    /// Units that are archived.
    Archived,
    /// Stretches of the timeline in which units are put away.
    Cold,
    /// What COMPACTs of many units touched.
    Sweeps,
    /// What was purged.
    Purges,
    /// Messages that were answered.
    Ledger,
    /// When agents last sent anything.
    Seen,
}

impl Part {
    /// All parts, in the order in which they are written.
    pub const ALL: &'static [Self] = &[
        Self::Head,
        Self::Slots,
        Self::Chains,
        Self::Timeline,
        Self::Offstage,
        Self::Pending,
        Self::Uncompared,
        Self::Agents,
        Self::Tasks,
        Self::Conflicts,
        Self::Unresolved,
        Self::Disputes,
        Self::OpenDisputes,
        Self::Inbound,
        Self::Mentions,
        Self::Subscriptions,
        Self::Archived,
        Self::Cold,
        Self::Sweeps,
        Self::Purges,
        Self::Ledger,
        Self::Seen,
    ];
}
listed!(Part);

/// What this program's snapshots look like: equal where one can read what the other wrote.
pub fn snapshot_format() -> [u8; 16] {
    format_numbered(FORMAT)
}

/// The same, had this program's format that number.
pub(crate) fn format_numbered(number: u32) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    // What is written as a place in one of these lists means another thing when the list changes.
    let lists = [
        MemoryType::names(),
        Mode::names(),
        UnitStatus::names(),
        RelationType::names(),
        AgentStatus::names(),
        ConflictType::names(),
        ConflictStatus::names(),
        DetectedBy::names(),
        Strategy::names(),
        EventName::names(),
    ];
    for list in lists {
        hasher.update(list.as_bytes());
        hasher.update(b"\n");
    }
    let mut format = [0; 16];
    format.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    format
}

/// Takes the parts of a snapshot as they are written.
pub type Give<'g, E> = dyn FnMut(Part, &[u8]) -> Result<(), E> + 'g;

/// A state as it is now, to be written while the state goes on: taking one copies a few pointers.
#[derive(Debug, Clone)]
pub struct Snapshot {
    world: World,
    answered: Vector<Answered>,
    whereabouts: Vector<Whereabouts>,
}

/// How many of everything there are: parts that were left out or stand there twice are noticed by it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Head {
    last_epoch: u64,
    entries: u64,
    archived: u64,
    purged: u64,
    by_status: Vec<u64>,
    lengths: Vec<usize>,
}

impl Snapshot {
    /// Of a state.
    pub fn of(state: &State) -> Self {
        // The clock is the log's to tell.
        // What is to leave memory leaves it as a start has read the log behind.
        let State { clock: _, world, ledger, presence, shelving: _ } = state;
        Self { world: world.clone(), answered: ledger.answered(), whereabouts: presence.all() }
    }

    /// The epoch of the last entry that it holds.
    pub fn epoch(&self) -> u64 {
        self.world.last_epoch
    }

    /// How many purges it knows of.
    pub fn purges(&self) -> usize {
        self.world.purges.len()
    }

    /// How many entries it holds.
    pub fn entries(&self) -> u64 {
        self.world.entries
    }

    /// Writes it: gives every part to `give`, in order.
    ///
    /// # Errors
    /// Whatever `give` says, at once.
    pub fn write<E>(&self, give: &mut Give<'_, E>) -> Result<(), E> {
        let mut out = Parts { give, part: Vec::new() };
        out.one(Part::Head, &Head::of(&self.world, self.answered.len(), self.whereabouts.len()))?;
        let World {
            units,
            chains,
            timeline,
            offstage,
            pending,
            uncompared,
            agents,
            agent_numbers: _,
            tasks: _,
            task_ids,
            live_by_author,
            conflicts,
            unresolved,
            disputes,
            open_disputes,
            inbound,
            mentions,
            subscriptions,
            subscribed: _,
            archived: Marks { blocks: archived, count: _ },
            archived_live_by_author,
            cold: Coldness { blocks: cold },
            sweeps,
            purges,
            purged: _,
            by_status: _,
            entries: _,
            last_epoch: _,
        } = &self.world;
        let mut slots = SlotsWriter::new();
        for slot in units {
            slots.put(slot);
            if slots.bytes() >= PART_BYTES {
                (out.give)(Part::Slots, &slots.finish())?;
            }
        }
        (out.give)(Part::Slots, &slots.finish())?;
        out.all(Part::Chains, chains.iter(), Chain::put)?;
        out.all(Part::Timeline, timeline.iter(), Stored::put)?;
        out.all(Part::Offstage, offstage.iter(), Stored::put)?;
        out.all(Part::Pending, pending.iter(), Stored::put)?;
        out.all(Part::Uncompared, uncompared.iter(), |(place, compared), out| {
            place.put(out);
            compared.put(out);
        })?;
        let agents = agents.iter().zip(live_by_author).zip(archived_live_by_author);
        out.all(Part::Agents, agents, |((agent, live), archived), out| {
            agent.put(out);
            live.put(out);
            archived.put(out);
        })?;
        out.all(Part::Tasks, task_ids.iter(), Stored::put)?;
        out.all(Part::Conflicts, conflicts.iter(), |conflict, out| put_json(&**conflict, out))?;
        out.all(Part::Unresolved, unresolved.iter(), Stored::put)?;
        out.lists(Part::Disputes, disputes.iter().map(|(unit, of)| (unit, of.iter())))?;
        out.lists(Part::OpenDisputes, open_disputes.iter().map(|(unit, of)| (unit, of.iter())))?;
        out.lists(Part::Inbound, inbound.iter().map(|(target, of)| (target, of.iter())))?;
        out.lists(Part::Mentions, mentions.iter().map(|(entity, of)| (entity, of.iter())))?;
        out.all(Part::Subscriptions, subscriptions.values(), |record, out| {
            let SubscriptionRecord { agent, subscription } = record;
            agent.put(out);
            put_json(&**subscription, out);
        })?;
        out.all(Part::Archived, archived.iter(), |block, out| block.iter().for_each(|word| word.put(out)))?;
        out.all(Part::Cold, cold.iter(), |count, out| u32::from(*count).put(out))?;
        out.all(Part::Sweeps, sweeps.iter(), Stored::put)?;
        out.all(Part::Purges, purges.iter(), Stored::put)?;
        out.all(Part::Ledger, self.answered.iter(), Stored::put)?;
        out.all(Part::Seen, self.whereabouts.iter(), |here, out| here.last_seen.0.put(out))
    }
}

/// Parts on their way out.
struct Parts<'g, E> {
    give: &'g mut Give<'g, E>,
    part: Vec<u8>,
}

impl<E> Parts<'_, E> {
    fn one(&mut self, part: Part, value: &impl Stored) -> Result<(), E> {
        self.part.clear();
        value.put(&mut self.part);
        (self.give)(part, &self.part)
    }

    fn all<T>(
        &mut self,
        part: Part,
        values: impl Iterator<Item = T>,
        put: impl Fn(T, &mut Vec<u8>),
    ) -> Result<(), E> {
        self.part.clear();
        for value in values {
            put(value, &mut self.part);
            if self.part.len() >= PART_BYTES {
                (self.give)(part, &self.part)?;
                self.part.clear();
            }
        }
        if self.part.is_empty() { Ok(()) } else { (self.give)(part, &self.part) }
    }

    /// Keys with lists, long ones in pieces: each piece names its key.
    fn lists<'a, K: Stored + 'a, V: Stored + Clone + 'a>(
        &mut self,
        part: Part,
        lists: impl Iterator<Item = (&'a K, impl Iterator<Item = &'a V>)>,
    ) -> Result<(), E> {
        let pieces = lists.flat_map(|(key, mut list)| {
            std::iter::from_fn(move || {
                let piece: Vec<V> = list.by_ref().take(LIST).cloned().collect();
                (!piece.is_empty()).then_some((key, piece))
            })
        });
        self.all(part, pieces, |(key, piece), out| {
            key.put(out);
            piece.put(out);
        })
    }
}

impl Head {
    fn of(world: &World, answered: usize, seen: usize) -> Self {
        let lengths = vec![
            world.units.len(),
            world.chains.len(),
            world.timeline.len(),
            world.offstage.len(),
            world.pending.len(),
            world.uncompared.len(),
            world.agents.len(),
            world.tasks.len(),
            world.conflicts.len(),
            world.unresolved.len(),
            world.disputes.len(),
            world.open_disputes.len(),
            world.inbound.len(),
            world.mentions.len(),
            world.subscriptions.len(),
            world.archived.blocks.len(),
            world.cold.blocks.len(),
            world.sweeps.len(),
            world.purges.len(),
            answered,
            seen,
        ];
        Self {
            last_epoch: world.last_epoch,
            entries: world.entries,
            archived: world.archived.len(),
            purged: world.purged,
            by_status: world.by_status.to_vec(),
            lengths,
        }
    }
}

impl Stored for Head {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { last_epoch, entries, archived, purged, by_status, lengths } = self;
        last_epoch.put(out);
        entries.put(out);
        archived.put(out);
        purged.put(out);
        by_status.put(out);
        lengths.put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let (last_epoch, entries, archived) = (Stored::take(from)?, Stored::take(from)?, Stored::take(from)?);
        Some(Self {
            last_epoch,
            entries,
            archived,
            purged: Stored::take(from)?,
            by_status: Stored::take(from)?,
            lengths: Stored::take(from)?,
        })
    }
}

/// Rare and manifold things are written as the log writes them.
fn put_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    serde_json::to_vec(value).expect("what the log takes is always writable").put(out);
}

fn take_json<T: serde::de::DeserializeOwned>(from: &mut Source<'_>) -> Option<Arc<T>> {
    serde_json::from_slice(&Vec::<u8>::take(from)?).ok().map(Arc::new)
}

impl Stored for Chain {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { part_of, length, latest } = self;
        part_of.put(out);
        length.put(out);
        latest.put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        Some(Self { part_of: Stored::take(from)?, length: Stored::take(from)?, latest: Stored::take(from)? })
    }
}

impl Stored for Sweep {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { epoch, units } = self;
        epoch.put(out);
        units.len().put(out);
        units.iter().for_each(|no| no.put(out));
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        Some(Self { epoch: Stored::take(from)?, units: Vec::take(from)?.into() })
    }
}

impl Stored for AgentRecord {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { agent, registered_epoch, holder } = self;
        put_json(agent, out);
        registered_epoch.put(out);
        holder.put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let agent = Arc::unwrap_or_clone(take_json(from)?);
        Some(Self { agent, registered_epoch: Stored::take(from)?, holder: Stored::take(from)? })
    }
}

impl Stored for Entity {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unit(no) => (0u8, *no).put(out),
            Self::Conflict(no) => (1u8, *no).put(out),
            Self::Task(id) => (2u8, Arc::clone(id)).put(out),
            Self::Session(id) => (3u8, Arc::clone(id)).put(out),
            Self::Shown(agent) => (4u8, *agent).put(out),
        }
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Self::Unit(Stored::take(from)?),
            1 => Self::Conflict(Stored::take(from)?),
            2 => Self::Task(Stored::take(from)?),
            3 => Self::Session(Stored::take(from)?),
            4 => Self::Shown(Stored::take(from)?),
            _ => return None,
        })
    }
}

impl Stored for Answered {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { key: [high, low], at_ms, epoch, digest } = self;
        Hash64(*high).put(out);
        Hash64(*low).put(out);
        at_ms.put(out);
        epoch.put(out);
        Hash64(*digest).put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let key = [Hash64::take(from)?.0, Hash64::take(from)?.0];
        let (at_ms, epoch) = (Stored::take(from)?, Stored::take(from)?);
        Some(Self { key, at_ms, epoch, digest: Hash64::take(from)?.0 })
    }
}

impl Ledger {
    /// The messages that it remembers, oldest first.
    fn answered(&self) -> Vector<Answered> {
        // What finds them is made of them.
        let Self { known: _, forgotten: _, order } = self;
        order.clone()
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
