//! What COMPACT does to the world: units archived, taken back, purged.

use std::sync::{Arc, LazyLock};

use super::shelf::Sweep;
use super::state::{AgentNo, Entity, Slot, UnitNo, World};
use super::unit_ids::UnitIds;
use crate::protocol::{Intent, MemoryType, Mode, Source, Timestamp, Unit, UnitId, UnitStatus};

/// Units of one COMPACT that are each noted by themselves; more are one sweep. So there are few sweeps to look
/// through, and no COMPACT costs more than its units.
const NOTED_EACH: usize = 1_024;

/// What stands in the place of a purged unit.
static NOTHING: LazyLock<Arc<Unit>> = LazyLock::new(|| {
    Arc::new(Unit {
        id: UnitId::new(0, 0),
        mode: Mode::Committed,
        kind: MemoryType::Finding,
        content: "".into(),
        intent: Intent { purpose: "".into(), task_id: None, question: None },
        confidence: None,
        source: Source {
            agent_id: "".into(),
            agent_role: "".into(),
            session_id: None,
            timestamp: Timestamp::default(),
        },
        relations: Vec::new(),
    })
});

/// The unit that stands in the place of every purged one.
pub(super) fn nothing() -> Arc<Unit> {
    Arc::clone(&NOTHING)
}

impl World {
    /// Whether a unit is out of ATTUNE unless asked for.
    pub fn is_archived(&self, no: UnitNo) -> bool {
        self.archived.contains(no)
    }

    /// How many live units are archived, of one agent or of all.
    pub fn archived_live(&self, author: Option<AgentNo>) -> u64 {
        match author {
            Some(author) => self.archived_live_by_author.get(author as usize).copied().unwrap_or(0).into(),
            None => self.archived_live_by_author.iter().map(|count| u64::from(*count)).sum(),
        }
    }

    /// The numbers of units, in the order of their ids; those that were purged are left out.
    pub fn numbers_of(&self, ids: &UnitIds) -> Vec<UnitNo> {
        let mut units = self.units.focus();
        let (mut at, end) = (0, units.len());
        let mut found = Vec::with_capacity(ids.len());
        for id in ids.as_slice() {
            // Mostly the next one; else a little further, so that few of them are looked at.
            let mut step = 1;
            while at + step < end && units.index(at + step).id <= *id {
                at += step;
                step *= 2;
            }
            let (mut low, mut high) = (at, end.min(at + step));
            while low < high {
                let middle = low + (high - low) / 2;
                if units.index(middle).id < *id { low = middle + 1 } else { high = middle }
            }
            at = low;
            let known = |slot: &Slot| slot.id == *id && !slot.purged;
            if at < end && known(units.index(at)) {
                found.push(at as UnitNo);
            } else {
                at = at.min(end.saturating_sub(1));
            }
        }
        found
    }

    /// Puts units away.
    pub(super) fn archive(&mut self, units: &[UnitNo], epoch: u64) {
        // The actor does this, of a hundred thousand at once: each unit is looked up on the way along, and what its author
        // has is counted at the end.
        let mut slots = self.units.focus();
        let mut live = vec![0; self.archived_live_by_author.len()];
        for no in units {
            if self.archived.set(*no, true) {
                let Slot { author, status, place, .. } = *slots.index(*no as usize);
                live[author as usize] += u32::from(status.is_live());
                if let Some(place) = place {
                    self.cold.count(place, true);
                }
            }
        }
        drop(slots);
        for (author, more) in live.into_iter().enumerate().filter(|(_, more)| *more > 0) {
            self.archived_live_by_author[author] += more;
        }
        self.note_sweep(units, epoch);
    }

    /// A unit is asked for again.
    pub(super) fn take_back(&mut self, no: UnitNo) {
        if !self.archived.set(no, false) {
            return;
        }
        let Slot { author, status, place, .. } = *self.slot(no);
        if status.is_live() {
            self.count_archived_live(author, false);
        }
        if let Some(place) = place {
            self.cold.count(place, false);
        }
    }

    pub(super) fn count_archived_live(&mut self, author: AgentNo, one_more: bool) {
        let count = &mut self.archived_live_by_author[author as usize];
        *count = if one_more { *count + 1 } else { *count - 1 };
    }

    /// Deletes units: nothing of what they said is left here.
    pub(super) fn purge(&mut self, units: &[UnitNo], epoch: u64) {
        // While their tasks can still be told.
        self.note_sweep(units, epoch);
        for no in units {
            self.take_back(*no);
            self.pending.remove(no);
            self.silence_disputes(*no);
            let Slot { id, epoch, author, status, place, .. } = *self.slot(*no);
            self.inbound.remove(&id);
            self.offstage.remove(&(epoch, *no));
            self.by_status[status as usize] -= 1;
            if status.is_live() {
                self.live_by_author[author as usize] -= 1;
            }
            if let Some(place) = place {
                self.cold.count(place, true);
                self.purged += 1;
            }
            let slot = &mut self.units[*no as usize];
            slot.unit = nothing();
            slot.purged = true;
        }
        self.purges.push_back(Sweep { epoch, units: units.into() });
    }

    /// The conflicts of a unit that is purged are told of no more, and keep nothing of what it said.
    fn silence_disputes(&mut self, no: UnitNo) {
        for conflict in self.disputes.remove(&no).into_iter().flatten() {
            self.unresolved.remove(&conflict);
            let conflict = Arc::make_mut(&mut self.conflicts[conflict as usize]);
            conflict.description = "".into();
            conflict.escalation_reason = None;
        }
    }

    /// Notes that the entry at `epoch` tells of these units and their tasks.
    fn note_sweep(&mut self, units: &[UnitNo], epoch: u64) {
        let mut slots = self.units.focus();
        let mut tasks: Vec<_> =
            units.iter().filter_map(|no| Some((slots.index(*no as usize).task?, *no))).collect();
        drop(slots);
        tasks.sort_unstable();
        tasks.dedup_by_key(|(task, _)| *task);
        for (_, no) in tasks {
            if let Some(task) = self.slot(no).unit.intent.task_id.clone() {
                self.mention(Entity::Task(task), epoch);
            }
        }
        if units.len() > NOTED_EACH {
            self.sweeps.push_back(Sweep { epoch, units: units.into() });
            return;
        }
        for no in units {
            self.mention(Entity::Unit(*no), epoch);
        }
    }

    /// Where in the log it is told of a unit after its RECORD, in order.
    pub(super) fn mentions_of(&self, no: UnitNo) -> Vec<u64> {
        let each = self.mentions.get(&Entity::Unit(no)).into_iter().flatten().copied();
        let swept = self.sweeps.iter().filter(|sweep| sweep.units.binary_search(&no).is_ok());
        let mut all: Vec<u64> = each.chain(swept.map(|sweep| sweep.epoch)).collect();
        all.sort_unstable();
        all
    }

    /// How many units a purge of everything would delete: committed ones whose conflicts are settled.
    pub(super) fn purgeable(&self) -> u64 {
        self.timeline.len() as u64 - self.purged - self.count(UnitStatus::Contested)
    }
}
