//! DETECT (section 7), mode `list`: the known conflicts that match a filter.

use serde_json::Value;

use super::super::state::World;
use crate::protocol::{Conflict, DetectFilter, DetectRequest, Detected, ScanCoverage};

/// Lists conflicts, oldest first. Units of a conflict are committed, so every agent may see every conflict.
pub fn detect(world: &World, request: &DetectRequest) -> Detected {
    let conflicts = world
        .conflicts
        .iter()
        .filter(|conflict| matches(world, conflict, &request.filter))
        .map(|conflict| Conflict::clone(conflict))
        .collect();
    Detected {
        status: "ok".to_owned(),
        conflicts,
        scan_coverage: ScanCoverage { units_scanned: 0, new_conflicts_found: 0 },
    }
}

fn matches(world: &World, conflict: &Conflict, filter: &DetectFilter) -> bool {
    let wrote = |agent: &str| {
        [conflict.unit_a, conflict.unit_b]
            .into_iter()
            .any(|id| world.find(id).is_some_and(|no| &*world.slot(no).unit.source.agent_id == agent))
    };
    (filter.status.is_empty() || filter.status.contains(&conflict.status))
        && (filter.types.is_empty() || filter.types.contains(&conflict.kind))
        && (filter.involving_agents.is_empty() || filter.involving_agents.iter().any(|agent| wrote(agent)))
}

/// Conflicts as the doors print them.
pub(in super::super) fn as_json<'a>(conflicts: impl Iterator<Item = &'a Conflict>) -> Value {
    conflicts.map(|conflict| serde_json::to_value(conflict).unwrap_or_default()).collect()
}
