//! Conflicts resolved through real sockets: authors hear of it unasked, moments that collide have one outcome, and
//! what was voted outlives the hub.

mod process;
mod support;

use akashik_hub::client::{Client, ClientError, ClientOptions, Detect, Merge, Record, Replay};
use akashik_hub::protocol::{ConflictStatus, ErrorCode, ReplayTarget, Strategy};
use futures::future::join_all;
use process::HubProcess;
use serde_json::{Value, json};
use support::{Running, Socket, check, finding, start, start_with};
use tempfile::TempDir;

/// MERGE over HTTP, as a person with curl does it.
async fn merge(hub: &Running, agent: &str, conflict: &str, strategy: &str, more: Value) -> support::Reply {
    let mut resolution = json!({ "rationale": "I looked at both." });
    resolution.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let payload = json!({ "conflict_id": conflict, "strategy": strategy, "resolution": resolution });
    hub.post("/v1/merge", &[("Akashik-Agent", agent)], payload.to_string()).await
}

fn envelope_of_merge(conflict: &str, strategy: &str) -> Value {
    json!({ "conflict_id": conflict, "strategy": strategy, "resolution": { "rationale": "r" } })
}

/// Ada's unit, ben's against it, and their conflict, each author on a socket of its own.
async fn dispute(ada: &mut Socket, ben: &mut Socket, round: usize) -> [String; 3] {
    let id = format!("record-{round}");
    let first = ada.call(&id, "RECORD", "ada", finding("The market grows by 23 %.")).await;
    let first = first["payload"]["memory_unit_id"].as_str().unwrap().to_owned();
    let mut against = finding("The market grows by 14 %.");
    against["relations"] = json!([{ "type": "contradicts", "target_id": first }]);
    let second = ben.call(&id, "RECORD", "ben", against).await;
    let conflict = second["payload"]["conflicts_detected"][0].as_str().unwrap().to_owned();
    [first, second["payload"]["memory_unit_id"].as_str().unwrap().to_owned(), conflict]
}

