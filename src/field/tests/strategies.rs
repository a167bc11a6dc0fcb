//! What each strategy of MERGE decides by, its ties and its missing values (section 7). Votes: see `votes`.

use serde_json::json;

use super::*;

/// MERGEs by kim; the answer's status, and the winner of a resolution.
fn decide_by(stage: &mut Stage, dispute: &Dispute, strategy: &str) -> (String, Option<String>) {
    let answer = stage.merge("kim", &dispute.conflict, strategy, json!({})).ok();
    let resolution = &answer["conflict"]["resolution"];
    assert_eq!(resolution["strategy"], strategy);
    assert_eq!(resolution["rationale"], "so it is", "the sender's own words");
    assert_eq!(resolution["resolved_by"], "kim");
    assert_eq!(resolution["epoch_resolved"], json!(stage.state.clock));
    assert!(resolution.as_object().unwrap().contains_key("winner_id"));
    (text(&answer["status"]), resolution["winner_id"].as_str().map(str::to_owned))
}

fn resolved(winner: &str) -> (String, Option<String>) {
    ("resolved".to_owned(), Some(winner.to_owned()))
}

fn escalated() -> (String, Option<String>) {
    ("escalated".to_owned(), None)
}

/// Why a conflict waits for a human.
fn reason(stage: &mut Stage, dispute: &Dispute) -> String {
    let conflict = stage.conflict("kim", &dispute.conflict);
    assert_eq!(conflict["status"], "escalated");
    text(&conflict["escalation_reason"])
}

#[test]
fn the_last_write_is_the_one_with_the_greater_epoch_whatever_its_id() {
    let (mut stage, dispute) = Dispute::staged();
    assert_eq!(decide_by(&mut stage, &dispute, "last_write_wins"), resolved(&dispute.b));
    // A draft is written when it is committed.
    let draft = stage.draft("ada", "early");
    let a = stage.record("bob", "late");
    let relations = json!([{ "type": "contradicts", "target_id": a }]);
    let reply = stage.send("ada", "COMMIT", json!({ "memory_unit_id": draft, "relations": relations })).ok();
    let conflict = text(&reply["conflicts_detected"][0]);
    let dispute = Dispute { a, b: draft.clone(), conflict };
    assert_eq!(decide_by(&mut stage, &dispute, "last_write_wins"), resolved(&draft));
}

#[test]
fn the_greater_confidence_prevails_on_either_side() {
    for (a, b, older_wins) in
        [(0.9, 0.7, true), (0.69, 0.7, false), (0.0, 1.0, false), (1.0, 0.999_999, true)]
    {
        let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
        let dispute = Dispute::between(&mut stage, json!({ "score": a }), json!({ "score": b }));
        let winner = if older_wins { &dispute.a } else { &dispute.b };
        assert_eq!(decide_by(&mut stage, &dispute, "confidence_weighted"), resolved(winner));
    }
}

#[test]
fn equal_confidence_is_a_tie_and_a_missing_one_decides_nothing() {
    let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
    let tied = Dispute::between(&mut stage, json!({ "score": 0.3 }), json!({ "score": 0.3 }));
    assert_eq!(decide_by(&mut stage, &tied, "confidence_weighted"), escalated());
    assert!(reason(&mut stage, &tied).contains("same confidence.score, 0.3"));
    // Level 0 asks for no confidence, and a Field that was run there may be run higher later.
    for lacking in [[true, false], [false, true], [true, true]] {
        let mut stage = Stage::of_level(0);
        stage.join("ada");
        stage.join("kim");
        let [a, b] = lacking.map(|lacks| {
            let confidence = if lacks { json!(null) } else { json!({ "score": 0.5, "reason": "r" }) };
            stage.send("ada", "RECORD", with(finding("x"), json!({ "confidence": confidence }))).unit_id()
        });
        stage.policy = Policy::default();
        let dispute = noticed(&mut stage, a, b);
        assert_eq!(decide_by(&mut stage, &dispute, "confidence_weighted"), escalated());
        let lacks = if lacking[0] { &dispute.a } else { &dispute.b };
        assert_eq!(reason(&mut stage, &dispute), format!("{lacks} has no confidence.score."));
    }
}

/// A conflict that the Field noticed by itself, as an entry of the log tells it.
fn noticed(stage: &mut Stage, a: String, b: String) -> Dispute {
    use crate::protocol::{Conflict, ConflictId, ConflictStatus, ConflictType, DetectedBy, SYSTEM};
    let epoch = stage.state.clock + 1;
    let conflict = Conflict {
        id: ConflictId::new(epoch, 0),
        kind: ConflictType::Factual,
        status: ConflictStatus::Detected,
        unit_a: a.parse().unwrap(),
        unit_b: b.parse().unwrap(),
        description: "d".into(),
        detected_by: DetectedBy::Semantic,
        resolution: None,
        ballots: Vec::new(),
        escalation_reason: None,
    };
    let contested = vec![conflict.unit_a, conflict.unit_b];
    stage.enter(&Entry {
        epoch,
        at: Timestamp(stage.now),
        operation: None,
        agent_id: SYSTEM.into(),
        session_id: None,
        message_id: None,
        key: None,
        digest: None,
        events: vec![Event::ConflictCreated { conflict: conflict.into(), contested }],
        reply: None,
    });
    Dispute { a, b, conflict: format!("conflict-{epoch}") }
}

