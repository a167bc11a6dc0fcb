//! The state: a fold over the log, kept in persistent collections.
//!
//! Cloning a [`World`] copies a handful of pointers, so reads get an immutable view of their own while the
//! actor goes on (law 6). What changes about a unit stands in its [`Slot`]; the unit itself is shared.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use imbl::{HashMap as SharedMap, OrdMap, OrdSet, Vector};

use super::kept::{Kept, Shelving};
use super::presence::Presence;
use super::shelf::{Coldness, Marks, Sweep};
use crate::limits;
use crate::protocol::{
    Agent, Conflict, ConflictId, MemoryType, Mode, RelationType, Subscription, UnitId, UnitStatus,
};

/// A unit's place in the order in which units came to be, drafts included.
pub type UnitNo = u32;
/// An agent's place in the order of first registrations.
pub type AgentNo = u32;
/// A conflict's place in the order in which conflicts came to be.
pub type ConflictNo = u32;

/// A task's place in the order in which units first named it, from 1.
pub type TaskNo = NonZeroU32;

/// A chain of supersession's place in the order in which chains came to be.
pub type ChainNo = u32;

/// Units that replaced one another. Chains grow together where a unit replaces the ends of several: the smaller
/// ones then point to the largest, so that the way to the latest unit stays short however long the chains are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// The chain that this one became part of.
    pub(super) part_of: Option<ChainNo>,
    /// How many units it has, those of its parts included.
    pub(super) length: u32,
    /// The unit that now stands for all of them; valid while it is no part of another.
    pub(super) latest: UnitNo,
}

/// A unit and what changes about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Its id, here too so that looking one up touches no unit.
    pub id: UnitId,
    /// The unit itself, or what is left of it in memory.
    pub kept: Kept,
    /// Epoch of its commit; for a draft, of its RECORD.
    pub epoch: u64,
    /// Who wrote it.
    pub author: AgentNo,
    /// The chain of supersession that it belongs to, once it replaced something or was replaced: its number from 1, so
    /// that a slot is one line of the processor's cache.
    pub chain: Option<NonZeroU32>,
    /// Its place in the timeline, once it is committed.
    pub place: Option<u32>,
    /// The task that it serves, here too so that judging a million units touches none of them.
    pub task: Option<TaskNo>,
    /// Its type and mode, here too so that filtering a million units touches none of them.
    pub kind: MemoryType,
    /// Changes once, by COMMIT.
    pub mode: Mode,
    /// Where it stands in its life.
    pub status: UnitStatus,
    /// Deleted (COMPACT): only its place in the order of things is left, so that chains, tasks and the timeline stay
    /// whole. What else stands here is as it last was, but for the unit, which says nothing.
    pub purged: bool,
}

// A million of them are looked through for one ATTUNE.
const _: () = assert!(size_of::<Slot>() == 64);

/// An agent as the Field knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// Its id and role, what it cares about, how it is.
    pub agent: Agent,
    /// Epoch of its last REGISTER.
    pub registered_epoch: u64,
    /// Whether it has held a connection since then: then its life is tied to connections.
    pub holder: bool,
}

/// A subscription and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionRecord {
    /// Who is told.
    pub agent: AgentNo,
    /// Of what.
    pub subscription: Arc<Subscription>,
}

/// Something that entries mention and REPLAY can ask for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Entity {
    /// A unit, in entries after the one that recorded it.
    Unit(UnitNo),
    /// A conflict, in entries after the one that created it.
    Conflict(ConflictNo),
    /// A task, in the entries of its units.
    Task(Arc<str>),
    /// A session, in all its entries.
    Session(Arc<str>),
    /// What an agent was shown, where reads are audited.
    Shown(AgentNo),
}

