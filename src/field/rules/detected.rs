//! Conflicts that nobody told of: suspicions that hold when they are decided (section 7, RECORD and DETECT).
//!
//! A suspicion becomes a conflict if both units stand at this moment and the pair is new: never in a conflict before,
//! resolved or not, and not related by what their authors said (`compare`). Units do not change, so a pair that was
//! settled stays settled; a unit that supersedes one of them makes another pair. Detection never retires anything.
//!
//! A unit that could not be compared with all of the Field is noted with how far it was ([`Event::DetectionDeferred`]),
//! in its own entry, so that a crash forgets nothing; what is noticed later follows as entries by `system`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::decide::Ground;
use super::super::event::Event;
use super::super::state::{UnitNo, World};
use super::super::suspicion::{Finding, Suspected, Suspicion};
use super::compare::{Statement, are_open_to_each_other, disputed, stands};
use super::relate::conflict_type;
use crate::limits::OPEN_CONFLICTS_MAX;
use crate::protocol::{
    Conflict, ConflictId, ConflictStatus, DEFERRED, ErrorCode, MemoryType, Mode, Unit, UnitId, UnitStatus,
    Warning,
};

/// The conformance level from which a Field looks for conflicts by itself.
const LEVEL: u8 = 2;

/// What was noticed on behalf of the message that commits this unit; a draft contradicts nothing yet.
pub(super) fn suspicions<'a>(ground: &Ground<'a>, unit: &Unit) -> &'a [Suspicion] {
    match &ground.message.suspected {
        Suspected::Compared { suspicions, .. }
            if ground.policy.level >= LEVEL && unit.mode == Mode::Committed =>
        {
            suspicions
        }
        _ => &[],
    }
}

/// The standing unit that a new one is suspected to contradict, if the suspicion holds.
pub(super) fn holds_for_new(ground: &Ground<'_>, unit: &Unit, suspicion: &Suspicion) -> Option<UnitNo> {
    let world = &ground.state.world;
    let no = world.find(suspicion.against)?;
    let open = are_open_to_each_other(&Statement::by(unit), &Statement::of(world.slot(no))?);
    (suspicion.against != unit.id && stands(world, no) && open && has_room(world, no, 0)).then_some(no)
}

/// Whether a unit may be in one more unresolved conflict, beside so many that are being made.
fn has_room(world: &World, no: UnitNo, more: usize) -> bool {
    world.open_disputes.get(&no).map_or(0, |open| open.len()) + more < OPEN_CONFLICTS_MAX
}

/// The conflict that a suspicion makes.
pub(super) fn conflict(
    id: ConflictId,
    older: (UnitId, MemoryType),
    newer: (UnitId, MemoryType),
    suspicion: &Suspicion,
) -> Conflict {
    Conflict {
        id,
        kind: conflict_type(older.1, newer.1),
        status: ConflictStatus::Detected,
        unit_a: older.0,
        unit_b: newer.0,
        description: suspicion.description.clone(),
        detected_by: suspicion.by,
        resolution: None,
        ballots: Vec::new(),
        escalation_reason: None,
    }
}

/// Where a committed unit is still to be compared with a part of the Field: the event that says so, and what its
/// author is told.
pub(super) fn deferred(
    ground: &Ground<'_>,
    unit: &Unit,
    events: &mut Vec<Event>,
) -> Option<(String, Option<Warning>)> {
    let committed = ground.state.world.timeline.len();
    let (compared, timed_out) = match &ground.message.suspected {
        Suspected::Unasked => return None,
        Suspected::Compared { with, .. } => (*with, false),
        Suspected::Deferred { timed_out } => (0, *timed_out),
    };
    let rest = ground.policy.level >= LEVEL && (compared as usize) < committed;
    (unit.mode == Mode::Committed && rest).then(|| {
        events.push(Event::DetectionDeferred { memory_unit_id: unit.id, compared });
        let warning = timed_out.then(|| Warning {
            code: ErrorCode::DetectionTimeout.name().to_owned(),
            message: "The unit is in the Field, but comparing it with what is there took too long."
                .to_owned(),
            recoverable: true,
            suggested_action:
                "Nothing needs to be done: it goes on behind, and conflicts follow by themselves.".to_owned(),
        });
        (DEFERRED.to_owned(), warning)
    })
}

/// The events for what was noticed between units in the Field: the findings that hold, as conflicts made by the entry
/// at `epoch`.
pub(in super::super) fn findings(world: &World, epoch: u64, findings: &[Finding]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut pairs = BTreeSet::new();
    let mut contested_now = BTreeSet::new();
    let mut made_of = std::collections::BTreeMap::<UnitNo, usize>::new();
    for Finding { unit, suspicion } in findings {
        let Some((one, other)) = world.find(*unit).zip(world.find(suspicion.against)) else { continue };
        // The older one is the one that was committed first.
        let by_place = |no: &UnitNo| world.slot(*no).place;
        let [older, newer] = if by_place(&one) <= by_place(&other) { [one, other] } else { [other, one] };
        let room = |no: UnitNo| has_room(world, no, made_of.get(&no).copied().unwrap_or(0));
        if !holds(world, older, newer) || !room(older) || !room(newer) || !pairs.insert((older, newer)) {
            continue;
        }
        let id = ConflictId::new(epoch, u32::try_from(events.len()).unwrap_or(u32::MAX));
        let [one, other] = [older, newer].map(|no| (world.slot(no).id, world.slot(no).kind));
        let conflict = conflict(id, one, other, suspicion);
        let mut contested: Vec<UnitId> = Vec::new();
        for no in [older, newer] {
            *made_of.entry(no).or_default() += 1;
            let slot = world.slot(no);
            if slot.status != UnitStatus::Contested && contested_now.insert(no) {
                contested.push(slot.id);
            }
        }
        events.push(Event::ConflictCreated { conflict: Arc::new(conflict), contested });
    }
    events
}

/// Whether a finding between two units of the Field holds.
fn holds(world: &World, older: UnitNo, newer: UnitNo) -> bool {
    let [a, b] = [older, newer].map(|no| world.slot(no));
    older != newer
        && stands(world, older)
        && stands(world, newer)
        && !disputed(world, a.id, newer)
        && Statement::of(a).zip(Statement::of(b)).is_some_and(|(a, b)| are_open_to_each_other(&a, &b))
}
