//! DETECT (section 7), mode `list`.

use serde_json::json;

use super::*;

/// Two conflicts: an open one of ada and bob, and a resolved strategic one of ada alone.
fn stage() -> (Stage, [String; 2]) {
    let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
    let claim = stage.record("ada", "claim");
    let open = stage.relate("bob", &[["contradicts", &claim]]).unit_id();
    let plan = with(finding("plan"), json!({ "type": "decision" }));
    let plan = stage.send("ada", "RECORD", plan).unit_id();
    let other = with(related("other plan", &[["contradicts", &plan]]), json!({ "type": "decision" }));
    let other = stage.send("ada", "RECORD", other).unit_id();
    stage.give_up("ada", "RETRACT", &other).ok();
    (stage, [open, other].map(|unit| unit.replace("mem", "conflict")))
}

#[test]
fn a_list_is_filtered_by_every_condition_and_an_empty_one_is_none() {
    let (mut stage, [open, resolved]) = stage();
    let (open, resolved, both) = (vec![open.clone()], vec![resolved.clone()], vec![open, resolved]);
    for (filter, expected) in [
        (json!(null), &both),
        (json!({}), &both),
        (json!({ "status": [], "types": [], "involving_agents": [] }), &both),
        (json!({ "status": ["detected"] }), &open),
        (json!({ "status": ["resolved"] }), &resolved),
        (json!({ "status": ["detected", "resolved"] }), &both),
        (json!({ "status": ["escalated"] }), &vec![]),
        (json!({ "types": ["strategic"] }), &resolved),
        (json!({ "types": ["factual"] }), &open),
        (json!({ "involving_agents": ["bob"] }), &open),
        (json!({ "involving_agents": ["ada"] }), &both),
        (json!({ "involving_agents": ["eve", "bob"] }), &open),
        (json!({ "involving_agents": ["eve"] }), &vec![]),
        (json!({ "status": ["resolved"], "involving_agents": ["bob"] }), &vec![]),
    ] {
        let answer = stage.send("eve", "DETECT", json!({ "mode": "list", "filter": filter.clone() })).ok();
        let ids: Vec<_> = list(&answer["conflicts"]).iter().map(|conflict| text(&conflict["id"])).collect();
        assert_eq!(ids, *expected, "{filter}");
        assert_eq!(answer["status"], "ok");
        assert_eq!(answer["scan_coverage"], json!({ "units_scanned": 0, "new_conflicts_found": 0 }));
    }
}

#[test]
fn modes_that_are_not_served_are_unsupported_and_unknown_ones_invalid() {
    let mut low = Stage::of_level(1);
    low.join("ada");
    for mode in ["check", "scan"] {
        let refused = low.send("ada", "DETECT", json!({ "mode": mode, "target_id": "mem-1" }));
        assert_eq!(refused.code(), ErrorCode::UnsupportedOperation);
    }
    let (mut stage, _) = stage();
    assert_eq!(stage.send("ada", "DETECT", json!({ "mode": "guess" })).code(), ErrorCode::InvalidMessage);
    for filter in [json!({ "status": ["open"] }), json!({ "types": ["finding"] }), json!([])] {
        let refused = stage.send("ada", "DETECT", json!({ "mode": "list", "filter": filter }));
        assert_eq!(refused.code(), ErrorCode::InvalidMessage);
    }
}
