//! A team at work: agents in different roles share a question over real sockets, contradict and correct each
//! other, and the story comes out right; also after a restart.

mod process;

use akashik_hub::client::{
    Attune, Client, ClientError, ClientOptions, Commit, Detect, Record, Register, Replay,
};
use akashik_hub::protocol::{
    Attuned, ConflictStatus, ErrorCode, MemoryType, ReplayDepth, ReplayTarget, Replayed, UnitStatus,
};
use process::HubProcess;
use tempfile::TempDir;

const SESSION: &str = "session-q1";
const TASK: &str = "task-market-sizing";

async fn join(hub: &HubProcess, id: &str, role: &str) -> Client {
    let options = ClientOptions::new(id).in_session(SESSION);
    let client = Client::connect(&hub.url, options).await.expect("the hub takes connections");
    client.register(Register::as_role(role)).await.expect("registered");
    client
}

async fn return_to(hub: &HubProcess, id: &str) -> Client {
    Client::connect(&hub.url, ClientOptions::new(id).in_session(SESSION))
        .await
        .expect("the hub takes connections")
}

fn ids(attuned: &Attuned) -> Vec<&str> {
    attuned.record.iter().map(|scoped| scoped.memory_unit.id.as_str()).collect()
}

fn told(replayed: &Replayed) -> Vec<(&str, &str)> {
    replayed.timeline.iter().map(|event| (event.event_type.as_str(), event.agent_id.as_str())).collect()
}

