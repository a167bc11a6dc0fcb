//! DETECT (section 7): the known conflicts that match a filter, for `list` and, once they have looked, for `check` and
//! `scan`.

use std::collections::HashSet;

use serde_json::json;

use super::super::policy::Policy;
use super::super::state::{AgentNo, UnitNo, World};
use super::compare::stands;
use crate::limits::CONFLICTS_LISTED_MAX;
use crate::protocol::{
    Conflict, DetectMode, DetectRequest, Detected, ErrorCode, Refusal, ScanCoverage, UnitId, UnitStatus,
};

/// Lists conflicts, oldest first: all that match, of a check those of its target. Units of a conflict are committed,
/// so every agent may see every conflict. `coverage` is what a check or a scan looked at before.
///
/// # Errors
/// `MESSAGE_TOO_LARGE` when more match than one answer can list: a part of them would look like the whole.
pub fn detect(
    world: &World,
    request: &DetectRequest,
    coverage: Option<ScanCoverage>,
) -> Result<Detected, Refusal> {
    let filter = &request.filter;
    let of_target: Option<UnitId> = match &request.mode {
        DetectMode::Check { target_id } => target_id.parse().ok(),
        DetectMode::List | DetectMode::Scan => None,
    };
    let involved: HashSet<AgentNo> =
        filter.involving_agents.iter().filter_map(|agent| world.agent_no(agent)).collect();
    let matches = |conflict: &Conflict| {
        let wrote = |id| world.find(id).is_some_and(|no| involved.contains(&world.slot(no).author));
        of_target.is_none_or(|target| conflict.partner_of(target).is_some())
            && (filter.status.is_empty() || filter.status.contains(&conflict.status))
            && (filter.types.is_empty() || filter.types.contains(&conflict.kind))
            && (filter.involving_agents.is_empty() || wrote(conflict.unit_a) || wrote(conflict.unit_b))
    };
    let mut conflicts = Vec::new();
    for conflict in world.listed_conflicts().filter(|conflict| matches(conflict)) {
        if conflicts.len() == CONFLICTS_LISTED_MAX {
            return Err(Refusal::new(
                ErrorCode::MessageTooLarge,
                format!("More than {CONFLICTS_LISTED_MAX} conflicts match."),
                "Narrow the filter: give status, types or involving_agents.",
            )
            .with("limit", json!(CONFLICTS_LISTED_MAX)));
        }
        conflicts.push(Conflict::clone(conflict));
    }
    Ok(Detected {
        status: "ok".to_owned(),
        conflicts,
        scan_coverage: coverage.unwrap_or(ScanCoverage { units_scanned: 0, new_conflicts_found: 0 }),
    })
}

/// The unit that a check names.
///
/// # Errors
/// `UNIT_NOT_FOUND` where there is none, or it is another's draft; `INVALID_TRANSITION` where it is not one of those
/// that are compared.
pub fn target(world: &World, policy: &Policy, asker: AgentNo, id: &str) -> Result<UnitNo, Refusal> {
    let Some(no) = world.find_visible(id, Some(asker), policy) else {
        return Err(Refusal::new(
            ErrorCode::UnitNotFound,
            format!("There is no unit {id:?} to be checked."),
            "Name a unit that RECORD or ATTUNE has shown you.",
        )
        .with("key", json!("target_id")));
    };
    let slot = world.slot(no);
    if stands(world, no) {
        return Ok(no);
    }
    let status = if slot.status.is_live() { "archived" } else { slot.status.name() };
    let latest = world.latest(no);
    let advice = match slot.status {
        UnitStatus::Draft => "COMMIT the draft: it is compared then.".to_owned(),
        UnitStatus::Superseded if stands(world, latest) => {
            format!("Check {}, which stands for it now.", world.slot(latest).id)
        }
        _ => "Check a unit that stands: what does not stand contradicts nothing.".to_owned(),
    };
    Err(Refusal::new(ErrorCode::InvalidTransition, format!("{} is {status}.", slot.id), advice)
        .with("key", json!("target_id"))
        .with("status", json!(status)))
}
