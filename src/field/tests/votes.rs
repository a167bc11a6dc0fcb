//! MERGE by vote (sections 7 and 12).

use serde_json::json;

use super::*;

const VOTERS: [&str; 6] = ["v1", "v2", "v3", "v4", "v5", "v6"];

fn polling_station(quorum: usize) -> (Stage, Dispute) {
    let (mut stage, dispute) = Dispute::staged();
    VOTERS.iter().for_each(|voter| stage.join(voter));
    stage.policy.limits.vote_quorum = quorum;
    (stage, dispute)
}

fn ballot(stage: &mut Stage, dispute: &Dispute, voter: &str, for_a: bool) -> Value {
    let winner = if for_a { &dispute.a } else { &dispute.b };
    let resolution = json!({ "winner_id": winner, "rationale": format!("{voter} thinks so") });
    stage.merge(voter, &dispute.conflict, "vote", resolution).ok()
}

/// The statuses of the answers to ballots in a row, `a` and `b` each.
fn course(quorum: usize, ballots: &str) -> (Vec<String>, Stage, Dispute) {
    let (mut stage, dispute) = polling_station(quorum);
    let cast = ballots
        .chars()
        .zip(VOTERS)
        .map(|(side, voter)| text(&ballot(&mut stage, &dispute, voter, side == 'a')["status"]));
    let statuses = cast.collect();
    (statuses, stage, dispute)
}

#[test]
fn a_vote_resolves_as_soon_as_one_side_has_more_than_half_of_the_quorum() {
    let pending = |count: usize| vec!["pending_vote"; count];
    for (quorum, ballots, end, a_wins) in [
        (1, "a", "resolved", true),
        (1, "b", "resolved", false),
        (2, "bb", "resolved", false),
        (2, "ab", "escalated", false),
        (3, "aa", "resolved", true),
        (3, "bab", "resolved", false),
        (4, "aaa", "resolved", true),
        (4, "abaa", "resolved", true),
        (4, "abba", "escalated", false),
        (5, "abbab", "resolved", false),
        (6, "aabbab", "escalated", false),
    ] {
        let (statuses, mut stage, dispute) = course(quorum, ballots);
        let expected = [pending(ballots.len() - 1), vec![end]].concat();
        assert_eq!(statuses, expected, "{ballots} of {quorum}");
        let conflict = stage.conflict("kim", &dispute.conflict);
        assert_eq!(conflict["status"], end);
        assert_eq!(list(&conflict["ballots"]).len(), ballots.len(), "what was said stays");
        let last = VOTERS[ballots.len() - 1];
        let resolution = &conflict["resolution"];
        assert_eq!((&resolution["strategy"], &resolution["resolved_by"]), (&json!("vote"), &json!(last)));
        assert_eq!(resolution["rationale"], format!("{last} thinks so"));
        let winner = if a_wins { &dispute.a } else { &dispute.b };
        let winner = (end == "resolved").then_some(winner);
        assert_eq!(resolution["winner_id"], json!(winner), "{ballots} of {quorum}");
        if winner.is_none() {
            let each = ballots.len() / 2;
            assert_eq!(conflict["escalation_reason"], format!("The vote is tied, {each} to {each}."));
        }
        invariants::check(&stage.state.world);
        assert_eq!(stage.rebuilt().world, stage.state.world);
    }
}

#[test]
fn a_pending_vote_is_shown_and_contests_both_units() {
    let (mut stage, dispute) = polling_station(3);
    let answer = ballot(&mut stage, &dispute, "v1", true);
    let ballots = json!([{ "agent_id": "v1", "winner_id": dispute.a }]);
    let none = json!({ "superseded_units": [], "new_unit_id": null, "notified_agents": [] });
    assert_eq!((&answer["status"], &answer["side_effects"]), (&json!("pending_vote"), &none));
    let shown = [
        answer["conflict"].clone(),
        stage.attune("kim", json!({}))["conflicts"][0].clone(),
        stage.state.world.conflicts_shown(&[])["conflicts"][0].clone(),
        stage.conflict("kim", &dispute.conflict),
    ];
    for conflict in shown {
        assert_eq!((&conflict["status"], &conflict["ballots"]), (&json!("resolving"), &ballots));
        assert_eq!(conflict.get("resolution"), None);
    }
    assert_eq!([&dispute.a, &dispute.b].map(|unit| stage.status(unit)), [UnitStatus::Contested; 2]);
}