#[test]
fn more_live_units_in_support_prevail() {
    let (mut stage, dispute) = Dispute::staged();
    let Dispute { a, b, .. } = &dispute;
    // What does not count for b: twice by one unit, a draft, what was retracted or superseded, other relations.
    stage.relate("kim", &[["supports", b], ["supports", b]]).ok();
    stage.send("kim", "RECORD", with(related("d", &[["supports", b]]), json!({ "mode": "draft" }))).ok();
    let gone = stage.relate("kim", &[["supports", b]]).unit_id();
    stage.give_up("kim", "RETRACT", &gone).ok();
    let replaced = stage.relate("kim", &[["supports", b]]).unit_id();
    stage.relate("kim", &[["supersedes", &replaced]]).ok();
    stage.relate("kim", &[["informs", b], ["elaborates", b], ["depends_on", b]]).ok();
    // What counts for a: any two live units, also one that is contested itself.
    let contested = stage.relate("ada", &[["supports", a]]).unit_id();
    stage.relate("bob", &[["contradicts", &contested]]).ok();
    stage.relate("kim", &[["supports", a]]).ok();
    assert_eq!(stage.status(&contested), UnitStatus::Contested);
    assert_eq!(decide_by(&mut stage, &dispute, "evidence_count"), resolved(a));
}

#[test]
fn a_unit_does_not_support_itself() {
    let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
    let a = stage.record("ada", "x");
    let itself = format!("mem-{}", stage.state.clock + 1);
    let b = stage.relate("bob", &[["contradicts", &a], ["supports", &itself]]).unit_id();
    assert_eq!(b, itself);
    let dispute = Dispute { conflict: b.replace("mem", "conflict"), a, b };
    assert_eq!(decide_by(&mut stage, &dispute, "evidence_count"), escalated());
}

#[test]
fn with_equal_support_more_evidence_prevails_and_equal_evidence_is_a_tie() {
    let items = |count: usize| json!({ "evidence": vec!["e"; count] });
    for (a, b) in [(2, 1), (0, 3), (1, 1), (0, 0)] {
        let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
        let dispute = Dispute::between(&mut stage, items(a), items(b));
        for unit in [&dispute.a, &dispute.b] {
            stage.relate("kim", &[["supports", unit]]).ok();
        }
        let found = decide_by(&mut stage, &dispute, "evidence_count");
        match a.cmp(&b) {
            std::cmp::Ordering::Greater => assert_eq!(found, resolved(&dispute.a)),
            std::cmp::Ordering::Less => assert_eq!(found, resolved(&dispute.b)),
            std::cmp::Ordering::Equal => {
                assert_eq!(found, escalated());
                let why = format!("1 supporting units and {a} evidence items each");
                assert!(reason(&mut stage, &dispute).contains(&why));
            }
        }
    }
    // Support comes before evidence.
    let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
    let dispute = Dispute::between(&mut stage, items(0), items(9));
    stage.relate("kim", &[["supports", &dispute.a]]).ok();
    assert_eq!(decide_by(&mut stage, &dispute, "evidence_count"), resolved(&dispute.a));
}

#[test]
fn a_winner_may_be_named_where_it_is_the_strategys_own() {
    for (strategy, a_wins) in
        [("last_write_wins", false), ("confidence_weighted", false), ("evidence_count", true)]
    {
        let (mut stage, dispute) = Dispute::staged();
        stage.relate("kim", &[["supports", &dispute.a]]).ok();
        let (own, other) = if a_wins { (&dispute.a, &dispute.b) } else { (&dispute.b, &dispute.a) };
        let refusal =
            stage.merge("kim", &dispute.conflict, strategy, json!({ "winner_id": other })).refusal();
        assert_eq!((refusal.code, &refusal.details["winner_id"]), (ErrorCode::MergeFailed, &json!(own)));
        assert_eq!(stage.conflict("kim", &dispute.conflict)["status"], "detected", "as it was");
        stage.merge("kim", &dispute.conflict, strategy, json!({ "winner_id": own })).ok();
        assert_eq!(stage.status(own), UnitStatus::Active);
    }
}

