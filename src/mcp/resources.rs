//! The resources: what can be looked at, and which of them an event touches.

use std::collections::BTreeSet;

use rmcp::model::{Resource, ResourceTemplate};

use super::backend::Sight;
use crate::protocol::Notification;

/// The Field's figures.
const STATUS: &str = "akashik://field/status";
/// The unresolved conflicts.
const CONFLICTS: &str = "akashik://conflicts";
/// Stands before a unit's id.
const UNITS: &str = "akashik://units/";
/// The type of all of them.
pub const JSON: &str = "application/json";

/// Longest resource address that is taken for one of ours, bytes.
const URI_MAX_BYTES: usize = 512;

/// What can be listed.
pub fn listed() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, title: &str, description: &str| {
        Resource::new(uri, name).with_title(title).with_description(description).with_mime_type(JSON)
    };
    vec![
        resource(
            STATUS,
            "status",
            "The Field's figures",
            "Its clock, and how many units, agents and conflicts it has",
        ),
        resource(
            CONFLICTS,
            "conflicts",
            "Open conflicts",
            "Contradictions between units that nobody has settled yet",
        ),
    ]
}

/// What can be addressed by its id.
pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{UNITS}{{id}}"), "unit")
            .with_title("A memory unit")
            .with_description("One unit, with its status, the units that relate to it, and its conflicts")
            .with_mime_type(JSON),
    ]
}

/// What an address names; nothing where it is none of ours.
pub fn sight(uri: &str) -> Option<Sight> {
    if uri.len() > URI_MAX_BYTES {
        return None;
    }
    match uri {
        STATUS => Some(Sight::Status),
        CONFLICTS => Some(Sight::Conflicts),
        _ => {
            let id = uri.strip_prefix(UNITS)?;
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
            (!id.is_empty() && id != "." && id != ".." && id.bytes().all(plain))
                .then(|| Sight::Unit(id.to_owned()))
        }
    }
}

/// The addresses whose content events change.
pub fn touched(events: &[Notification]) -> BTreeSet<String> {
    let mut touched = BTreeSet::new();
    for event in events {
        touched.insert(STATUS.to_owned());
        if let Some(unit) = event.memory_unit_id {
            touched.insert(format!("{UNITS}{unit}"));
        }
        if event.conflict_id.is_some() {
            touched.insert(CONFLICTS.to_owned());
        }
    }
    touched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(sight(STATUS), Some(Sight::Status));
        assert_eq!(sight(CONFLICTS), Some(Sight::Conflicts));
        assert_eq!(sight("akashik://units/mem-4.1"), Some(Sight::Unit("mem-4.1".into())));
        let long = format!("{UNITS}{}", "x".repeat(URI_MAX_BYTES));
        for uri in [
            "",
            "akashik://",
            UNITS,
            "akashik://units/a/b",
            "akashik://units/..",
            "file:///etc/passwd",
            "akashik://units/mem-1?x",
            "akashik://units/%2e",
            "AKASHIK://conflicts",
            &long,
        ] {
            assert_eq!(sight(uri), None, "{uri}");
        }
        assert!(listed().iter().all(|resource| sight(&resource.uri).is_some()));
    }

    #[test]
    fn events_touch_what_they_name() {
        let event = |unit: serde_json::Value, conflict: serde_json::Value| -> Notification {
            serde_json::from_value(serde_json::json!({
                "subscription_id": "observer", "event": "memory.recorded", "epoch": 4, "relevance_score": 1.0,
                "summary": "", "memory_unit_id": unit, "conflict_id": conflict, "requires_action": false,
                "cursor": "4.0", "agent_id": "a", "task_id": null,
            }))
            .unwrap()
        };
        let touched = touched(&[event("mem-4".into(), ().into()), event(().into(), "conflict-4".into())]);
        let expected = [CONFLICTS, STATUS, "akashik://units/mem-4"].map(str::to_owned);
        assert_eq!(touched, BTreeSet::from(expected));
    }
}