/// The public part of the state: everything but the memory of messages and of connections.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct World {
    /// All units in the order of their ids.
    pub units: Vector<Slot>,
    /// All chains of supersession.
    pub chains: Vector<Chain>,
    /// Committed units by the epoch of their commit.
    pub timeline: Vector<(u64, UnitNo)>,
    /// Units that stand in no timeline: drafts, and drafts that were discarded; by epoch.
    pub offstage: OrdSet<(u64, UnitNo)>,
    /// Live units that wait for their embedding.
    pub pending: OrdSet<UnitNo>,
    /// Units that are still to be compared with others, by their place in the timeline: how many of the first
    /// committed units each was compared with.
    pub uncompared: OrdMap<u32, u32>,
    /// All agents that ever registered.
    pub agents: Vector<Arc<AgentRecord>>,
    pub(super) agent_numbers: SharedMap<Arc<str>, AgentNo>,
    /// All tasks that units ever named.
    pub(super) tasks: SharedMap<Arc<str>, TaskNo>,
    /// The same the other way round, for units that are purged.
    pub(super) task_ids: Vector<Arc<str>>,
    /// Live units of each agent.
    pub live_by_author: Vector<u32>,
    /// All conflicts in the order of their ids.
    pub conflicts: Vector<Arc<Conflict>>,
    /// The conflicts that wait for a decision.
    pub unresolved: OrdSet<ConflictNo>,
    /// Each unit's conflicts.
    pub disputes: SharedMap<UnitNo, Vector<ConflictNo>>,
    /// Each contested unit's unresolved conflicts.
    pub open_disputes: SharedMap<UnitNo, OrdSet<ConflictNo>>,
    /// Relations of committed units by their target, which need not exist.
    pub inbound: SharedMap<UnitId, Vector<(UnitNo, u32)>>,
    /// Where in the log (epochs) something is mentioned: an index into the log, nothing of its content.
    pub mentions: SharedMap<Entity, Vector<u64>>,
    /// All subscriptions by their ids, which are the Field's, not the agent's.
    pub subscriptions: SharedMap<Arc<str>, SubscriptionRecord>,
    /// Each agent's subscriptions.
    pub subscribed: SharedMap<AgentNo, OrdSet<Arc<str>>>,
    /// The units that are out of ATTUNE unless asked for (COMPACT).
    pub archived: Marks,
    /// Live units of each agent that are archived.
    pub archived_live_by_author: Vector<u32>,
    /// Where in the timeline all units are archived or purged.
    pub cold: Coldness,
    /// The COMPACTs that touched many units, oldest first; what few of them did stands among the mentions.
    pub sweeps: Vector<Sweep>,
    /// What was purged, oldest first: those who keep anything of a unit beside the world let go of it.
    pub purges: Vector<Sweep>,
    /// How many committed units were purged.
    pub purged: u64,
    /// How many units stand in each status, in the order of [`UnitStatus::ALL`].
    pub by_status: [u64; UnitStatus::ALL.len()],
    /// Entries in the log.
    pub entries: u64,
    /// Epoch of the last entry; 0 before the first.
    pub last_epoch: u64,
}

impl World {
    /// The slot of a unit.
    ///
    /// # Panics
    /// On a number that this world did not give out.
    pub fn slot(&self, no: UnitNo) -> &Slot {
        &self.units[no as usize]
    }

    /// The unit with this id, whoever may see it; none once it is purged.
    pub fn find(&self, id: UnitId) -> Option<UnitNo> {
        self.find_ever(id).filter(|no| !self.slot(*no).purged)
    }

    /// The unit that has or had this id.
    pub fn find_ever(&self, id: UnitId) -> Option<UnitNo> {
        let at = self.units.binary_search_by(|slot| slot.id.cmp(&id)).ok()?;
        UnitNo::try_from(at).ok()
    }

    /// How many units were committed before an epoch: where the timeline goes on from it.
    pub fn committed_before(&self, epoch: u64) -> usize {
        let place = self.timeline.binary_search_by(|(committed, _)| {
            if *committed < epoch { Ordering::Less } else { Ordering::Greater }
        });
        place.unwrap_or_else(|at| at)
    }

    /// The unit that now stands for this one: itself, or the end of its chain of supersession.
    pub fn latest(&self, no: UnitNo) -> UnitNo {
        self.chain_of(no).map_or(no, |chain| self.chains[self.whole(chain) as usize].latest)
    }

    /// The chain that a unit belongs to, as it was when the unit joined it.
    fn chain_of(&self, no: UnitNo) -> Option<ChainNo> {
        self.slot(no).chain.map(|number| number.get() - 1)
    }

    /// The chain that a chain is now part of, itself where it stands alone.
    fn whole(&self, mut chain: ChainNo) -> ChainNo {
        while let Some(larger) = self.chains[chain as usize].part_of {
            chain = larger;
        }
        chain
    }

