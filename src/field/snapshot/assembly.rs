//! A state put together from the parts of a snapshot.

use std::sync::Arc;

use super::bytes::{Source, Stored, take_all};
use super::units::take_slots;
use super::{Head, Part, take_json};
use crate::field::kept::Shelving;
use crate::field::presence::Presence;
use crate::field::shelf::{Sweep, WORDS};
use crate::field::state::{
    AgentNo, AgentRecord, Answered, Chain, ConflictNo, Entity, Ledger, Slot, State, UnitNo, World,
};
use crate::protocol::{Conflict, Subscription, Timestamp, UnitId};

/// A part that was read: what costs time is done.
#[derive(Debug)]
pub struct Piece(Inner);

#[derive(Debug)]
enum Inner {
    Head(Head),
    Slots(Vec<Slot>),
    Chains(Vec<Chain>),
    Timeline(Vec<(u64, UnitNo)>),
    Offstage(Vec<(u64, UnitNo)>),
    Pending(Vec<UnitNo>),
    Uncompared(Vec<(u32, u32)>),
    Agents(Vec<((AgentRecord, u32), u32)>),
    Tasks(Vec<Arc<str>>),
    Conflicts(Vec<Arc<Conflict>>),
    Unresolved(Vec<ConflictNo>),
    Disputes(Vec<(UnitNo, Vec<ConflictNo>)>),
    OpenDisputes(Vec<(UnitNo, Vec<ConflictNo>)>),
    Inbound(Vec<(UnitId, Vec<(UnitNo, u32)>)>),
    Mentions(Vec<(Entity, Vec<u64>)>),
    Subscriptions(Vec<(AgentNo, Arc<Subscription>)>),
    Archived(Vec<Block>),
    Cold(Vec<u16>),
    Sweeps(Vec<Sweep>),
    Purges(Vec<Sweep>),
    Ledger(Vec<Answered>),
    Seen(Vec<u64>),
}

/// Bits of units that are archived.
#[derive(Debug)]
struct Block(Arc<[u64; WORDS]>);

impl Stored for Block {
    fn put(&self, _: &mut Vec<u8>) {
        unreachable!("these are written where they are named")
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let mut words = [0; WORDS];
        for word in &mut words {
            *word = Stored::take(from)?;
        }
        Some(Self(Arc::new(words)))
    }
}

/// Values that are written as JSON.
struct Json<T>(Arc<T>);

impl<T: serde::de::DeserializeOwned> Stored for Json<T> {
    fn put(&self, _: &mut Vec<u8>) {
        unreachable!("these are written where they are named")
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        take_json(from).map(Json)
    }
}

/// Reads a part. `None` where the bytes are no such part.
pub fn read_part(part: Part, bytes: &[u8]) -> Option<Piece> {
    let piece = match part {
        Part::Head => {
            let mut from = Source(bytes);
            Inner::Head(Head::take(&mut from).filter(|_| from.is_empty())?)
        }
        Part::Slots => Inner::Slots(take_slots(bytes)?),
        Part::Chains => Inner::Chains(take_all(bytes)?),
        Part::Timeline => Inner::Timeline(take_all(bytes)?),
        Part::Offstage => Inner::Offstage(take_all(bytes)?),
        Part::Pending => Inner::Pending(take_all(bytes)?),
        Part::Uncompared => Inner::Uncompared(take_all(bytes)?),
        Part::Agents => Inner::Agents(take_all(bytes)?),
        Part::Tasks => Inner::Tasks(take_all(bytes)?),
        Part::Conflicts => {
            Inner::Conflicts(take_all(bytes)?.into_iter().map(|Json(conflict)| conflict).collect())
        }
        Part::Unresolved => Inner::Unresolved(take_all(bytes)?),
        Part::Disputes => Inner::Disputes(take_all(bytes)?),
        Part::OpenDisputes => Inner::OpenDisputes(take_all(bytes)?),
        Part::Inbound => Inner::Inbound(take_all(bytes)?),
        Part::Mentions => Inner::Mentions(take_all(bytes)?),
        Part::Subscriptions => {
            let all = take_all::<(AgentNo, Json<Subscription>)>(bytes)?;
            Inner::Subscriptions(all.into_iter().map(|(agent, Json(of))| (agent, of)).collect())
        }
        Part::Archived => Inner::Archived(take_all(bytes)?),
        Part::Cold => {
            let counts = take_all::<u32>(bytes)?.into_iter().map(u16::try_from);
            Inner::Cold(counts.collect::<Result<_, _>>().ok()?)
        }
        Part::Sweeps => Inner::Sweeps(take_all(bytes)?),
        Part::Purges => Inner::Purges(take_all(bytes)?),
        Part::Ledger => Inner::Ledger(take_all(bytes)?),
        Part::Seen => Inner::Seen(take_all(bytes)?),
    };
    Some(Piece(piece))
}

