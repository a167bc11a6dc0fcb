//! MERGE: which strategy a conflict takes where it stands, and every way to be refused (sections 6, 7 and 12).

use serde_json::json;

use super::*;

const STATUSES: [&str; 4] = ["detected", "resolving", "escalated", "resolved"];

/// A dispute whose conflict has come to this status.
fn standing(status: &str) -> (Stage, Dispute) {
    let (mut stage, dispute) = Dispute::staged();
    let (b, conflict) = (&dispute.b, &dispute.conflict);
    match status {
        "resolving" => stage.merge("kim", conflict, "vote", json!({ "winner_id": b })).ok(),
        "escalated" => stage.merge("kim", conflict, "human_escalation", json!({})).ok(),
        "resolved" => stage.merge("kim", conflict, "last_write_wins", json!({})).ok(),
        _ => json!(null),
    };
    assert_eq!(stage.conflict("kim", conflict)["status"], status);
    (stage, dispute)
}

/// The answer's status, or the refusal's code; a refusal changes nothing.
fn outcome(stage: &mut Stage, dispute: &Dispute, strategy: &str, resolution: Value) -> String {
    let (world, kept) = (stage.state.world.clone(), stage.kept.len());
    let (clock, reply) = (stage.state.clock, stage.merge("ada", &dispute.conflict, strategy, resolution));
    match reply.outcome {
        Ok(answer) => {
            assert_eq!(stage.kept.len(), kept + 1, "one entry, whatever the steps");
            assert_eq!(answer["conflict"], stage.conflict("kim", &dispute.conflict));
            text(&answer["status"])
        }
        Err(refusal) => {
            assert!(stage.state.world == world && stage.kept.len() == kept, "{refusal}");
            assert_eq!(stage.state.clock, clock, "a refusal takes no epoch");
            assert_eq!(refusal.details["conflict_id"], json!(dispute.conflict), "{refusal}");
            refusal.code.to_string()
        }
    }
}

#[test]
fn each_status_takes_its_strategies_and_no_other() {
    // Strategy, whether a winner is named, and what comes of it in each of the statuses.
    let no = "INVALID_TRANSITION";
    let table = [
        ("last_write_wins", false, ["resolved", no, no, no]),
        ("last_write_wins", true, ["MERGE_FAILED", no, no, no]),
        ("confidence_weighted", false, ["resolved", no, no, no]),
        ("confidence_weighted", true, ["MERGE_FAILED", no, no, no]),
        ("human_escalation", false, ["escalated", "escalated", no, no]),
        ("human_escalation", true, [no, no, "resolved", no]),
        ("authority", false, ["escalated", no, no, no]),
        ("authority", true, ["escalated", no, no, no]),
        ("evidence_count", false, ["escalated", no, no, no]),
        ("evidence_count", true, ["escalated", no, no, no]),
        ("synthesis", false, ["resolved", no, no, no]),
        ("synthesis", true, ["MERGE_FAILED", no, no, no]),
        ("vote", false, ["MERGE_FAILED", "MERGE_FAILED", no, no]),
        ("vote", true, ["pending_vote", "pending_vote", no, no]),
    ];
    for (strategy, named, outcomes) in table {
        for (status, expected) in STATUSES.into_iter().zip(outcomes) {
            let (mut stage, dispute) = standing(status);
            let winner = named.then_some(&dispute.a);
            let synthesis = (strategy == "synthesis").then_some("It depends.");
            let resolution = json!({ "winner_id": winner, "synthesis": synthesis });
            let found = outcome(&mut stage, &dispute, strategy, resolution);
            assert_eq!(found, expected, "{strategy}, winner named: {named}, when {status}");
            invariants::check(&stage.state.world);
            assert_eq!(stage.rebuilt().world, stage.state.world);
        }
    }
}

