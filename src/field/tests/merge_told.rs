//! How the end of a conflict is told: in REPLAY, in the lines of the log, and in notices (sections 7 and 12).

use serde_json::json;

use super::*;
use crate::protocol::{EventName, EventSet, Subscription};

/// A timeline as `[type, agent, description, unit]`.
fn timeline(stage: &mut Stage, target: [&str; 2]) -> Vec<[String; 4]> {
    let replayed = stage.replay("kim", target, "detailed").ok();
    let row = |event: &Value| {
        let unit = event["memory_unit_id"].as_str().unwrap_or("-").to_owned();
        [text(&event["event_type"]), text(&event["agent_id"]), text(&event["description"]), unit]
    };
    list(&replayed["timeline"]).iter().map(row).collect()
}

/// A conflict that is voted on, called off, and decided; then the same by a synthesis.
fn voted_and_decided() -> (Stage, Dispute) {
    let (mut stage, dispute) = Dispute::staged();
    let conflict = &dispute.conflict;
    stage.merge("ada", conflict, "vote", json!({ "winner_id": dispute.a, "rationale": "mine" })).ok();
    stage.merge("kim", conflict, "human_escalation", json!({ "rationale": "Too few vote." })).ok();
    let decision = json!({ "winner_id": dispute.b, "rationale": "I asked them." });
    stage.merge("kim", conflict, "human_escalation", decision).ok();
    (stage, dispute)
}

#[test]
fn votes_escalation_and_decision_are_replayed_in_words() {
    let (mut stage, Dispute { a, b, conflict }) = voted_and_decided();
    let told = timeline(&mut stage, ["conflict", &conflict]);
    let row = |kind: &str, agent: &str, said: String, unit: &str| {
        [kind.to_owned(), agent.to_owned(), said, unit.to_owned()]
    };
    assert_eq!(
        told.iter().map(|row| &*row[0]).take(3).collect::<Vec<_>>(),
        ["RECORD", "RECORD", "CONFLICT_CREATED"]
    );
    let called_off = "Escalated to a human via human_escalation: kim called the vote off and asks for a human's \
                      decision. Too few vote.";
    assert_eq!(
        told[3..],
        [
            row("VOTE", "ada", format!("Voted for {a} in {conflict}: mine"), &a),
            row("CONFLICT_ESCALATED", "kim", called_off.to_owned(), "-"),
            row("MERGE", "kim", format!("Resolved via human_escalation: {b} prevails. I asked them."), &b),
        ]
    );
    // From either unit the same course is found, and the winner from the loser.
    for unit in [&a, &b] {
        assert_eq!(timeline(&mut stage, ["memory_unit", unit]), told, "from {unit}");
    }
}

#[test]
fn the_chain_of_a_unit_goes_over_merges_and_syntheses() {
    let (mut stage, dispute) = Dispute::staged();
    let joined =
        stage.merge("kim", &dispute.conflict, "synthesis", json!({ "synthesis": "It varies." })).ok();
    let new = text(&joined["side_effects"]["new_unit_id"]);
    let rival = stage.relate("ada", &[["contradicts", &new]]).unit_id();
    stage.merge("bob", &rival.replace("mem", "conflict"), "last_write_wins", json!({})).ok();
    let from_new = timeline(&mut stage, ["memory_unit", &new]);
    for unit in [&dispute.a, &dispute.b, &rival] {
        assert_eq!(timeline(&mut stage, ["memory_unit", unit]), from_new, "from {unit}");
    }
    let recorded = format!("Recorded synthesis (supersedes {}, {}): It varies.", dispute.a, dispute.b);
    let joined = format!("Resolved via synthesis: both sides are joined in {new}. so it is");
    let kim = |kind: &str, said: String| [kind.to_owned(), "kim".to_owned(), said, new.clone()];
    assert_eq!(from_new[3..5], [kim("RECORD", recorded), kim("MERGE", joined.clone())]);
    // Of the conflict the synthesis is a part only by its MERGE.
    let of_conflict = timeline(&mut stage, ["conflict", &dispute.conflict]);
    assert_eq!(of_conflict.last(), Some(&kim("MERGE", joined)));
    assert_eq!(of_conflict.len(), 4);
}

#[test]
fn a_replay_up_to_an_epoch_knows_how_far_the_conflict_was() {
    let (mut stage, Dispute { conflict, .. }) = voted_and_decided();
    let last = stage.state.clock;
    for (as_of, events) in [(last, 6), (last - 1, 5), (last - 2, 4), (last - 3, 3)] {
        let payload = json!({
            "target_type": "conflict", "target_id": conflict, "depth": "full_trace", "as_of_epoch": as_of,
        });
        assert_eq!(stage.send("kim", "REPLAY", payload).ok()["total_events"], json!(events), "{as_of}");
    }
}

