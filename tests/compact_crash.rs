//! COMPACT, and the notes of what ATTUNE showed, through the real binary that is killed at any moment under load: all of
//! a COMPACT is there or nothing of it, what was acknowledged is there, what was purged is told by nobody.
//!
//! `AKASHIK_CRASH_ROUNDS` sets the number of kills of each kind (default 2), `AKASHIK_CRASH_SEED` where they fall.

mod process;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use akashik_hub::client::{
    Attune, Client, ClientOptions, Compact, Record, Register, Replay, http::HttpClient,
};
use akashik_hub::protocol::{CompactStrategy, MemoryType, Operation, ReplayTarget, UnitId};
use process::{HubProcess, PATIENCE, run, until};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Units that a COMPACT is about.
const UNITS: u64 = 400;
/// Agents that go on writing meanwhile, and messages that each has in flight.
const WRITERS: usize = 3;
const DEPTH: usize = 8;
/// A word that only the units say that a COMPACT is about.
const WORD: &str = "confidential";

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The random numbers of a test, and how many rounds it has.
fn chance() -> (SmallRng, u64) {
    let (seed, rounds) = (number("AKASHIK_CRASH_SEED", 20_261_201), number("AKASHIK_CRASH_ROUNDS", 2));
    println!("AKASHIK_CRASH_SEED={seed} AKASHIK_CRASH_ROUNDS={rounds}");
    (SmallRng::seed_from_u64(seed), rounds)
}

async fn join(hub: &HubProcess, agent: &str) -> Arc<Client> {
    let client =
        Client::connect(&hub.url, ClientOptions::new(agent)).await.expect("the hub takes connections");
    client.register(Register::as_role("clerk")).await.expect("a name of its own");
    Arc::new(client)
}

fn said(kind: MemoryType, content: String) -> Record {
    Record::new(kind, content).because("to outlive the hub").sure(0.5, "seen")
}

/// Records without pause, and tells the epochs of what is acknowledged.
async fn write(client: Arc<Client>, told: UnboundedSender<u64>) {
    for number in 0.. {
        let unit = said(MemoryType::Question, format!("{} asks {number}", client.agent_id()));
        let Ok(recorded) = client.record(unit).await else { return };
        if told.send(recorded.epoch).is_err() {
            return;
        }
    }
}

