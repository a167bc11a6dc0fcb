//! DETECT (section 7), mode `list`: the known conflicts that match a filter.

use std::collections::HashSet;

use serde_json::json;

use super::super::state::{AgentNo, World};
use crate::limits::CONFLICTS_LISTED_MAX;
use crate::protocol::{Conflict, DetectRequest, Detected, ErrorCode, Refusal, ScanCoverage};

/// Lists conflicts, oldest first. Units of a conflict are committed, so every agent may see every conflict.
///
/// # Errors
/// `MESSAGE_TOO_LARGE` when more match than one answer can list: a part of them would look like the whole.
pub fn detect(world: &World, request: &DetectRequest) -> Result<Detected, Refusal> {
    let filter = &request.filter;
    let involved: HashSet<AgentNo> =
        filter.involving_agents.iter().filter_map(|agent| world.agent_no(agent)).collect();
    let matches = |conflict: &Conflict| {
        let wrote = |id| world.find(id).is_some_and(|no| involved.contains(&world.slot(no).author));
        (filter.status.is_empty() || filter.status.contains(&conflict.status))
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
        scan_coverage: ScanCoverage { units_scanned: 0, new_conflicts_found: 0 },
    })
}