    /// Puts `successor` at the end of the chains of the units that it replaces.
    pub(super) fn chain_up(&mut self, successor: UnitNo, replaced: &[UnitNo]) {
        let members = || replaced.iter().copied().chain([successor]);
        let mut wholes: Vec<ChainNo> =
            members().filter_map(|no| self.chain_of(no)).map(|chain| self.whole(chain)).collect();
        wholes.sort_unstable();
        wholes.dedup();
        let largest = wholes.iter().copied().max_by_key(|chain| self.chains[*chain as usize].length);
        let whole = largest.unwrap_or_else(|| {
            self.chains.push_back(Chain { part_of: None, length: 0, latest: successor });
            ChainNo::try_from(self.chains.len() - 1).expect("fewer chains than units")
        });
        let mut length = self.chains[whole as usize].length;
        for part in wholes.into_iter().filter(|part| *part != whole) {
            length += self.chains[part as usize].length;
            self.chains[part as usize].part_of = Some(whole);
        }
        for no in members().collect::<Vec<_>>() {
            if self.chain_of(no).is_none() {
                self.units[no as usize].chain = NonZeroU32::new(whole + 1);
                length += 1;
            }
        }
        self.chains[whole as usize] = Chain { part_of: None, length, latest: successor };
    }

    /// The number of the agent with this id.
    pub fn agent_no(&self, id: &str) -> Option<AgentNo> {
        self.agent_numbers.get(id).copied()
    }

    /// An agent.
    ///
    /// # Panics
    /// On a number that this world did not give out.
    pub fn agent(&self, no: AgentNo) -> &AgentRecord {
        &self.agents[no as usize]
    }

    /// The number of the task with this id, if a unit ever named it.
    pub fn task_no(&self, id: &str) -> Option<TaskNo> {
        self.tasks.get(id).copied()
    }

    /// The id of a task.
    pub fn task_id(&self, no: TaskNo) -> Option<&Arc<str>> {
        self.task_ids.get(no.get() as usize - 1)
    }

    /// The units that the last `sought` entries about a task recorded, each once, the newest first.
    pub fn units_of_task(&self, id: &Arc<str>, sought: usize) -> impl Iterator<Item = UnitNo> {
        let task = self.task_no(id);
        let epochs = self.mentions.get(&Entity::Task(Arc::clone(id)));
        let recorded = epochs.into_iter().flat_map(|epochs| epochs.iter().rev()).take(sought);
        // A unit is named by the epoch that recorded it; what other mentions find is of another task.
        let units = |epoch: &u64| self.recorded_at(*epoch);
        let its = move |no: &UnitNo| task.is_some() && self.slot(*no).task == task && !self.slot(*no).purged;
        recorded.flat_map(units).filter(its).take(sought)
    }

    /// The units that one operation recorded, the newest first; mostly one, or none.
    fn recorded_at(&self, epoch: u64) -> impl Iterator<Item = UnitNo> + use<> {
        let first =
            self.units.binary_search_by(|slot| slot.id.cmp(&UnitId::new(epoch, 0))).unwrap_or_else(|at| at);
        let own =
            self.units.focus().narrow(first..).into_iter().take_while(|slot| slot.id.epoch == epoch).count();
        (first as UnitNo..(first + own) as UnitNo).rev()
    }

    /// The conflict with this id.
    pub fn find_conflict(&self, id: ConflictId) -> Option<ConflictNo> {
        let at = self.conflicts.binary_search_by(|conflict| conflict.id.cmp(&id)).ok()?;
        ConflictNo::try_from(at).ok()
    }

    /// How many units stand in a status.
    pub fn count(&self, status: UnitStatus) -> u64 {
        self.by_status[status as usize]
    }

    /// The relations that point at a unit, the newest first: kind, description and source.
    pub fn inbound_of(&self, id: UnitId) -> impl Iterator<Item = (RelationType, Option<&str>, &Slot)> {
        self.inbound.get(&id).into_iter().flat_map(|of| of.iter().rev()).filter_map(|&(source, at)| {
            let slot = self.slot(source);
            // A purged source says nothing any more.
            let relation = slot.relations().get(at as usize)?;
            Some((relation.kind, relation.description.as_deref(), slot))
        })
    }

    /// Enters an agent, or replaces what is known of it.
    pub(super) fn enter_agent(&mut self, record: AgentRecord) -> AgentNo {
        let id = Arc::clone(&record.agent.id);
        if let Some(no) = self.agent_no(&id) {
            self.agents[no as usize] = Arc::new(record);
            return no;
        }
        let no = AgentNo::try_from(self.agents.len()).expect("fewer than 2^32 agents");
        self.agents.push_back(Arc::new(record));
        self.live_by_author.push_back(0);
        self.archived_live_by_author.push_back(0);
        self.agent_numbers.insert(id, no);
        no
    }

