//! REPLAY (seed `replay.md`, sections 7 and 12): what a timeline holds.

use serde_json::json;

use super::*;

/// The units that a timeline tells of, sorted, each once.
fn units_told(replayed: &Value) -> Vec<String> {
    let units = list(&replayed["timeline"]).into_iter().filter(|event| event["event_type"] == "RECORD");
    let mut units: Vec<_> = units.map(|event| text(&event["memory_unit_id"])).collect();
    units.sort();
    units.dedup();
    units
}

fn sorted<const N: usize>(units: [&String; N]) -> Vec<String> {
    let mut units = units.map(Clone::clone).to_vec();
    units.sort();
    units
}

#[test]
fn the_published_example_is_told_as_published() {
    let agents = ["researcher-01", "researcher-02", "strategist-01", "auditor-01"];
    let mut stage = Stage::with_agents(&agents);
    let sure = |score: f64| json!({ "score": score, "reason": "r" });
    let own = json!({
        "intent": { "purpose": "size", "task_id": "task-market-sizing" }, "confidence": sure(0.82),
    });
    let first = stage.send("researcher-01", "RECORD", with(finding("23% CAGR"), own)).unit_id();
    let contradiction =
        with(related("14% CAGR", &[["contradicts", &first]]), json!({ "confidence": sure(0.7) }));
    let reply = stage.send("researcher-02", "RECORD", contradiction);
    let (epoch, second) = (reply.epoch, format!("mem-{}", reply.epoch));
    let conflict = format!("conflict-{epoch}");
    let end = stage.merge("strategist-01", &conflict, "confidence_weighted", json!({})).epoch;
    let replayed = stage.replay("auditor-01", ["conflict", &conflict], "detailed").ok();
    let started = stage.slot(&first).epoch;
    let event = |epoch: u64, kind: &str, agent: &str, unit: Option<&String>, task: Option<&str>| json!({ "epoch": epoch, "event_type": kind, "agent_id": agent, "memory_unit_id": unit, "task_id": task });
    let expected = [
        event(started, "RECORD", "researcher-01", Some(&first), Some("task-market-sizing")),
        event(epoch, "RECORD", "researcher-02", Some(&second), None),
        event(epoch, "CONFLICT_CREATED", "system", None, None),
        event(end, "MERGE", "strategist-01", Some(&first), None),
    ];
    let timeline = list(&replayed["timeline"]);
    assert_eq!((timeline.len(), &replayed["total_events"]), (4, &json!(4)));
    for (event, expected) in timeline.iter().zip(expected) {
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&event[key], value, "{key} of {event}");
        }
        assert!(event["timestamp"].is_string());
    }
    let descriptions: Vec<_> = timeline.iter().map(|event| text(&event["description"])).collect();
    assert_eq!(descriptions[0], "Recorded finding: 23% CAGR");
    assert_eq!(descriptions[1], "Recorded contradicting finding: 14% CAGR");
    assert!(descriptions[2].starts_with("Explicit conflict created from contradicts relation"));
    assert_eq!(descriptions[3], format!("Resolved via confidence_weighted: {first} prevails. so it is"));
    assert_eq!(replayed["agents_involved"], json!(agents[..3]), "without system and the auditor");
    assert_eq!(replayed["status"], "ok");
    let summary = text(&replayed["summary"]);
    let told = ["researcher-01", "23% CAGR", "14% CAGR", "strategist-01", "confidence_weighted"];
    assert!(told.iter().all(|word| summary.contains(word)), "{summary}");
}

#[test]
fn a_chain_is_followed_to_both_ends_from_any_of_its_members() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let first = stage.record("ada", "1");
    let second = stage.relate("ada", &[["supersedes", &first]]).unit_id();
    let other = stage.record("bob", "of another chain");
    let third = stage.relate("bob", &[["supersedes", &second], ["supersedes", &other]]).unit_id();
    let fourth = stage.relate("ada", &[["supersedes", &other]]).unit_id();
    stage.record("bob", "apart");
    let all = sorted([&first, &second, &other, &third, &fourth]);
    for member in &all {
        for depth in ["summary", "detailed", "full_trace"] {
            let replayed = stage.replay("bob", ["memory_unit", member], depth).ok();
            assert_eq!(units_told(&replayed), all, "{depth} from {member}");
        }
    }
}

