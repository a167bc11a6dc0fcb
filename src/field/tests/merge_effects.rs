//! What a resolution does to the units of a conflict, and to whom it speaks (sections 3, 7 and 12).

use serde_json::json;

use super::*;
use crate::protocol::UnitStatus::{Active, Contested, Retracted, Superseded};

#[test]
fn the_loser_is_superseded_and_the_winner_active_again_whichever_is_older() {
    for older_wins in [true, false] {
        let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
        let score = |wins: bool| json!({ "score": if wins { 0.9 } else { 0.1 } });
        let dispute = Dispute::between(&mut stage, score(older_wins), score(!older_wins));
        let (winner, loser) = if older_wins { (&dispute.a, &dispute.b) } else { (&dispute.b, &dispute.a) };
        let answer = stage.merge("kim", &dispute.conflict, "confidence_weighted", json!({})).ok();
        let effects = json!({ "superseded_units": [loser], "new_unit_id": null, "notified_agents": [] });
        assert_eq!(answer["side_effects"], effects);
        assert_eq!((stage.status(winner), stage.status(loser)), (Active, Superseded));
        assert_eq!(stage.attuned_ids("kim", json!({})), [winner.as_str()]);
        // The winner is the loser's successor: what names the loser means the winner from now on.
        let against = stage.relate("kim", &[["contradicts", loser]]).unit_id();
        assert_eq!(&*stage.slot(&against).said().relations[0].target_id, winner);
        let new = stage.relate("kim", &[["supersedes", loser]]).unit_id();
        assert_eq!((stage.status(winner), stage.status(&new)), (Superseded, Active));
        invariants::check(&stage.state.world);
        assert_eq!(stage.rebuilt().world, stage.state.world);
    }
}

#[test]
fn a_winner_that_is_retracted_later_ends_the_chain() {
    let (mut stage, dispute) = Dispute::staged();
    stage.merge("kim", &dispute.conflict, "last_write_wins", json!({})).ok();
    assert_eq!(stage.give_up("ada", "RETRACT", &dispute.a).code(), ErrorCode::InvalidTransition);
    stage.give_up("bob", "RETRACT", &dispute.b).ok();
    assert_eq!([&dispute.a, &dispute.b].map(|unit| stage.status(unit)), [Superseded, Retracted]);
    for kind in ["supersedes", "contradicts"] {
        assert_eq!(stage.relate("ada", &[[kind, &dispute.a]]).code(), ErrorCode::InvalidTransition);
    }
}

#[test]
fn the_losers_other_conflicts_are_settled_in_the_same_entry_and_the_winners_stay_open() {
    let (mut stage, dispute) = Dispute::staged();
    let Dispute { a, b, conflict } = &dispute;
    // Against the loser-to-be: one partner contested by nothing else, one that has a conflict of its own.
    let free = stage.relate("kim", &[["contradicts", a]]).unit_id();
    let bound = stage.relate("kim", &[["contradicts", a]]).unit_id();
    let rival = stage.relate("kim", &[["contradicts", &bound]]).unit_id();
    // Against the winner.
    let still = stage.relate("kim", &[["contradicts", b]]).unit_id();
    let kept = stage.kept.len();
    let reply = stage.merge("kim", conflict, "confidence_weighted", json!({}));
    let epoch = reply.epoch;
    assert_eq!(reply.ok()["side_effects"]["superseded_units"], json!([a]));
    assert_eq!(stage.kept.len(), kept + 1);
    let expected =
        [(a, Superseded), (b, Contested), (&free, Active), (&bound, Contested), (&still, Contested)];
    for (unit, status) in expected {
        assert_eq!(stage.status(unit), status, "{unit}");
    }
    for partner in [&free, &bound] {
        let settled = stage.conflict("kim", &partner.replace("mem", "conflict"));
        let resolution = &settled["resolution"];
        assert_eq!((&settled["status"], &resolution["winner_id"]), (&json!("resolved"), &json!(partner)));
        assert_eq!(
            (&resolution["strategy"], &resolution["resolved_by"]),
            (&json!("last_write_wins"), &json!("system"))
        );
        assert_eq!(resolution["rationale"], format!("{a} was superseded by {b}."));
        assert_eq!(resolution["epoch_resolved"], json!(epoch), "the MERGE's own");
    }
    for open in [&rival, &still] {
        assert_eq!(stage.conflict("kim", &open.replace("mem", "conflict"))["status"], "detected");
    }
    // The last conflict of a unit, resolved in its favour, makes it active again.
    let last = stage.merge("kim", &still.replace("mem", "conflict"), "human_escalation", json!({}));
    assert_eq!(last.ok()["status"], "escalated");
    assert_eq!(stage.status(b), Contested, "an escalated conflict is open");
    let decision = json!({ "winner_id": b });
    stage.merge("kim", &still.replace("mem", "conflict"), "human_escalation", decision).ok();
    assert_eq!(stage.status(b), Active);
}

