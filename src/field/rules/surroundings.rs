//! What surrounds an asker: its task with those tied to it, its own units, and the relations that units declare.
//!
//! One task is tied to another where their units say so: a unit of one `depends_on` a unit of the other, or `blocks`
//! it. Either way round, and one step only: what such a task is tied to in turn is another matter.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::state::{AgentNo, Slot, TaskNo, UnitNo, World};
use crate::limits::{CONTEXT_SOUGHT_MAX, CONTEXT_UNITS_MAX, TIES_A_UNIT_MAX};
use crate::protocol::{Relation, RelationType, UnitId, UnitStatus};
use crate::relevance::{Serves, Web};

/// The task that an asker works on.
pub struct ActiveTask {
    /// `None` while no unit ever named it.
    no: Option<TaskNo>,
    tied: HashSet<TaskNo>,
    /// Its newest units.
    units: Vec<UnitNo>,
}

impl ActiveTask {
    /// The task with this id, in this world.
    pub fn new(world: &World, id: &Arc<str>) -> Self {
        let no = world.task_no(id);
        let live = |no: &UnitNo| world.slot(*no).status.is_live();
        let units = world.units_of_task(id, CONTEXT_SOUGHT_MAX).filter(live);
        let units: Vec<UnitNo> = units.take(CONTEXT_UNITS_MAX).collect();
        let mut tied = HashSet::new();
        for unit in &units {
            each_tied(world, *unit, &mut |kind, other| {
                if matches!(kind, RelationType::DependsOn | RelationType::Blocks) {
                    tied.extend(world.slot(other).task);
                }
            });
        }
        Self { no, tied, units }
    }

    /// The tasks whose units serve, it and those tied to it.
    pub fn serving(&self) -> Vec<(TaskNo, Serves)> {
        let tied = self.tied.iter().filter(|task| Some(**task) != self.no);
        let tied = tied.map(|task| (*task, Serves::Dependent));
        tied.chain(self.no.map(|task| (task, Serves::Task))).collect()
    }

    /// Whom a unit serves, seen from this task.
    pub fn served_by(&self, slot: &Slot) -> Serves {
        match slot.task {
            None => Serves::Others,
            task if task == self.no => Serves::Task,
            Some(task) if self.tied.contains(&task) => Serves::Dependent,
            Some(_) => Serves::Others,
        }
    }
}

/// The places of the units that make an asker's context: those of its task, and those it wrote lately.
pub fn context(world: &World, asker: Option<AgentNo>, task: Option<&ActiveTask>) -> Vec<u32> {
    let of_task = task.into_iter().flat_map(|task| task.units.iter().copied());
    let lately = world.timeline.iter().rev().take(CONTEXT_SOUGHT_MAX).map(|(_, no)| *no);
    let own = |no: &UnitNo| {
        let slot = world.slot(*no);
        asker == Some(slot.author) && slot.status.is_live() && !slot.purged
    };
    let own = lately.filter(own).take(CONTEXT_UNITS_MAX);
    of_task.chain(own).filter_map(|no| world.slot(no).place).collect()
}

/// The relations of committed units, as relevance walks them: by places in the timeline.
#[derive(Debug)]
pub struct Relations<'a>(pub &'a World);

impl Relations<'_> {
    fn unit(&self, place: u32) -> Option<UnitNo> {
        self.0.timeline.get(place as usize).map(|(_, no)| *no)
    }
}

impl Web for Relations<'_> {
    fn each_tied(&self, document: u32, each: &mut dyn FnMut(u32)) {
        let Some(unit) = self.unit(document) else { return };
        each_tied(self.0, unit, &mut |_, other| {
            if let Some(place) = self.0.slot(other).place {
                each(place);
            }
        });
    }

    fn in_words(&self, document: u32, other: u32) -> Option<String> {
        let of = |place| self.unit(place).map(|no| self.0.slot(no));
        let (unit, other) = (of(document)?, of(other)?);
        let kind = |from: &Slot, to: &Slot| {
            from.relations().iter().find(|relation| target(relation) == Some(to.id)).map(|found| found.kind)
        };
        let said = |words: &str| format!("{words} {}", other.id);
        kind(unit, other)
            .map(|kind| said(active(kind)))
            .or_else(|| kind(other, unit).map(|kind| said(passive(kind))))
    }
}

/// Calls `each` with the committed units that are one relation away from a unit and were not taken back: those it
/// names, then the newest that name it. Superseded ones are among them: they lead to their successors.
fn each_tied(world: &World, no: UnitNo, each: &mut dyn FnMut(RelationType, UnitNo)) {
    let slot = world.slot(no);
    let stands = |no: &UnitNo| {
        let slot = world.slot(*no);
        slot.place.is_some() && slot.status != UnitStatus::Retracted && !slot.purged
    };
    let outward = slot.relations().iter().take(TIES_A_UNIT_MAX);
    for relation in outward {
        if let Some(other) = target(relation).and_then(|id| world.find(id)).filter(stands) {
            each(relation.kind, other);
        }
    }
    let inward = world.inbound.get(&slot.id).into_iter().flat_map(|of| of.iter().rev());
    for (source, at) in inward.take(TIES_A_UNIT_MAX).filter(|(source, _)| stands(source)) {
        each(world.slot(*source).relations()[*at as usize].kind, *source);
    }
}

fn target(relation: &Relation) -> Option<UnitId> {
    relation.target_id.parse().ok()
}

/// What a unit does to the one that it names.
fn active(kind: RelationType) -> &'static str {
    match kind {
        RelationType::Supports => "supports",
        RelationType::Contradicts => "contradicts",
        RelationType::DependsOn => "depends on",
        RelationType::Supersedes => "supersedes",
        RelationType::CausedBy => "is caused by",
        RelationType::Elaborates => "elaborates",
        RelationType::Answers => "answers",
        RelationType::Blocks => "blocks",
        RelationType::Informs => "informs",
    }
}

/// What happens to a unit by the one that names it.
fn passive(kind: RelationType) -> &'static str {
    match kind {
        RelationType::Supports => "supported by",
        RelationType::Contradicts => "contradicted by",
        RelationType::DependsOn => "needed by",
        RelationType::Supersedes => "superseded by",
        RelationType::CausedBy => "a cause of",
        RelationType::Elaborates => "elaborated by",
        RelationType::Answers => "answered by",
        RelationType::Blocks => "blocked by",
        RelationType::Informs => "informed by",
    }
}