#[test]
fn outbound_relations_are_followed_transitively_and_inbound_ones_are_not() {
    let mut stage = Stage::with_agents(&["ada"]);
    let far = stage.record("ada", "far");
    let near = stage.relate("ada", &[["elaborates", &far]]).unit_id();
    let unit =
        stage.relate("ada", &[["depends_on", &near], ["informs", "mem-999"], ["informs", "what"]]).unit_id();
    stage.relate("ada", &[["supports", &unit]]).ok();
    stage.relate("ada", &[["supersedes", &near]]).ok();
    let replayed = stage.replay("ada", ["memory_unit", &unit], "full_trace").ok();
    assert_eq!(units_told(&replayed), sorted([&far, &near, &unit]));
}

#[test]
fn relations_in_a_circle_end() {
    let mut stage = Stage::with_agents(&["ada"]);
    let ahead = format!("mem-{}", stage.state.clock + 2);
    let one = stage.relate("ada", &[["informs", &ahead]]).unit_id();
    let two = stage.relate("ada", &[["informs", &one], ["informs", &ahead]]).unit_id();
    assert_eq!(two, ahead);
    let replayed = stage.replay("ada", ["memory_unit", &one], "full_trace").ok();
    assert_eq!(units_told(&replayed), sorted([&one, &two]));
}

#[test]
fn the_conflicts_that_touch_a_units_chain_and_ground_are_told() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let ground = stage.record("ada", "ground");
    let unit = stage.relate("ada", &[["depends_on", &ground]]).unit_id();
    let rival = stage.relate("bob", &[["contradicts", &ground]]).unit_id();
    let end = stage.give_up("bob", "RETRACT", &rival).epoch;
    let replayed = stage.replay("ada", ["memory_unit", &unit], "full_trace").ok();
    let [ground, unit, rival] = [ground, unit, rival].map(|id| id.replace("mem-", ""));
    let expected = [
        format!("{ground} RECORD ada"),
        format!("{unit} RECORD ada"),
        format!("{rival} CONFLICT_CREATED system"),
        format!("{end} MERGE system"),
    ];
    assert_eq!(told(&replayed), expected);
}

#[test]
fn a_units_own_events_are_all_told() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.draft("ada", "x");
    let committed = stage.commit("ada", &unit).epoch;
    let retracted = stage.give_up("ada", "RETRACT", &unit).epoch;
    let replayed = stage.replay("bob", ["memory_unit", &unit], "full_trace").ok();
    let recorded = unit.replace("mem-", "");
    let expected = [
        format!("{recorded} RECORD ada"),
        format!("{committed} COMMIT ada"),
        format!("{retracted} RETRACT ada"),
    ];
    assert_eq!(told(&replayed), expected);
    assert!(text(&replayed["timeline"][2]["description"]).contains("it was wrong"));
}

#[test]
fn a_decision_is_replayed_as_one_and_nothing_else_is() {
    let mut stage = Stage::with_agents(&["ada"]);
    let ground = stage.record("ada", "ground");
    let decision = with(related("go", &[["caused_by", &ground]]), json!({ "type": "decision" }));
    let decision = stage.send("ada", "RECORD", decision).unit_id();
    let replayed = stage.replay("ada", ["decision", &decision], "full_trace").ok();
    assert_eq!(units_told(&replayed), sorted([&ground, &decision]));
    assert_eq!(stage.replay("ada", ["decision", &ground], "full_trace").code(), ErrorCode::UnitNotFound);
}