    /// Enters the agents that registered since, as they are in a later world of the same Field: numbers of agents then
    /// mean the same in both.
    pub fn admit(&mut self, later: &Self) {
        for record in later.agents.skip(self.agents.len().min(later.agents.len())) {
            self.enter_agent(AgentRecord::clone(&record));
        }
    }

    /// Purges what was purged since, and discards the drafts that were, as a later world of the same Field knows it:
    /// neither is shown by any past.
    pub fn forget(&mut self, later: &Self) {
        for sweep in later.purges.skip(self.purges.len().min(later.purges.len())) {
            let there = |no: &UnitNo| (*no as usize) < self.units.len() && !self.slot(*no).purged;
            let units: Vec<UnitNo> = sweep.units.iter().copied().filter(there).collect();
            self.purge(&units, sweep.epoch);
        }
        let discarded = |no: &UnitNo| {
            let (then, now) = (self.slot(*no).status, later.slot(*no).status);
            then == UnitStatus::Draft && now == UnitStatus::Retracted && later.slot(*no).mode == Mode::Draft
        };
        let drafts: Vec<UnitNo> = self.offstage.iter().map(|(_, no)| *no).filter(discarded).collect();
        drafts.into_iter().for_each(|no| self.set_status(no, UnitStatus::Retracted));
    }

    /// The number of a task, given now if it has none.
    pub(super) fn enter_task(&mut self, id: &Arc<str>) -> Option<TaskNo> {
        if let Some(no) = self.task_no(id) {
            return Some(no);
        }
        let no = u32::try_from(self.tasks.len() + 1).ok().and_then(TaskNo::new)?;
        self.tasks.insert(Arc::clone(id), no);
        self.task_ids.push_back(Arc::clone(id));
        Some(no)
    }

    /// Changes what is known of an agent, if it is known.
    pub(super) fn change_agent(&mut self, id: &str, change: impl FnOnce(&mut AgentRecord)) {
        if let Some(no) = self.agent_no(id) {
            change(Arc::make_mut(&mut self.agents[no as usize]));
        }
    }

    /// An agent's subscriptions, by id.
    pub fn subscriptions_of(&self, agent: AgentNo) -> impl Iterator<Item = &Arc<Subscription>> {
        let ids = self.subscribed.get(&agent).into_iter().flatten();
        ids.filter_map(|id| self.subscriptions.get(id)).map(|record| &record.subscription)
    }

    /// Enters a subscription, or replaces what is known of it.
    pub(super) fn subscribe(&mut self, agent: AgentNo, subscription: &Arc<Subscription>) {
        let id = Arc::clone(&subscription.id);
        let record = SubscriptionRecord { agent, subscription: Arc::clone(subscription) };
        self.subscribed.entry(agent).or_default().insert(Arc::clone(&id));
        self.subscriptions.insert(id, record);
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&mut self, id: &str) {
        let Some(record) = self.subscriptions.remove(id) else { return };
        if let Some(of_agent) = self.subscribed.get_mut(&record.agent) {
            of_agent.remove(id);
            if of_agent.is_empty() {
                self.subscribed.remove(&record.agent);
            }
        }
    }

    /// Ends all subscriptions of an agent.
    pub(super) fn unsubscribe_all(&mut self, agent: AgentNo) {
        for id in self.subscribed.remove(&agent).into_iter().flatten() {
            self.subscriptions.remove(&id);
        }
    }

    /// Moves a unit to a status, keeping the counts.
    pub(super) fn set_status(&mut self, no: UnitNo, status: UnitStatus) {
        let slot = &mut self.units[no as usize];
        let (author, before) = (slot.author, std::mem::replace(&mut slot.status, status));
        if !status.is_live() {
            self.pending.remove(&no);
        }
        self.by_status[before as usize] -= 1;
        self.by_status[status as usize] += 1;
        match (before.is_live(), status.is_live()) {
            (true, false) => self.live_by_author[author as usize] -= 1,
            (false, true) => self.live_by_author[author as usize] += 1,
            _ => return,
        }
        if self.archived.contains(no) {
            self.count_archived_live(author, status.is_live());
        }
    }

    /// Notes that the units up to this place in the timeline have been compared.
    pub(super) fn compared_through(&mut self, place: u32) {
        // One by one: cutting the map in two would go through all that is left of it.
        while let Some((first, _)) = self.uncompared.get_min().filter(|(first, _)| *first <= place) {
            let first = *first;
            self.uncompared.remove(&first);
        }
    }