#[test]
fn ballots_and_escalations_are_lines_of_the_log() {
    let (stage, Dispute { a, b, conflict }) = voted_and_decided();
    let lines = stage.kept.values().flat_map(|body| lines_of(body));
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    let [vote, escalated, merged] = &lines[lines.len() - 3..] else { panic!("three lines") };
    for (line, kind, agent) in
        [(vote, "VOTE", "ada"), (escalated, "CONFLICT_ESCALATED", "kim"), (merged, "MERGE", "kim")]
    {
        assert_eq!((&line["event_type"], &line["agent_id"]), (&json!(kind), &json!(agent)));
        assert_eq!((&line["operation"], &line["conflict_id"]), (&json!("MERGE"), &json!(conflict)));
    }
    assert_eq!((&vote["winner_id"], &vote["rationale"]), (&json!(a), &json!("mine")));
    assert!(text(&escalated["reason"]).contains("called the vote off"));
    assert_eq!(escalated["resolution"]["winner_id"], json!(null));
    assert_eq!((&merged["resolution"]["winner_id"], &merged["superseded"]), (&json!(b), &json!([a])));
}

/// The notices of the last entry, as `(event, summary)`.
fn last_notices(stage: &Stage) -> Vec<(&'static str, String)> {
    let entry = Entry::from_json(stage.kept.values().last().unwrap()).unwrap();
    let told = all_notices(&stage.filled(), &entry);
    let set = announced(&entry);
    assert!(told.iter().all(|notice| set.contains(notice.event)), "what is told was announced");
    let row = |notice: &Notice| {
        assert_eq!(&*notice.actor, "kim");
        (notice.event.name(), notice.summary.clone())
    };
    told.iter().map(row).collect()
}

#[test]
fn a_resolution_gives_notice_of_the_loser_then_of_itself_then_of_what_it_settled() {
    let (mut stage, Dispute { a, b, conflict }) = Dispute::staged();
    let partner = stage.relate("kim", &[["contradicts", &a]]).unit_id();
    let settled = partner.replace("mem", "conflict");
    stage.merge("kim", &conflict, "confidence_weighted", json!({})).ok();
    assert_eq!(
        last_notices(&stage),
        [
            ("memory.superseded", format!("{a} was superseded by {b}: It grows.")),
            (
                "conflict.resolved",
                format!("{conflict} was resolved by confidence_weighted, {b} prevails: so it is")
            ),
            (
                "conflict.resolved",
                format!(
                    "{settled} was resolved by last_write_wins, {partner} prevails: {a} was superseded by {b}."
                ),
            ),
        ]
    );
}

#[test]
fn a_synthesis_gives_notice_of_its_unit_first() {
    let (mut stage, Dispute { a, b, conflict }) = Dispute::staged();
    let answer = stage.merge("kim", &conflict, "synthesis", json!({ "synthesis": "It varies." })).ok();
    let new = text(&answer["side_effects"]["new_unit_id"]);
    assert_eq!(
        last_notices(&stage),
        [
            ("memory.recorded", "Synthesis by kim: It varies.".to_owned()),
            ("memory.superseded", format!("{a} was superseded by {new}: It grows.")),
            ("memory.superseded", format!("{b} was superseded by {new}: It shrinks.")),
            (
                "conflict.resolved",
                format!("{conflict} was resolved by synthesis, both are joined in {new}: so it is")
            ),
        ]
    );
}

#[test]
fn an_escalation_gives_notice_under_a_name_of_its_own_and_a_ballot_gives_none() {
    let (mut stage, Dispute { a, conflict, .. }) = Dispute::staged();
    stage.merge("kim", &conflict, "vote", json!({ "winner_id": a })).ok();
    assert_eq!(last_notices(&stage), []);
    stage.merge("kim", &conflict, "human_escalation", json!({})).ok();
    let said = format!(
        "{conflict} waits for a human's decision. kim called the vote off and asks for a human's decision. so it is"
    );
    assert_eq!(last_notices(&stage), [("conflict.escalated", said)]);
}

#[test]
fn whoever_may_decide_has_to_act_on_what_was_escalated() {
    let (mut stage, dispute) = Dispute::staged();
    stage.merge("kim", &dispute.conflict, "authority", json!({})).ok();
    let entry = Entry::from_json(stage.kept.values().last().unwrap()).unwrap();
    let told = all_notices(&stage.filled(), &entry);
    let subscription = Subscription {
        id: "s".into(),
        events: vec![EventName::ConflictEscalated],
        min_relevance: 0.0,
        debounce_ms: 0,
        include_unit: false,
    };
    // Without enforced authority that is everybody; one's own doing is told to authors of the two units alone.
    for (agent, hears) in [("ada", true), ("bob", true), ("eve", true), ("kim", false)] {
        let listener = Listener::new(agent.into(), subscription.clone().into(), 0);
        assert_eq!(listener.hears(&told[0]), hears, "{agent}");
        assert!(listener.must_act(&told[0], || false));
    }
    let observer = Listener::observer(subscription.into());
    assert!(observer.hears(&told[0]) && !observer.must_act(&told[0], || false));
    assert!(EventSet::ALL.contains(EventName::ConflictEscalated));
}