/// A state in the making.
#[derive(Debug, Default)]
pub struct Assembly {
    head: Option<Head>,
    world: World,
    ledger: Ledger,
    seen: Vec<Timestamp>,
}

impl Assembly {
    /// Adds a piece; they come in the order in which they were written. `None` where it cannot belong there.
    pub fn take(&mut self, piece: Piece) -> Option<()> {
        let world = &mut self.world;
        match piece.0 {
            Inner::Head(head) => {
                (world.last_epoch, world.entries, world.purged) =
                    (head.last_epoch, head.entries, head.purged);
                world.by_status = head.by_status.as_slice().try_into().ok()?;
                self.head = Some(head);
            }
            Inner::Slots(slots) => world.units.extend(slots),
            Inner::Chains(chains) => world.chains.extend(chains),
            Inner::Timeline(committed) => world.timeline.extend(committed),
            Inner::Offstage(units) => world.offstage.extend(units),
            Inner::Pending(units) => world.pending.extend(units),
            Inner::Uncompared(units) => world.uncompared.extend(units),
            Inner::Agents(agents) => {
                for ((record, live), archived) in agents {
                    let no = world.enter_agent(record);
                    *world.live_by_author.get_mut(no as usize)? = live;
                    *world.archived_live_by_author.get_mut(no as usize)? = archived;
                }
            }
            Inner::Tasks(tasks) => {
                for task in tasks {
                    world.enter_task(&task)?;
                }
            }
            Inner::Conflicts(conflicts) => world.conflicts.extend(conflicts),
            Inner::Unresolved(conflicts) => world.unresolved.extend(conflicts),
            Inner::Disputes(lists) => {
                for (unit, of) in lists {
                    world.disputes.entry(unit).or_default().extend(of);
                }
            }
            Inner::OpenDisputes(lists) => {
                for (unit, of) in lists {
                    world.open_disputes.entry(unit).or_default().extend(of);
                }
            }
            Inner::Inbound(lists) => {
                for (target, of) in lists {
                    world.inbound.entry(target).or_default().extend(of);
                }
            }
            Inner::Mentions(lists) => {
                for (entity, of) in lists {
                    world.mentions.entry(entity).or_default().extend(of);
                }
            }
            Inner::Subscriptions(subscriptions) => {
                for (agent, subscription) in subscriptions {
                    world.subscribe(agent, &subscription);
                }
            }
            Inner::Archived(blocks) => {
                for Block(words) in blocks {
                    world.archived.count +=
                        words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
                    world.archived.blocks.push_back(words);
                }
            }
            Inner::Cold(counts) => world.cold.blocks.extend(counts),
            Inner::Sweeps(sweeps) => world.sweeps.extend(sweeps),
            Inner::Purges(purges) => world.purges.extend(purges),
            Inner::Ledger(answered) => self.ledger.extend(answered),
            Inner::Seen(seen) => self.seen.extend(seen.into_iter().map(Timestamp)),
        }
        Some(())
    }

    /// The state, if nothing is missing. Its clock is that of the last entry.
    pub fn finish(self) -> Option<State> {
        let Self { head, world, ledger, seen } = self;
        if Head::of(&world, ledger.len(), seen.len()) != head? {
            return None;
        }
        Some(State {
            clock: world.last_epoch,
            shelving: Shelving::of(&world),
            world,
            ledger,
            presence: Presence::remembered(&seen),
        })
    }
}