#[test]
fn a_refused_transition_says_where_the_conflict_stands_and_what_it_takes() {
    for (status, strategy, named, advice) in [
        ("detected", "human_escalation", true, "without winner_id first"),
        ("resolving", "synthesis", false, "strategy vote"),
        ("escalated", "vote", true, "human_escalation with resolution.winner_id"),
        ("escalated", "human_escalation", false, "one of A, B (resolution.winner_id)"),
        ("resolved", "vote", true, "final"),
    ] {
        let (mut stage, dispute) = standing(status);
        let winner = named.then_some(&dispute.a);
        let refusal =
            stage.merge("ada", &dispute.conflict, strategy, json!({ "winner_id": winner })).refusal();
        assert_eq!(
            (refusal.code, &refusal.details["status"]),
            (ErrorCode::InvalidTransition, &json!(status))
        );
        assert!(refusal.message.contains(status) && refusal.message.contains(strategy), "{refusal}");
        let advice = advice.replace("A, B", &format!("{}, {}", dispute.a, dispute.b));
        assert!(refusal.suggested_action.contains(&advice), "{refusal}");
    }
}

#[test]
fn what_a_resolution_says_must_make_sense_with_its_strategy() {
    for (strategy, resolution, key) in [
        ("last_write_wins", json!({ "winner_id": "mem-1" }), "winner_id"),
        ("authority", json!({ "winner_id": "mem-99" }), "winner_id"),
        ("vote", json!({ "winner_id": "the first one" }), "winner_id"),
        ("vote", json!({}), "winner_id"),
        ("synthesis", json!({}), "synthesis"),
        ("synthesis", json!({ "synthesis": null }), "synthesis"),
        ("synthesis", json!({ "synthesis": " \n" }), "synthesis"),
        ("last_write_wins", json!({ "synthesis": "It depends." }), "synthesis"),
        ("human_escalation", json!({ "synthesis": "It depends." }), "synthesis"),
    ] {
        let (mut stage, dispute) = standing("detected");
        let refusal = stage.merge("ada", &dispute.conflict, strategy, resolution.clone()).refusal();
        let key = json!(format!("resolution.{key}"));
        assert_eq!((refusal.code, &refusal.details["key"]), (ErrorCode::MergeFailed, &key), "{resolution}");
    }
    // An empty one beside another strategy is none.
    let (mut stage, dispute) = standing("detected");
    assert_eq!(outcome(&mut stage, &dispute, "last_write_wins", json!({ "synthesis": "" })), "resolved");
    // The names of the two are told to whoever named neither.
    let (mut stage, dispute) = standing("detected");
    let refusal = stage.merge("ada", &dispute.conflict, "vote", json!({ "winner_id": "mem-1" })).refusal();
    assert!(
        [&dispute.a, &dispute.b].iter().all(|unit| refusal.suggested_action.contains(*unit)),
        "{refusal}"
    );
}

#[test]
fn an_unknown_conflict_is_not_found_whatever_it_looks_like() {
    let (mut stage, dispute) = standing("detected");
    for unknown in ["conflict-1", "conflict-999999", &dispute.a, "nonsense", "conflict-05"] {
        let refusal = stage.merge("ada", unknown, "last_write_wins", json!({})).refusal();
        assert_eq!(
            (refusal.code, &refusal.details["key"]),
            (ErrorCode::ConflictNotFound, &json!("conflict_id"))
        );
    }
}