#[test]
fn a_second_ballot_replaces_the_first() {
    let (mut stage, dispute) = polling_station(3);
    ballot(&mut stage, &dispute, "v1", true);
    ballot(&mut stage, &dispute, "v2", false);
    // Saying the same again is no second vote.
    assert_eq!(ballot(&mut stage, &dispute, "v1", true)["status"], "pending_vote");
    let answer = ballot(&mut stage, &dispute, "v1", false);
    let ballots = json!([
        { "agent_id": "v1", "winner_id": dispute.b }, { "agent_id": "v2", "winner_id": dispute.b },
    ]);
    assert_eq!((&answer["status"], &answer["conflict"]["ballots"]), (&json!("resolved"), &ballots));
    assert_eq!(answer["conflict"]["resolution"]["winner_id"], json!(dispute.b));
}

#[test]
fn the_authors_vote_like_others_and_a_ballot_outlives_its_agent() {
    let (mut stage, dispute) = polling_station(3);
    ballot(&mut stage, &dispute, "ada", true);
    stage.send("ada", "DEREGISTER", json!({ "agent_id": "ada" })).ok();
    assert_eq!(ballot(&mut stage, &dispute, "bob", false)["status"], "pending_vote");
    // Who comes back has one ballot still.
    stage.join("ada");
    assert_eq!(ballot(&mut stage, &dispute, "ada", true)["status"], "pending_vote");
    assert_eq!(ballot(&mut stage, &dispute, "kim", true)["status"], "resolved");
}

#[test]
fn a_vote_that_never_ends_is_called_off_for_a_human() {
    let (mut stage, dispute) = polling_station(100);
    ballot(&mut stage, &dispute, "v1", true);
    stage.merge("kim", &dispute.conflict, "human_escalation", json!({})).ok();
    let conflict = stage.conflict("kim", &dispute.conflict);
    assert_eq!(conflict["escalation_reason"], "kim called the vote off and asks for a human's decision.");
    let refused = stage.merge("v2", &dispute.conflict, "vote", json!({ "winner_id": dispute.a }));
    assert_eq!(refused.code(), ErrorCode::InvalidTransition);
    stage.merge("bob", &dispute.conflict, "human_escalation", json!({ "winner_id": dispute.b })).ok();
    assert_eq!(stage.status(&dispute.a), UnitStatus::Superseded);
}

#[test]
fn a_quorum_that_was_lowered_in_between_is_judged_by_who_leads() {
    for (ballots, next_for_a, status) in [("aab", true, "resolved"), ("aab", false, "escalated")] {
        let (_, mut stage, dispute) = course(9, ballots);
        stage.policy.limits.vote_quorum = 3;
        assert_eq!(ballot(&mut stage, &dispute, "v4", next_for_a)["status"], status);
    }
}

#[test]
fn the_ballots_of_two_conflicts_are_apart() {
    let (mut stage, dispute) = polling_station(3);
    let third = stage.relate("kim", &[["contradicts", &dispute.a]]).unit_id();
    let other =
        Dispute { a: dispute.a.clone(), b: third.clone(), conflict: third.replace("mem", "conflict") };
    ballot(&mut stage, &dispute, "v1", true);
    assert_eq!(ballot(&mut stage, &other, "v2", true)["status"], "pending_vote");
    // A ballot for a unit of the other conflict is none.
    let refused = stage.merge("v3", &dispute.conflict, "vote", json!({ "winner_id": third }));
    assert_eq!(refused.code(), ErrorCode::MergeFailed);
    assert_eq!(ballot(&mut stage, &dispute, "v2", true)["status"], "resolved");
    assert_eq!(stage.conflict("kim", &other.conflict)["status"], "resolving");
    assert_eq!(stage.status(&dispute.a), UnitStatus::Contested, "by the other one still");
}