fn code(error: ClientError) -> ErrorCode {
    match error {
        ClientError::Refused(body) => body.code,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_finds_contradicts_corrects_and_remembers() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &[]);
    let ada = join(&hub, "researcher-01", "market_researcher").await;
    let ben = join(&hub, "researcher-02", "market_researcher").await;
    let eve = join(&hub, "strategist-01", "strategist").await;

    // Ada finds; Eve, who asked for nothing by name, is brought it.
    let growth = ada
        .record(
            Record::finding("European SaaS market for SMB HR tools is growing at 23% CAGR.")
                .because("Validate market size assumption for go-to-market strategy")
                .for_task(TASK)
                .sure(0.82, "Based on three independent analyst reports."),
        )
        .await
        .expect("recorded");
    let hint = "About to draft the competitive positioning section on market growth";
    let first = eve.attune(Attune::for_role("strategist", 10).hint(hint)).await.expect("attuned");
    assert_eq!(ids(&first), [growth.memory_unit_id.to_string()]);
    assert!(first.record[0].relevance_score > 0.0 && first.record[0].relevance_score <= 1.0);
    assert!(
        first.record[0].relevance_reason.contains("market_researcher"),
        "{}",
        first.record[0].relevance_reason
    );
    let own = ada.attune(Attune::for_role("market_researcher", 10)).await.expect("attuned");
    assert!(own.record.is_empty(), "one's own units are left out");

    // Ben drafts in private, then commits a contradiction.
    let draft = ben
        .record(
            Record::finding("The same market grows at 14% CAGR only.")
                .as_draft()
                .because("Check the growth estimate")
                .contradicts(growth.memory_unit_id),
        )
        .await
        .expect("drafted");
    let polled = eve.attune(Attune::for_role("strategist", 10).since(first.epoch)).await.expect("attuned");
    assert!(polled.record.is_empty() && polled.conflicts.is_empty(), "a draft is its author's");
    let unsure = ben.commit(Commit::of(draft.memory_unit_id)).await.expect_err("no confidence yet");
    assert_eq!(code(unsure), ErrorCode::MissingConfidence);
    ben.commit(Commit::of(draft.memory_unit_id).sure(0.7, "Two bottom-up models.")).await.expect("committed");
    let polled = eve.attune(Attune::for_role("strategist", 10).since(polled.epoch)).await.expect("attuned");
    assert_eq!(ids(&polled), [draft.memory_unit_id.to_string()], "a poll brings what was committed since");
    assert_eq!(polled.record[0].memory_unit.status, Some(UnitStatus::Contested));
    let conflict = polled.conflicts.first().expect("the contradiction is open to all").clone();
    assert_eq!((conflict.unit_a, conflict.unit_b), (growth.memory_unit_id, draft.memory_unit_id));

    // Ada corrects herself: her unit is superseded, and the conflict ends in Ben's favour.
    let corrected = ada
        .record(
            Record::new(MemoryType::Correction, "Recounted: 15% CAGR, close to the bottom-up models.")
                .because("Correct the growth estimate")
                .for_task(TASK)
                .sure(0.9, "Primary data.")
                .supersedes(growth.memory_unit_id),
        )
        .await
        .expect("recorded");
    let listed = eve.detect(Detect::list()).await.expect("listed");
    assert_eq!(listed.conflicts.len(), 1);
    assert_eq!(listed.conflicts[0].status, ConflictStatus::Resolved);
    let resolution = listed.conflicts[0].resolution.as_ref().expect("a resolved conflict says how");
    assert_eq!(resolution.winner_id, Some(draft.memory_unit_id));

    // Eve decides, and takes another thing back.
    let decision = eve
        .record(
            Record::decision("Enter the market in Q3 with a 15% growth plan.")
                .because("Set the go-to-market plan")
                .sure(0.8, "Corrected estimate and model agree.")
                .relates(akashik_hub::protocol::RelationType::DependsOn, corrected.memory_unit_id),
        )
        .await
        .expect("recorded");
    let hasty = eve
        .record(Record::observation("Competitor X left the market.").because("Note").sure(0.4, "Hearsay."))
        .await
        .expect("recorded");
    let foreign = ada.retract(hasty.memory_unit_id, "not mine").await.expect_err("not the author");
    assert_eq!(code(foreign), ErrorCode::Forbidden);
    eve.retract(hasty.memory_unit_id, "It was a rumour.").await.expect("retracted");

    check_story(&ben, growth.memory_unit_id, &decision).await;
    let before = ben.attune(Attune::for_role("market_researcher", 10)).await.expect("attuned");
    let expected = [decision.memory_unit_id.to_string(), corrected.memory_unit_id.to_string()];
    let mut found = ids(&before);
    found.sort_unstable();
    let mut wanted: Vec<_> = expected.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "superseded and retracted units are gone");
    for client in [ada, ben, eve] {
        client.close().await;
    }
    hub.stop();

    // The same story after a restart, to agents that just come back.
    let hub = HubProcess::start(data.path(), &[]);
    let ben = return_to(&hub, "researcher-02").await;
    let after = ben.attune(Attune::for_role("market_researcher", 10)).await.expect("attuned");
    assert!(after.epoch > before.epoch, "epochs go only up");
    assert_eq!(ids(&after), ids(&before), "the same units in the same order");
    check_story(&ben, growth.memory_unit_id, &decision).await;
    ben.close().await;
    hub.stop();
}

/// What REPLAY tells of the first finding, its conflict, the decision and the session.
async fn check_story(
    client: &Client,
    first: akashik_hub::protocol::UnitId,
    decision: &akashik_hub::protocol::Recorded,
) {
    let replay = |target, id: String, depth| Replay::of(target, id).depth(depth);
    let chain = client
        .replay(replay(ReplayTarget::MemoryUnit, first.to_string(), ReplayDepth::FullTrace))
        .await
        .expect("replayed");
    let (ada, system) = ("researcher-01", "system");
    assert_eq!(
        told(&chain),
        [("RECORD", ada), ("CONFLICT_CREATED", system), ("RECORD", ada), ("MERGE", system)],
        "the unit, what contradicted it, what superseded it, how the conflict ended"
    );
    assert!(chain.timeline.windows(2).all(|pair| pair[0].epoch <= pair[1].epoch));

    let why = client
        .replay(replay(ReplayTarget::Decision, decision.memory_unit_id.to_string(), ReplayDepth::Summary))
        .await
        .expect("replayed");
    assert!(
        why.timeline.iter().any(|event| event.description.contains("15% CAGR")),
        "what the decision rests on"
    );
    assert!(why.agents_involved.contains(&"strategist-01".to_owned()) && !why.summary.is_empty());

    let session = client
        .replay(replay(ReplayTarget::Session, SESSION.to_owned(), ReplayDepth::FullTrace))
        .await
        .expect("replayed");
    assert!(session.total_events >= 10 && session.timeline.len() == session.total_events);
    let task = client
        .replay(replay(ReplayTarget::Task, TASK.to_owned(), ReplayDepth::Detailed))
        .await
        .expect("replayed");
    assert_eq!(told(&task), [("RECORD", ada), ("RECORD", ada)]);
    let unknown = client
        .replay(replay(ReplayTarget::Decision, first.to_string(), ReplayDepth::Summary))
        .await
        .expect_err("a finding is no decision");
    assert_eq!(code(unknown), ErrorCode::UnitNotFound);
}