#[test]
fn a_synthesis_settles_the_other_conflicts_of_both() {
    let (mut stage, dispute) = Dispute::staged();
    let of_a = stage.relate("kim", &[["contradicts", &dispute.a]]).unit_id();
    let of_b = stage.relate("kim", &[["contradicts", &dispute.b]]).unit_id();
    let of_both = stage.relate("kim", &[["contradicts", &dispute.a], ["contradicts", &dispute.b]]).unit_id();
    let answer = stage.merge("kim", &dispute.conflict, "synthesis", json!({ "synthesis": "both" })).ok();
    let new = text(&answer["side_effects"]["new_unit_id"]);
    assert!(stage.state.world.unresolved.is_empty());
    assert_eq!([&of_a, &of_b, &of_both, &new].map(|unit| stage.status(unit)), [Active; 4]);
    let entry = Entry::from_json(stage.kept.values().last().unwrap()).unwrap();
    let events: Vec<_> = entry.events.iter().map(Event::event_type).collect();
    assert_eq!(events, ["RECORD", "MERGE", "MERGE", "MERGE", "MERGE", "MERGE"], "each conflict once");
    // It stands for both now.
    for old in [&dispute.a, &dispute.b] {
        let against = stage.relate("bob", &[["contradicts", old]]).unit_id();
        assert_eq!(&*stage.slot(&against).said().relations[0].target_id, new);
    }
    invariants::check(&stage.state.world);
    assert_eq!(stage.rebuilt().world, stage.state.world);
}

#[test]
fn chains_of_winners_and_losers_have_one_end() {
    let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
    let one = Dispute::between(&mut stage, json!({ "score": 0.9 }), json!({ "score": 0.1 }));
    let two = Dispute::between(&mut stage, json!({ "score": 0.1 }), json!({ "score": 0.9 }));
    for dispute in [&one, &two] {
        stage.merge("kim", &dispute.conflict, "confidence_weighted", json!({})).ok();
    }
    // The winners, met through the losers, contradict each other; then both give way.
    let between = stage.relate("kim", &[["contradicts", &one.b], ["contradicts", &two.a]]);
    let (epoch, ids) = (between.epoch, list(&between.ok()["conflicts_detected"]));
    for id in &ids {
        stage.merge("kim", &text(id), "last_write_wins", json!({})).ok();
    }
    let end = format!("mem-{epoch}");
    for unit in [&one.a, &one.b, &two.a, &two.b] {
        assert_eq!(stage.status(unit), Superseded);
        let no = stage.state.world.find(unit.parse().unwrap()).unwrap();
        assert_eq!(stage.state.world.slot(stage.state.world.latest(no)).id.to_string(), end);
    }
    invariants::check(&stage.state.world);
}

#[test]
fn the_authors_who_are_connected_at_that_moment_are_notified() {
    // Who is connected when kim resolves: through an earlier message of theirs.
    for (ada, bob, expected) in [
        (None, None, json!([])),
        (Some(1), None, json!(["ada"])),
        (None, Some(1), json!(["bob"])),
        (Some(1), Some(1), json!(["ada", "bob"])),
    ] {
        let (mut stage, dispute) = Dispute::staged();
        for (agent, connection) in [("ada", ada), ("bob", bob), ("kim", Some(7))] {
            let look = saying(agent, "DETECT", json!({ "mode": "list" }));
            stage.say(Saying { connection, ..look }).ok();
        }
        let answer = stage.merge("kim", &dispute.conflict, "last_write_wins", json!({})).ok();
        assert_eq!(answer["side_effects"]["notified_agents"], expected, "not kim, who wrote neither");
    }
}

#[test]
fn notified_are_neither_those_who_left_nor_those_who_wrote_both_twice_and_the_sender_is_if_connected() {
    let (mut stage, dispute) = Dispute::staged();
    for (agent, connection) in [("ada", 1), ("bob", 2)] {
        stage.say(saying(agent, "DETECT", json!({ "mode": "list" })).over(connection)).ok();
    }
    stage.drop_connection(1);
    stage.send("bob", "DEREGISTER", json!({ "agent_id": "bob" })).ok();
    let payload = json!({
        "conflict_id": dispute.conflict, "strategy": "last_write_wins", "resolution": { "rationale": "r" },
    });
    let answer = stage.say(saying("kim", "MERGE", payload)).ok();
    assert_eq!(
        answer["side_effects"]["notified_agents"],
        json!([]),
        "a dropped connection and a departed author"
    );
    // Both units by one author, who says so over a connection that is new with this message.
    let a = stage.record("ada", "x");
    let b = stage.relate("ada", &[["contradicts", &a]]).unit_id();
    let payload = json!({
        "conflict_id": b.replace("mem", "conflict"), "strategy": "last_write_wins",
        "resolution": { "rationale": "r" },
    });
    let answer = stage.say(saying("ada", "MERGE", payload).over(9)).ok();
    assert_eq!(answer["side_effects"]["notified_agents"], json!(["ada"]));
}

#[test]
fn nobody_is_notified_of_what_is_not_resolved() {
    for (strategy, named) in [("vote", true), ("human_escalation", false)] {
        let (mut stage, dispute) = Dispute::staged();
        for (agent, connection) in [("ada", 1), ("bob", 2)] {
            stage.say(saying(agent, "DETECT", json!({ "mode": "list" })).over(connection)).ok();
        }
        let winner = named.then_some(&dispute.a);
        let answer = stage.merge("kim", &dispute.conflict, strategy, json!({ "winner_id": winner })).ok();
        assert_eq!(answer["side_effects"]["notified_agents"], json!([]));
    }
}