/// Every line of the log, offline.
fn exported(data: &Path) -> Vec<Value> {
    let output = run(&["log", "export", "--data", data.to_str().expect("a plain path")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The epochs of the lines of these types.
fn epochs<'a>(lines: &'a [Value], types: &'a [&str]) -> impl Iterator<Item = u64> + 'a {
    let named = |line: &&Value| types.iter().any(|name| line["event_type"] == **name);
    lines.iter().filter(named).map(|line| line["epoch"].as_u64().expect("an epoch"))
}

/// The log is sound, and its snapshot, if there is one, holds the state that the log comes to.
fn verified(data: &Path) -> Value {
    let output = run(&["log", "verify", "--apply", "--data", data.to_str().expect("a plain path")]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(&said).expect("JSON");
    assert!(report["snapshot"].is_null() || report["snapshot"]["agrees"] == true, "{report}");
    report
}

async fn get(hub: &HubProcess, path: &str) -> Option<Value> {
    let address = hub.url.parse().expect("an address");
    let client = HttpClient { address, token: None, patience: PATIENCE };
    let text = client.get(path, None).await.ok()?;
    Some(serde_json::from_str(text.get()).expect("JSON"))
}

/// All pages of the units.
async fn units(hub: &HubProcess) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = get(hub, &format!("units?limit=500{after}")).await.expect("a page");
        all.extend(page["units"].as_array().expect("units").iter().cloned());
        let Some(cursor) = page["cursor"].as_str() else { return all };
        after = format!("&after={cursor}");
    }
}

/// When a hub is killed: as soon as the COMPACT is answered, or as soon as so many others were after it was sent.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Answered,
    After(u64),
}

/// What agents know when the hub is killed.
struct Known {
    /// The units that the COMPACT is about.
    about: Vec<UnitId>,
    /// The epochs of what was recorded beside it and acknowledged.
    recorded: Vec<u64>,
    /// How many units it was answered to have put away, if it was.
    answered: Option<u64>,
}

/// Lets agents write, has units put away, and kills the hub in the middle of it.
async fn killed(hub: HubProcess, strategy: CompactStrategy, moment: Moment) -> Known {
    let ada = join(&hub, "ada").await;
    let all = (0..UNITS).map(|number| {
        ada.record(said(MemoryType::Finding, format!("Case {number} of client {} is {WORD}.", number % 7)))
    });
    let all = futures::future::try_join_all(all).await.expect("they are recorded");
    let about = all.iter().map(|recorded| recorded.memory_unit_id).collect();
    let (told, mut heard) = unbounded_channel();
    let mut load = JoinSet::new();
    for writer in 0..WRITERS {
        let client = join(&hub, &format!("writer-{writer}")).await;
        (0..DEPTH).for_each(|_| drop(load.spawn(write(Arc::clone(&client), told.clone()))));
    }
    let mut recorded = Vec::new();
    let next = async |heard: &mut UnboundedReceiver<u64>| {
        timeout(PATIENCE, heard.recv()).await.expect("writing goes on").expect("writers are there")
    };
    for _ in 0..20 {
        recorded.push(next(&mut heard).await);
    }
    let mut asking = {
        let request = Compact::by(strategy).of_type(MemoryType::Finding).confirmed();
        tokio::spawn(async move { ada.compact(request).await.map(|done| done.units_affected) })
    };
    let mut answered = None;
    let mut answer = |done: Result<Result<u64, _>, _>| answered = Some(done.expect("it ends").expect("done"));
    match moment {
        Moment::Answered => answer(timeout(PATIENCE, &mut asking).await.expect("an answer")),
        Moment::After(count) => {
            for _ in 0..count {
                recorded.push(next(&mut heard).await);
            }
        }
    }
    hub.kill();
    if matches!(moment, Moment::After(_)) && asking.is_finished() {
        answer(asking.await);
    } else {
        asking.abort();
    }
    load.shutdown().await;
    drop(told);
    while let Some(epoch) = heard.recv().await {
        recorded.push(epoch);
    }
    Known { about, recorded, answered }
}

/// What a started hub shows of units that were purged, at any door or in any file that it keeps beside the log.
async fn nobody_tells_of(about: &[UnitId], hub: &HubProcess, data: &Path) {
    for unit in units(hub).await {
        assert!(!unit["content"].as_str().expect("a text").contains(WORD), "{unit}");
    }
    for unit in [about[0], about[about.len() / 2], about[about.len() - 1]] {
        assert!(get(hub, &format!("units/{unit}")).await.is_none(), "{unit} is told of");
    }
    let scope = json!({ "role": "clerk", "max_units": 1000, "include_archived": true, "types": ["finding"] });
    let payload = json!({ "scope": scope, "context_hint": WORD });
    let eve = join(hub, "eve").await;
    let found = eve.send(Operation::Attune, payload).await.expect("an answer");
    assert_eq!(found["context_budget"]["units_available"], 0, "{found}");
    // One that was made before the purge goes by itself.
    let file = data.join("default/state.snapshot");
    let tells = || {
        std::fs::read(&file)
            .is_ok_and(|bytes| bytes.windows(WORD.len()).any(|window| window == WORD.as_bytes()))
    };
    until("a snapshot without what was purged", || !tells());
}

/// A log after a kill, and a hub that starts on it.
async fn check(data: &Path, strategy: CompactStrategy, known: &Known) -> bool {
    verified(data);
    let lines = exported(data);
    let put_away: Vec<u64> = epochs(&lines, &["ARCHIVE", "PURGE"]).collect();
    let whole = put_away.len() as u64 == UNITS;
    assert!(whole || put_away.is_empty(), "{} units are put away", put_away.len());
    assert!(known.answered.is_none_or(|count| count == UNITS && whole), "answered, and gone");
    let of_field = lines.iter().filter(|line| line["event_type"] == "RECORD" && line["agent_id"] == "system");
    let made: Vec<u64> = of_field.map(|line| line["epoch"].as_u64().expect("an epoch")).collect();
    assert_eq!(!made.is_empty(), whole && strategy == CompactStrategy::Summarize);
    let at: BTreeSet<_> = put_away.iter().chain(&made).collect();
    assert!(at.len() <= 1, "one operation, one epoch: {at:?}");
    let kept: BTreeSet<u64> = epochs(&lines, &["RECORD"]).collect();
    let gone: Vec<_> = known.recorded.iter().filter(|epoch| !kept.contains(epoch)).collect();
    assert!(gone.is_empty(), "acknowledged, and gone: {gone:?}");

    let hub = HubProcess::start(data, &["--snapshot-entries", "1"]);
    let status = get(&hub, "field/status").await.expect("a status");
    let purged = whole && strategy == CompactStrategy::Purge;
    let (shown, archived) = (units(&hub).await, if whole && !purged { UNITS } else { 0 });
    let all = epochs(&lines, &["RECORD"]).count() as u64;
    assert_eq!(shown.len() as u64, if purged { all - UNITS } else { all });
    assert_eq!(status["units_archived"], archived);
    assert_eq!(shown.iter().filter(|unit| unit["archived"] == true).count() as u64, archived);
    if purged {
        nobody_tells_of(&known.about, &hub, data).await;
    }
    hub.stop();
    assert!(!verified(data)["snapshot"].is_null(), "a stop in good order leaves one");
    whole
}

async fn rounds(strategy: CompactStrategy) {
    let (mut random, rounds) = chance();
    for round in 0..rounds {
        // One is killed with the answer in hand, the others somewhere on the way.
        let moment = if round == 0 { Moment::Answered } else { Moment::After(random.random_range(0..120)) };
        let data = tempfile::tempdir().expect("a directory");
        // Hardly an entry comes while no snapshot is being written.
        let hub = HubProcess::start(data.path(), &["--snapshot-entries", "1"]);
        let known = killed(hub, strategy, moment).await;
        let whole = check(data.path(), strategy, &known).await;
        println!("{strategy:?} killed at {moment:?}, answered {:?}: {whole}", known.answered);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_hub_has_archived_all_or_nothing() {
    rounds(CompactStrategy::Archive).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_hub_has_summarized_all_or_nothing() {
    rounds(CompactStrategy::Summarize).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_hub_has_purged_all_or_nothing_and_tells_nothing_of_it() {
    rounds(CompactStrategy::Purge).await;
}

/// An agent that looked and then decided: where, and what came of it.
struct Decided {
    agent: String,
    looked: u64,
    epoch: u64,
    unit: UnitId,
    shown: Vec<String>,
}

/// Looks and decides by turns, and tells of each decision that was acknowledged.
async fn decide(client: Arc<Client>, told: UnboundedSender<Decided>) {
    for number in 0.. {
        let Ok(looked) = client.attune(Attune::for_role("clerk", 3)).await else { return };
        let shown = looked.record.iter().map(|one| one.memory_unit.id.clone()).collect();
        let unit = said(MemoryType::Decision, format!("{} decides {number}", client.agent_id()));
        let Ok(recorded) = client.record(unit).await else { return };
        let agent = client.agent_id().to_owned();
        let (epoch, unit) = (recorded.epoch, recorded.memory_unit_id);
        if told.send(Decided { agent, looked: looked.epoch, epoch, unit, shown }).is_err() {
            return;
        }
    }
}

/// What an agent was shown before a decision of its own is as durable as the decision, though no answer waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_shown_before_a_durable_decision_is_told_after_a_kill() {
    let (mut random, rounds) = chance();
    for _ in 0..rounds {
        let data = tempfile::tempdir().expect("a directory");
        let hub = HubProcess::start(data.path(), &["--snapshot-entries", "1"]);
        let ada = join(&hub, "ada").await;
        for number in 0..5 {
            ada.record(said(MemoryType::Finding, format!("Finding {number}"))).await.expect("recorded");
        }
        let (told, mut heard) = unbounded_channel();
        let mut deciding = JoinSet::new();
        for agent in 0..WRITERS {
            deciding.spawn(decide(join(&hub, &format!("decider-{agent}")).await, told.clone()));
        }
        let mut decided = Vec::new();
        for _ in 0..random.random_range(1..200) {
            let one = timeout(PATIENCE, heard.recv()).await.expect("they go on").expect("they are there");
            decided.push(one);
        }
        hub.kill();
        deciding.shutdown().await;
        drop(told);
        while let Some(one) = heard.recv().await {
            decided.push(one);
        }
        verified(data.path());
        let lines = exported(data.path());
        let notes: Vec<&Value> = lines.iter().filter(|line| line["event_type"] == "ATTUNE").collect();
        let note_of = |one: &Decided| {
            let of = |note: &&&Value| note["agent_id"] == one.agent && note["read_epoch"] == one.looked;
            let note = notes.iter().find(of).unwrap_or_else(|| panic!("no note of {}", one.looked));
            assert_eq!(note["shown"], json!(one.shown));
            note["epoch"].as_u64().expect("an epoch")
        };
        let hub = HubProcess::start(data.path(), &[]);
        let eve = join(&hub, "eve").await;
        for one in &decided {
            let noted = note_of(one);
            assert!(!one.shown.is_empty() && noted < one.epoch, "it stands before the decision");
            let replayed = eve.replay(Replay::of(ReplayTarget::Decision, one.unit)).await.expect("an answer");
            let replayed = json!(replayed.timeline);
            let told = replayed.as_array().expect("events").iter().any(|event| {
                event["event_type"] == "ATTUNE" && event["epoch"] == noted && event["agent_id"] == *one.agent
            });
            assert!(told, "{} was shown at {noted}: {replayed}", one.agent);
        }
        println!("{} decisions, {} notes", decided.len(), notes.len());
        hub.stop();
    }
}