    /// Notes that the entry at `epoch` mentions something, once.
    pub(super) fn mention(&mut self, entity: Entity, epoch: u64) {
        let epochs = self.mentions.entry(entity).or_default();
        if epochs.last() != Some(&epoch) {
            epochs.push_back(epoch);
        }
    }

    /// The text that the world already holds for this agent, role or session, so that a million units do not
    /// carry a million copies of it.
    pub(super) fn interned_session(&self, session: &Arc<str>) -> Arc<str> {
        match self.mentions.get_key_value(&Entity::Session(Arc::clone(session))) {
            Some((Entity::Session(known), _)) => Arc::clone(known),
            _ => Arc::clone(session),
        }
    }
}

/// The messages that were answered, for repeats (section 2, idempotency).
///
/// Only hashes are kept: the first answer stands in the log, at the epoch given here.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// By key: how many messages were remembered before it, the forgotten ones included.
    pub(super) known: HashMap<[u64; 2], u64>,
    /// How many of the messages that were ever remembered are forgotten.
    pub(super) forgotten: u64,
    /// Those that are not, oldest first; a copy of it is cheap, so that it can be written while others come.
    pub(super) order: Vector<Answered>,
}

/// A message that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// Its key, in two halves.
    pub(super) key: [u64; 2],
    /// When it was answered.
    pub(super) at_ms: u64,
    /// Epoch of its entry.
    pub(super) epoch: u64,
    /// Stands for its operation and payload.
    pub(super) digest: u64,
}

/// Where a message's first answer stands, and what it asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// Epoch of its entry.
    pub epoch: u64,
    /// Stands for its operation and payload.
    pub digest: u64,
}

/// How many messages were forgotten before does not matter to what is remembered.
impl PartialEq for Ledger {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

fn halves(key: u128) -> [u64; 2] {
    [(key >> 64) as u64, key as u64]
}

impl Ledger {
    /// What is remembered of a message.
    pub fn get(&self, key: u128) -> Option<Remembered> {
        let before = self.known.get(&halves(key))?.checked_sub(self.forgotten)?;
        let answered = self.order.get(usize::try_from(before).ok()?)?;
        Some(Remembered { epoch: answered.epoch, digest: answered.digest })
    }

    /// How many messages are remembered.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether no message is remembered.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Remembers a message answered at `at_ms`, and forgets those that are both old and many messages ago.
    pub(super) fn remember(&mut self, key: u128, remembered: Remembered, at_ms: u64) {
        let Remembered { epoch, digest } = remembered;
        self.push(Answered { key: halves(key), at_ms, epoch, digest });
        while self.order.len() > limits::REMEMBERED_MESSAGES_MIN {
            let oldest = *self.order.front().expect("it is not empty");
            if at_ms.saturating_sub(oldest.at_ms) <= limits::REMEMBERED_AGE_MIN_MS {
                break;
            }
            self.order.pop_front();
            // A message that came again after it was forgotten is known by its later place.
            if self.known.get(&oldest.key) == Some(&self.forgotten) {
                self.known.remove(&oldest.key);
            }
            self.forgotten += 1;
        }
    }

    /// Takes in messages as they were remembered.
    pub(super) fn extend(&mut self, answered: Vec<Answered>) {
        self.known.reserve(answered.len());
        answered.into_iter().for_each(|answered| self.push(answered));
    }

    fn push(&mut self, answered: Answered) {
        self.known.insert(answered.key, self.forgotten + self.order.len() as u64);
        self.order.push_back(answered);
    }
}

/// All that a Field knows.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The Lamport clock: the greatest epoch handed out. Reads move it too, so it is not a fold over the log;
    /// a restart sets it to the reserved mark.
    pub clock: u64,
    /// What the log says.
    pub world: World,
    /// Which messages were answered.
    pub ledger: Ledger,
    /// Which agents hold connections; not in the log.
    pub presence: Presence,
    /// Whose texts are to leave memory.
    pub shelving: Shelving,
}

impl AgentRecord {
    /// Whether it ever registered: the Field itself, as an author, did not.
    pub fn is_registered(&self) -> bool {
        self.registered_epoch > 0
    }

    /// Whether it may send operations without registering again.
    pub fn is_active(&self) -> bool {
        self.agent.status.is_active()
    }
}