async fn two_authors(hub: &Running) -> (Socket, Socket) {
    let (mut ada, mut ben) = (hub.websocket().await, hub.websocket().await);
    ada.register("ada").await;
    ben.register("ben").await;
    (ada, ben)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_decides_what_was_escalated_and_both_authors_hear_of_it_without_a_subscription() {
    let hub = start().await;
    let (mut ada, mut ben) = two_authors(&hub).await;
    let [first, second, conflict] = dispute(&mut ada, &mut ben, 0).await;
    hub.register("kim").await;
    let mut eve = hub.websocket().await;
    eve.register("eve").await;
    let wish = json!({ "action": "subscribe", "subscription": { "events": ["conflict.escalated"] } });
    eve.call("s", "SUBSCRIBE", "eve", wish).await;

    let reply = merge(&hub, "kim", &conflict, "authority", json!({})).await;
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("escalated")), "{}", reply.text());
    let push = eve.reply().await;
    let notice = &push["payload"];
    assert_eq!(
        [&notice["event"], &notice["conflict_id"], &notice["requires_action"]],
        [&json!("conflict.escalated"), &json!(conflict), &json!(true)]
    );
    let open = hub.get("/v1/conflicts").await.json();
    assert_eq!(open["conflicts"][0]["status"], "escalated");

    // What an agent may not do now, and what a person may.
    check(&merge(&hub, "ada", &conflict, "last_write_wins", json!({})).await, 409, "INVALID_TRANSITION");
    check(&merge(&hub, "kim", "conflict-1", "vote", json!({})).await, 404, "CONFLICT_NOT_FOUND");
    let reply = merge(&hub, "kim", &conflict, "human_escalation", json!({ "winner_id": first })).await;
    let answer = reply.json();
    assert_eq!((reply.status, &answer["status"]), (200, &json!("resolved")), "{}", reply.text());
    let effects =
        json!({ "superseded_units": [second], "new_unit_id": null, "notified_agents": ["ada", "ben"] });
    assert_eq!(answer["side_effects"], effects);
    let epoch = reply.header("akashik-epoch").unwrap();
    for (author, socket) in [("ada", &mut ada), ("ben", &mut ben)] {
        let push = socket.reply().await;
        assert_eq!((&push["operation"], &push["agent_id"]), (&json!("SUBSCRIBE"), &json!(author)));
        let notice = &push["payload"];
        assert_eq!(push["id"], format!("push-direct-{}", notice["cursor"].as_str().unwrap()));
        for (key, value) in [
            ("subscription_id", json!("direct")),
            ("event", json!("conflict.resolved")),
            ("conflict_id", json!(conflict)),
            ("agent_id", json!("kim")),
            ("epoch", epoch.parse::<u64>().unwrap().into()),
            ("relevance_score", json!(1.0)),
        ] {
            assert_eq!(notice[key], value, "{key} for {author}");
        }
    }
    check(&merge(&hub, "kim", &conflict, "vote", json!({})).await, 409, "INVALID_TRANSITION");
    assert_eq!(hub.get("/v1/conflicts").await.json()["conflicts"], json!([]));
    let resolved = hub.get("/v1/conflicts?status=resolved").await.json();
    assert_eq!(resolved["conflicts"][0], answer["conflict"]);
    assert_eq!(hub.get(&format!("/v1/units/{second}")).await.json()["status"], "superseded");
    assert_eq!(hub.get(&format!("/v1/units/{first}")).await.json()["status"], "active");
    let status = hub.get("/v1/field/status").await.json();
    assert_eq!((&status["conflicts"], &status["conflicts_unresolved"]), (&json!(1), &json!(0)));
    // Nothing else was pushed: the next frame is the reply to the next question.
    for socket in [&mut ada, &mut ben] {
        socket.call("end", "DETECT", "ada", json!({ "mode": "list" })).await;
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_author_who_resolves_gets_the_reply_before_the_news() {
    let hub = start().await;
    let (mut ada, mut ben) = two_authors(&hub).await;
    let [first, second, conflict] = dispute(&mut ada, &mut ben, 0).await;
    let payload = json!({
        "conflict_id": conflict, "strategy": "synthesis",
        "resolution": { "rationale": "Two segments.", "synthesis": "23 % for small firms, 14 % for large ones." },
    });
    let reply = ben.call("m", "MERGE", "ben", payload).await;
    let effects = &reply["payload"]["side_effects"];
    assert_eq!(effects["notified_agents"], json!(["ada", "ben"]), "{reply}");
    assert_eq!(effects["superseded_units"], json!([first, second]));
    let new = effects["new_unit_id"].as_str().unwrap();
    for socket in [&mut ada, &mut ben] {
        let push = socket.reply().await;
        assert_eq!(push["payload"]["subscription_id"], "direct");
        assert!(push["payload"]["summary"].as_str().unwrap().contains(&format!("joined in {new}")));
    }
    // The synthesis is found like any unit, by its words.
    let attune = json!({
        "scope": { "role": "researcher", "max_units": 5 }, "context_hint": "growth of small firms",
    });
    let found = ada.call("a", "ATTUNE", "ada", attune).await;
    assert_eq!(found["payload"]["context_budget"]["units_available"], 1);
    assert_eq!(found["payload"]["record"][0]["memory_unit"]["id"], new);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_merges_at_one_moment_one_counts() {
    // The rounds say the same again: without detection only what is told is in conflict.
    let hub = start_with(|config| config.detection_budget_ms = 0).await;
    let (mut ada, mut ben) = two_authors(&hub).await;
    for round in 0..10 {
        let [first, second, conflict] = dispute(&mut ada, &mut ben, round).await;
        let agents = ["ada", "ben"].into_iter().cycle().take(8);
        let strategies = ["last_write_wins", "evidence_count", "human_escalation"].into_iter().cycle();
        let asked = agents.zip(strategies).map(|(agent, strategy)| {
            let payload = envelope_of_merge(&conflict, strategy).to_string();
            let hub = &hub;
            async move { hub.post("/v1/merge", &[("Akashik-Agent", agent)], payload).await }
        });
        let replies = join_all(asked).await;
        let (done, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
        assert_eq!(done.len(), 1, "one outcome");
        refused.iter().for_each(|reply| drop(check(reply, 409, "INVALID_TRANSITION")));
        let statuses = [&first, &second].map(|unit| format!("/v1/units/{unit}"));
        let [a, b] = [hub.get(&statuses[0]).await.json(), hub.get(&statuses[1]).await.json()];
        let expected = match done[0].json()["status"].as_str().unwrap() {
            "resolved" => ("superseded", "active"),
            _ => ("contested", "contested"),
        };
        assert_eq!((a["status"].as_str().unwrap(), b["status"].as_str().unwrap()), expected);
        // One outcome is one piece of news.
        if expected.1 == "active" {
            for socket in [&mut ada, &mut ben] {
                assert_eq!(socket.reply().await["payload"]["event"], "conflict.resolved");
            }
        }
    }
    hub.stop().await;
}

async fn connect(hub: &HubProcess, id: &str) -> Client {
    Client::connect(&hub.url, ClientOptions::new(id)).await.expect("the hub takes connections")
}

fn code(error: ClientError) -> ErrorCode {
    match error {
        ClientError::Refused(body) => body.code,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_goes_on_after_the_hub_was_killed() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &["--vote-quorum", "5"]);
    let mut agents = Vec::new();
    for id in ["ada", "ben", "eve"] {
        let client = connect(&hub, id).await;
        let registered = client.register("researcher").await.expect("registered");
        assert_eq!(registered.field_capabilities.limits.vote_quorum, 5);
        assert!(registered.field_capabilities.conflict_strategies.contains(&"vote".to_owned()));
        agents.push(client);
    }
    let unit = |text: &str| Record::finding(text).because("to size the market").sure(0.5, "seen");
    let first = agents[0].record(unit("23 %")).await.expect("recorded").memory_unit_id;
    let second = agents[1].record(unit("14 %").contradicts(first)).await.expect("recorded");
    let conflict = second.conflicts_detected[0];
    let ballot = || Merge::by(Strategy::Vote, conflict).for_winner(first).because("the better source");
    for agent in &agents[..2] {
        assert_eq!(agent.merge(ballot()).await.expect("a ballot").status, "pending_vote");
    }
    let before = agents[2].detect(Detect::list()).await.expect("listed");
    hub.kill();

    let hub = HubProcess::start(data.path(), &["--vote-quorum", "5"]);
    let eve = connect(&hub, "eve").await;
    let after = eve.detect(Detect::list().status(ConflictStatus::Resolving)).await.expect("listed");
    assert_eq!(after.conflicts, before.conflicts);
    assert_eq!(after.conflicts[0].ballots.len(), 2);
    let merged = eve.merge(ballot()).await.expect("the third of five");
    assert_eq!(merged.status, "resolved");
    assert_eq!(merged.side_effects.superseded_units, [second.memory_unit_id]);
    assert_eq!(code(eve.merge(ballot()).await.expect_err("it is over")), ErrorCode::InvalidTransition);
    let replayed = eve.replay(Replay::of(ReplayTarget::Conflict, conflict)).await.expect("replayed");
    let told: Vec<_> = replayed.timeline.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(told, ["RECORD", "RECORD", "CONFLICT_CREATED", "VOTE", "VOTE", "VOTE", "MERGE"]);
    eve.close().await;
    hub.stop();
}