#[test]
fn a_task_is_every_event_that_carries_its_id() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let of_task =
        |content: &str| with(finding(content), json!({ "intent": { "purpose": "p", "task_id": "t" } }));
    let one = stage.send("ada", "RECORD", of_task("one")).unit_id();
    stage.record("bob", "apart");
    let draft = stage.send("bob", "RECORD", with(of_task("two"), json!({ "mode": "draft" }))).unit_id();
    let committed = stage.commit("bob", &draft).epoch;
    stage.relate("bob", &[["supersedes", &draft]]).ok();
    let retracted = stage.give_up("ada", "RETRACT", &one).epoch;
    let replayed = stage.replay("ada", ["task", "t"], "full_trace").ok();
    let [one, draft] = [one, draft].map(|id| id.replace("mem-", ""));
    let expected = [
        format!("{one} RECORD ada"),
        format!("{draft} RECORD bob"),
        format!("{committed} COMMIT bob"),
        format!("{retracted} RETRACT ada"),
    ];
    assert_eq!(told(&replayed), expected);
    assert!(list(&replayed["timeline"]).iter().all(|event| event["task_id"] == "t"));
}

#[test]
fn a_session_is_every_event_of_its_messages_and_depth_leaves_out_comings_and_goings() {
    let mut stage = Stage::with_agents(&["bob"]);
    let hello = saying("ada", "REGISTER", json!({ "id": "ada", "role": "r" })).session("s").over(1);
    let joined = stage.say(hello).epoch;
    let recorded = stage.say(saying("ada", "RECORD", finding("x")).session("s")).epoch;
    stage.record("ada", "outside");
    stage.say(saying("ada", "DETECT", json!({ "mode": "list" })).session("s")).ok();
    let left = stage.say(saying("ada", "DEREGISTER", json!({ "agent_id": "ada" })).session("s")).epoch;
    let full = stage.replay("bob", ["session", "s"], "full_trace").ok();
    let expected = [
        format!("{joined} REGISTER ada"),
        format!("{joined} AGENT_CONNECTED system"),
        format!("{recorded} RECORD ada"),
        format!("{left} DEREGISTER ada"),
    ];
    assert_eq!(told(&full), expected);
    for depth in ["detailed", "summary"] {
        let replayed = stage.replay("bob", ["session", "s"], depth).ok();
        assert_eq!(told(&replayed), [format!("{recorded} RECORD ada")], "{depth}");
        assert_eq!(replayed["total_events"], 4, "of the whole chain");
        assert!(!text(&replayed["summary"]).is_empty());
    }
}

#[test]
fn unknown_targets_of_every_type_are_not_found() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.record("ada", "x");
    for kind in ["task", "memory_unit", "decision", "conflict", "session"] {
        for id in ["mem-99", "conflict-99", "mem-1", "conflict-2", "whatever"] {
            let refused = stage.replay("ada", [kind, id], "full_trace").refusal();
            assert_eq!(refused.code, ErrorCode::UnitNotFound, "{kind} {id}");
            assert!(refused.message.contains(id));
        }
    }
}

#[test]
fn a_replay_up_to_an_epoch_knows_nothing_later() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let first = stage.record("ada", "1");
    let rival = stage.relate("bob", &[["contradicts", &first]]).unit_id();
    let second = stage.relate("ada", &[["supersedes", &first]]).unit_id();
    let mut told_at = |target: [&str; 2], epoch: u64| {
        let payload = json!({
            "target_type": target[0], "target_id": target[1], "depth": "full_trace", "as_of_epoch": epoch,
        });
        stage.send("bob", "REPLAY", payload).outcome.map(|replayed| told(&replayed)).map_err(|no| no.code)
    };
    let epoch = |unit: &String| unit.replace("mem-", "").parse::<u64>().unwrap();
    let (one, two, three) = (epoch(&first), epoch(&rival), epoch(&second));
    let conflict = format!("conflict-{two}");
    let all = [
        format!("{one} RECORD ada"),
        format!("{two} CONFLICT_CREATED system"),
        format!("{three} RECORD ada"),
        format!("{three} MERGE system"),
    ];
    let unit = ["memory_unit", &*first];
    assert_eq!(told_at(unit, one - 1), Err(ErrorCode::UnitNotFound));
    assert_eq!(told_at(unit, one).unwrap(), all[..1]);
    assert_eq!(told_at(unit, two).unwrap(), all[..2]);
    assert_eq!(told_at(unit, three).unwrap(), all);
    assert_eq!(told_at(["conflict", &conflict], two - 1), Err(ErrorCode::UnitNotFound));
    assert_eq!(told_at(["conflict", &conflict], two).unwrap().len(), 3);
    assert_eq!(told_at(["conflict", &conflict], three).unwrap().len(), 4);
}