#[test]
fn a_payload_is_judged_in_the_order_of_its_keys_and_before_the_conflict() {
    let (mut stage, dispute) = standing("resolved");
    let long = "x".repeat(crate::limits::CONTENT_MAX_BYTES + 1);
    let rationale = "r".repeat(crate::limits::RATIONALE_MAX_BYTES);
    let mut payload = json!({ "resolution": { "winner_id": 7, "synthesis": long } });
    for (key, right) in [
        ("conflict_id", json!("conflict-99")),
        ("strategy", json!("vote")),
        ("resolution.rationale", json!(rationale)),
        ("resolution.winner_id", json!("mem-99")),
        ("resolution.synthesis", json!("text")),
    ] {
        for wrong in [json!(null), json!(" "), json!({ "x": 1 }), json!(format!("{rationale}x"))] {
            let mut payload = payload.clone();
            let optional = ["resolution.winner_id", "resolution.synthesis"].contains(&key);
            if !optional {
                *at(&mut payload, key) = wrong;
            }
            let refusal = stage.send("ada", "MERGE", payload).refusal();
            assert_eq!(
                (refusal.code, &refusal.details["key"]),
                (ErrorCode::InvalidMessage, &json!(key)),
                "{refusal}"
            );
        }
        *at(&mut payload, key) = right;
    }
    assert_eq!(stage.send("ada", "MERGE", payload.clone()).code(), ErrorCode::ConflictNotFound);
    payload["conflict_id"] = json!(dispute.conflict);
    // The state is judged before what the resolution says.
    assert_eq!(stage.send("ada", "MERGE", payload).code(), ErrorCode::InvalidTransition);
    for (key, resolution) in [("resolution", json!(null)), ("resolution", json!("so"))] {
        let payload = json!({ "conflict_id": "c", "strategy": "vote", "resolution": resolution });
        assert_eq!(stage.send("ada", "MERGE", payload).refusal().details["key"], json!(key));
    }
    let payload = json!({ "conflict_id": "c", "strategy": "dice", "resolution": { "rationale": "r" } });
    let refusal = stage.send("ada", "MERGE", payload).refusal();
    assert_eq!((refusal.code, &refusal.details["key"]), (ErrorCode::InvalidMessage, &json!("strategy")));
    assert!(refusal.suggested_action.contains("human_escalation"), "the known ones are named: {refusal}");
}

#[test]
fn detect_finds_conflicts_by_where_they_stand() {
    for status in STATUSES {
        let (mut stage, dispute) = standing(status);
        for asked in STATUSES {
            let filter = json!({ "mode": "list", "filter": { "status": [asked] } });
            let found = list(&stage.send("kim", "DETECT", filter).ok()["conflicts"]);
            let ids: Vec<_> = found.iter().map(|conflict| text(&conflict["id"])).collect();
            let expected = if asked == status { vec![dispute.conflict.clone()] } else { Vec::new() };
            assert_eq!(ids, expected, "{asked} when {status}");
        }
        let open = stage.attune("kim", json!({}))["conflicts"].as_array().unwrap().len();
        assert_eq!(open, usize::from(status != "resolved"), "unresolved ones are brought");
        assert_eq!(stage.state.world.conflicts_shown(&[])["conflicts"].as_array().unwrap().len(), open);
    }
}

/// The place of a key, `.` going down.
fn at<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    key.split('.').fold(value, |value, key| &mut value[key])
}

#[test]
fn an_unregistered_agent_merges_nothing_and_casts_no_ballot() {
    let (mut stage, dispute) = standing("detected");
    stage.send("kim", "DEREGISTER", json!({ "agent_id": "kim" })).ok();
    for agent in ["nobody", "kim"] {
        for strategy in ["last_write_wins", "vote"] {
            let refused = stage.merge(agent, &dispute.conflict, strategy, json!({ "winner_id": dispute.b }));
            assert_eq!(refused.code(), ErrorCode::AgentNotRegistered);
        }
    }
    assert_eq!(stage.conflict("ada", &dispute.conflict)["status"], "detected");
}

#[test]
fn of_two_merges_the_first_one_counts() {
    let (mut stage, dispute) = standing("detected");
    let payload = |strategy: &str| {
        let resolution =
            json!({ "rationale": "r", "synthesis": (strategy == "synthesis").then_some("both") });
        json!({ "conflict_id": dispute.conflict, "strategy": strategy, "resolution": resolution })
    };
    // Each was sent before it could know of the other.
    let first = stage.say(saying("ada", "MERGE", payload("confidence_weighted")).epoch(5)).ok();
    let second = stage.say(saying("bob", "MERGE", payload("synthesis")).epoch(5)).refusal();
    assert_eq!((&first["status"], second.code), (&json!("resolved"), ErrorCode::InvalidTransition));
    assert_eq!(stage.conflict("kim", &dispute.conflict), first["conflict"]);
    assert_eq!(stage.state.world.units.len(), 2, "no synthesis");
}