/// Unless meaning is switched off, an agent is brought what shares no word with what it is about to do; and the hub says
/// so when it registers.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_meant_is_found_where_no_word_is_shared() {
    for (flags, expected) in
        [(vec![], true), (vec!["--no-meaning"], false), (vec!["--meaning", "--level", "1"], false)]
    {
        let data = TempDir::new().expect("a directory");
        let hub = HubProcess::start(data.path(), &flags);
        let ada = join(&hub, "ada", "engineer").await;
        let eve =
            Client::connect(&hub.url, ClientOptions::new("eve")).await.expect("the hub takes connections");
        let joined = eve.register(Register::as_role("planner")).await.expect("registered");
        let told = joined.field_capabilities.embedding.map(|embedding| embedding["dimensions"].clone());
        assert_eq!(told, expected.then(|| serde_json::json!(256)), "{flags:?}");
        for text in [
            "The database keeps customer invoices in PostgreSQL.",
            "Lunch is served at noon in the canteen.",
            "The new logo is green with a white border.",
            "Parking spaces are given out every Monday.",
        ] {
            ada.record(Record::finding(text).because("Keep for the team").sure(0.9, "Seen."))
                .await
                .expect("recorded");
        }
        let hint = "where do we store the bills our clients receive";
        let found = eve.attune(Attune::for_role("planner", 4).hint(hint)).await.expect("attuned");
        let first = found.record[0].memory_unit.content.as_deref().expect("a full unit");
        assert_eq!(first.contains("invoices"), expected, "{flags:?}: {first}");
        hub.stop();
    }
}

/// An agent at a task with little room is brought what serves it, within its budget of tokens, and told why.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_a_budget_and_an_explanation_travel_over_the_wire() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &[]);
    let ada = join(&hub, "ada", "engineer").await;
    let eve = join(&hub, "eve", "planner").await;
    let note = |text: &str| Record::finding(text).because("Keep for the team").sure(0.9, "Seen.");
    let wanted = ada.record(note("The quota is 40 seats.").for_task(TASK)).await.expect("recorded");
    for number in 0..20 {
        let text = format!("Note {number} on something else. ").repeat(12);
        ada.record(note(&text)).await.expect("recorded");
    }
    let asked = || Attune::for_role("planner", 20).on_task(TASK).explained();
    let found = eve.attune(asked().max_tokens(700)).await.expect("attuned");
    assert_eq!(found.record[0].memory_unit.id, wanted.memory_unit_id.to_string());
    assert!(found.record[0].relevance_reason.contains("serves task-market-sizing"));
    for scoped in &found.record {
        let factors = scoped.factors.as_ref().expect("it was asked to explain");
        let sum: f64 = factors.values().map(|factor| factor.contribution).sum();
        assert!((sum - scoped.relevance_score).abs() < 1e-5, "{scoped:?}");
    }
    let formats: Vec<&str> = found.record.iter().map(|scoped| &*scoped.format).collect();
    assert!(formats.is_sorted() && formats[0] == "full", "in full first, then summaries: {formats:?}");
    let budget = &found.context_budget;
    let (used, shown) = (budget.tokens_used.expect("counted"), found.record.len());
    assert_eq!((budget.tokens_budget, budget.units_available), (Some(700), 21));
    assert!((300..=700).contains(&used) && (2..20).contains(&shown), "{used} tokens, {shown} units");
    let all = eve.attune(asked()).await.expect("attuned");
    assert_eq!(ids(&all)[..shown], ids(&found)[..], "the best of them");
    hub.stop();
}