#[test]
fn a_draft_is_not_replayed_to_others_as_of_before_its_commit() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.draft("ada", "x");
    let drafted = stage.slot(&unit).epoch;
    let committed = stage.commit("ada", &unit).epoch;
    for (asker, as_of, events) in
        [("ada", drafted, 1), ("bob", drafted, 0), ("bob", committed - 1, 0), ("bob", committed, 2)]
    {
        let payload = json!({
            "target_type": "memory_unit", "target_id": unit, "depth": "full_trace", "as_of_epoch": as_of,
        });
        let replayed = stage.send(asker, "REPLAY", payload).outcome;
        assert_eq!(replayed.map_or(0, |replayed| told(&replayed).len()), events, "{asker} at {as_of}");
    }
}

#[test]
fn a_shared_draft_is_replayed_to_all_also_as_of_before_its_commit() {
    let mut stage = Stage::new();
    stage.policy.shared_drafts = true;
    stage.join("ada");
    stage.join("bob");
    let unit = stage.draft("ada", "x");
    let payload = json!({
        "target_type": "memory_unit", "target_id": unit, "depth": "full_trace",
        "as_of_epoch": stage.slot(&unit).epoch,
    });
    let before = stage.send("bob", "REPLAY", payload.clone()).ok();
    stage.commit("ada", &unit).ok();
    assert_eq!(stage.send("bob", "REPLAY", payload).ok(), before);
}

#[test]
fn the_replay_of_a_decision_tells_what_its_author_had_been_shown_where_reads_are_audited() {
    for audited in [false, true] {
        let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
        stage.policy.audit = if audited { Audit::All } else { Audit::Off };
        let fact = stage.record("ada", "The market grows.");
        let secret = stage.draft("bob", "Perhaps.");
        let scope = json!({ "role": "r", "max_units": 5, "include_drafts": true });
        stage.send("bob", "ATTUNE", json!({ "scope": scope })).ok();
        let decision = with(finding("Enter the market."), json!({ "type": "decision" }));
        let decision = stage.send("bob", "RECORD", decision).unit_id();
        stage.send("bob", "ATTUNE", json!({ "scope": { "role": "r", "max_units": 5 } })).ok();
        let shown_to = |stage: &mut Stage, asker: &str| -> Vec<String> {
            let replayed = stage.replay(asker, ["decision", &decision], "full_trace").ok();
            let events =
                list(&replayed["timeline"]).into_iter().filter(|event| event["event_type"] == "ATTUNE");
            events.map(|event| text(&event["description"]).to_owned()).collect()
        };
        if !audited {
            assert!(shown_to(&mut stage, "eve").is_empty());
            continue;
        }
        let (to_author, to_other) = (shown_to(&mut stage, "bob"), shown_to(&mut stage, "eve"));
        assert_eq!((to_author.len(), to_other.len()), (1, 1), "only what came before the decision");
        assert!(to_author[0].contains(&fact) && to_author[0].contains(&secret), "{to_author:?}");
        assert!(to_other[0].contains(&fact) && !to_other[0].contains(&secret), "a draft stays its author's");
        // A unit that is no decision tells nothing of it.
        let unit = stage.replay("eve", ["memory_unit", &decision], "full_trace").ok();
        assert!(list(&unit["timeline"]).iter().all(|event| event["event_type"] != "ATTUNE"));
        assert_eq!(stage.rebuilt().world, stage.state.world);
    }
}