#[test]
fn a_repeated_message_is_one_merge() {
    let (mut stage, dispute) = standing("detected");
    let payload = |winner: &str| {
        let resolution = json!({ "rationale": "r", "winner_id": winner });
        json!({ "conflict_id": dispute.conflict, "strategy": "vote", "resolution": resolution })
    };
    let first = stage.say(saying("ada", "MERGE", payload(&dispute.a)).id("m"));
    let kept = stage.kept.len();
    let again = stage.say(saying("ada", "MERGE", payload(&dispute.a)).id("m"));
    assert_eq!((first.epoch, first.ok()), (again.epoch, again.ok()));
    assert_eq!(stage.kept.len(), kept);
    let other = stage.say(saying("ada", "MERGE", payload(&dispute.b)).id("m"));
    assert_eq!(other.code(), ErrorCode::InvalidMessage);
    // Once resolved, a repeat still gets the first answer.
    stage.merge("bob", &dispute.conflict, "vote", json!({ "winner_id": dispute.a })).ok();
    let again = stage.say(saying("ada", "MERGE", payload(&dispute.a)).id("m")).ok();
    assert_eq!(again["status"], "pending_vote");
}

#[test]
fn a_conflict_whose_unit_was_retracted_or_superseded_first_is_resolved_already() {
    for status in &STATUSES[..3] {
        for relation in [None, Some("supersedes")] {
            let (mut stage, dispute) = standing(status);
            match relation {
                None => drop(stage.give_up("bob", "RETRACT", &dispute.b).ok()),
                Some(kind) => drop(stage.relate("bob", &[[kind, &dispute.b]]).ok()),
            }
            let resolution = json!({ "winner_id": (*status != "detected").then_some(&dispute.a) });
            let strategy = ["vote", "human_escalation"][usize::from(*status == "escalated")];
            let refusal = stage.merge("ada", &dispute.conflict, strategy, resolution).refusal();
            assert_eq!(
                (refusal.code, &refusal.details["status"]),
                (ErrorCode::InvalidTransition, &json!("resolved"))
            );
            let conflict = stage.conflict("kim", &dispute.conflict);
            assert_eq!(conflict["resolution"]["winner_id"], json!(dispute.a), "settled for the partner");
            assert_eq!(conflict["resolution"]["resolved_by"], "system");
            assert_eq!(stage.status(&dispute.a), UnitStatus::Active);
        }
    }
}

#[test]
fn below_its_level_a_strategy_is_not_served_and_not_advertised() {
    let all = ["last_write_wins", "confidence_weighted", "human_escalation"];
    let higher = ["authority", "evidence_count", "synthesis", "vote"];
    for level in 0..=3 {
        let mut stage = Stage::of_level(level);
        let reply = stage.send("ada", "REGISTER", json!({ "id": "ada", "role": "r" })).ok();
        let capabilities = &reply["field_capabilities"];
        let served = |strategy: &str| match level {
            0 | 1 => false,
            2 => all.contains(&strategy),
            _ => true,
        };
        for strategy in all.into_iter().chain(higher) {
            let advertised = list(&capabilities["conflict_strategies"]).contains(&json!(strategy));
            assert_eq!(advertised, served(strategy), "{strategy} at {level}");
            let refusal = stage.merge("ada", "conflict-9", strategy, json!({})).refusal();
            let code =
                if served(strategy) { ErrorCode::ConflictNotFound } else { ErrorCode::UnsupportedOperation };
            assert_eq!(refusal.code, code, "{strategy} at {level}");
            if level == 2 && !served(strategy) {
                assert_eq!(refusal.details["conflict_strategies"], json!(all));
            }
        }
        let extensions = list(&capabilities["extensions"]);
        assert_eq!(extensions.contains(&json!("level-3-merge-strategies")), level == 3);
        assert_eq!(extensions.contains(&json!("conflict-ballots")), level >= 2);
        assert_eq!(capabilities["limits"]["vote_quorum"], 3);
    }
}