#[test]
fn without_enforced_authority_nobody_has_more() {
    let (mut stage, dispute) = Dispute::staged();
    assert_eq!(decide_by(&mut stage, &dispute, "authority"), escalated());
    assert!(reason(&mut stage, &dispute).contains("not enforced"));
}

#[test]
fn an_escalated_conflict_is_decided_by_a_human_who_is_anybody_without_enforcement() {
    let (mut stage, dispute) = Dispute::staged();
    assert_eq!(decide_by(&mut stage, &dispute, "human_escalation"), escalated());
    assert_eq!(reason(&mut stage, &dispute), "kim asks for a human's decision.");
    assert_eq!([&dispute.a, &dispute.b].map(|unit| stage.status(unit)), [UnitStatus::Contested; 2]);
    assert_eq!(stage.attune("kim", json!({}))["conflicts"][0]["status"], "escalated", "it is still open");
    let decision = json!({ "winner_id": dispute.a, "rationale": "I called them." });
    let answer = stage.merge("ada", &dispute.conflict, "human_escalation", decision).ok();
    let resolution = &answer["conflict"]["resolution"];
    assert_eq!((&answer["status"], &resolution["winner_id"]), (&json!("resolved"), &json!(dispute.a)));
    assert_eq!(
        (&resolution["resolved_by"], &resolution["rationale"]),
        (&json!("ada"), &json!("I called them."))
    );
    assert_eq!(stage.status(&dispute.a), UnitStatus::Active);
    assert_eq!(stage.attune("kim", json!({}))["conflicts"], json!([]));
}

#[test]
fn a_synthesis_takes_the_place_of_both_and_is_as_sure_as_the_less_sure() {
    let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
    let task = |unit: Value| with(unit, json!({ "intent": { "purpose": "p", "task_id": "t-1" } }));
    let a = stage.send("ada", "RECORD", task(finding("23 %"))).unit_id();
    let sure = json!({ "confidence": { "score": 0.8, "reason": "r" } });
    let b = stage.send("bob", "RECORD", with(related("14 %", &[["contradicts", &a]]), sure)).unit_id();
    let conflict = b.replace("mem", "conflict");
    let resolution = json!({ "rationale": "Two\nsegments.", "synthesis": " 23 % small, 14 % large " });
    let payload = json!({ "conflict_id": conflict, "strategy": "synthesis", "resolution": resolution });
    let answer = stage.say(saying("kim", "MERGE", payload).session("s-1"));
    let (epoch, answer) = (answer.epoch, answer.ok());
    let new = format!("mem-{epoch}");
    let effects = json!({ "superseded_units": [a, b], "new_unit_id": new, "notified_agents": [] });
    assert_eq!((&answer["status"], &answer["side_effects"]), (&json!("resolved"), &effects));
    assert_eq!(answer["conflict"]["resolution"]["winner_id"], json!(null));
    let shown = stage.filled().unit_shown(&new, None, &stage.policy).unwrap().unwrap();
    for (key, value) in [
        ("type", json!("synthesis")),
        ("mode", json!("committed")),
        ("status", json!("active")),
        ("epoch", json!(epoch)),
        ("content", json!(" 23 % small, 14 % large ")),
        (
            "relations",
            json!([
                { "type": "elaborates", "target_id": a, "description": null },
                { "type": "elaborates", "target_id": b, "description": null },
            ]),
        ),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
    assert_eq!(
        (&shown["source"]["agent_id"], &shown["source"]["session_id"]),
        (&json!("kim"), &json!("s-1"))
    );
    let purpose = format!("Resolve {conflict} between {a} and {b}: Two segments.");
    assert_eq!((&shown["intent"]["purpose"], &shown["intent"]["task_id"]), (&json!(purpose), &json!("t-1")));
    assert_eq!(shown["confidence"]["score"], 0.5);
    assert_eq!(
        shown["confidence"]["reason"],
        format!("The lower of {a} (0.5) and {b} (0.8), which it joins.")
    );
    assert_eq!([&a, &b].map(|unit| stage.status(unit)), [UnitStatus::Superseded; 2]);
    assert_eq!(stage.attuned_ids("ada", json!({})), [new], "the synthesis is found in their place");
}

#[test]
fn a_synthesis_of_two_tasks_is_of_neither() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let of = |unit: Value, task: &str| with(unit, json!({ "intent": { "purpose": "p", "task_id": task } }));
    let a = stage.send("ada", "RECORD", of(finding("x"), "t-1")).unit_id();
    let b = stage.send("bob", "RECORD", of(related("y", &[["contradicts", &a]]), "t-2")).unit_id();
    let joined = json!({ "synthesis": "both" });
    let answer = stage.merge("ada", &b.replace("mem", "conflict"), "synthesis", joined).ok();
    let new = text(&answer["side_effects"]["new_unit_id"]);
    assert_eq!(stage.slot(&new).said().intent.task_id, None);
}
