//! The path actor → durable log → reply, in process: acknowledged RECORDs a second and CPU each, with the
//! messages read beforehand (reading them is the doors' work). On Linux the CPU is also told by threads: the log
//! thread and the rest are the path; the indexer works beside it.
//!
//! `cargo bench --bench record -- [callers] [operations] [directory]`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use akashik_hub::config::Config;
use akashik_hub::hub::{Hub, Message};
use akashik_hub::protocol::Envelope;
use cpu_time::ProcessTime;
use serde_json::json;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let callers: Option<usize> = arguments.next().and_then(|text| text.parse().ok());
    let operations = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let directory = arguments.next().map(PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let counts = callers.map_or_else(|| vec![1, 64, 1_024], |one| vec![one]);
    for callers in counts {
        let each = if callers == 1 { operations / 20 } else { operations } / callers;
        let home = match &directory {
            Some(parent) => tempfile::tempdir_in(parent),
            None => tempfile::tempdir(),
        };
        let home = home.expect("a directory");
        let config = Config { data: home.path().to_owned(), ..Config::default() };
        runtime.block_on(run(config, callers, each));
    }
}

async fn run(config: Config, callers: usize, each: usize) {
    let hub = Hub::start(config).await.expect("a hub");
    let field = hub.field(None).expect("a Field");
    let mut batches = Vec::new();
    for caller in 0..callers {
        let agent = format!("agent-{caller}");
        let register = read(field, &agent, 0, "REGISTER", &json!({ "id": agent, "role": "bench" }));
        field.submit(register, None).await.await.outcome.expect("registered");
        batches.push(
            (1..=each).map(|at| read(field, &agent, at, "RECORD", &payload(caller, at))).collect::<Vec<_>>(),
        );
    }
    let (began, cpu, threads) = (Instant::now(), ProcessTime::now(), cpu_by_thread());
    let mut tasks = tokio::task::JoinSet::new();
    for messages in batches {
        let hub = Arc::clone(&hub);
        tasks.spawn(async move {
            let field = hub.field(None).expect("a Field");
            for message in messages {
                field.submit(message, None).await.await.outcome.expect("recorded");
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no caller fails");
    }
    let (wall, cpu) = (began.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
    let done = (callers * each) as f64;
    println!(
        "{callers:>5} callers: {:>8.0} RECORDs/s, {:>5.1} µs of CPU each, {:>6.3} ms a round",
        done / wall,
        cpu / done * 1e6,
        wall / each as f64 * 1e3
    );
    for (name, ticks) in cpu_by_thread() {
        let spent = ticks - threads.get(&name).copied().unwrap_or(0);
        println!("               {:>5.1} µs of it {name}", spent as f64 * 1e4 / done);
    }
    hub.stop().await;
}

/// CPU by kind of thread, in ticks of 10 ms; empty where the system does not tell.
fn cpu_by_thread() -> BTreeMap<String, u64> {
    let mut spent = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let (name, stat) = (read("comm"), read("stat"));
        let kind = match name.trim() {
            name if name.starts_with("akashik-log") => "the log thread",
            name if name.starts_with("akashik-index") => "the indexer",
            _ => "actor and callers",
        };
        // After the name, which may hold anything: user and system time are the 12th and 13th words.
        let words: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = words.iter().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum::<u64>();
        *spent.entry(kind.to_owned()).or_default() += ticks;
    }
    spent
}

fn payload(caller: usize, at: usize) -> serde_json::Value {
    json!({
        "type": "finding",
        "content": format!("Caller {caller} found fact {at}. {}", "The market grows at twenty percent. ".repeat(10)),
        "intent": { "purpose": "Measure the hub" },
        "confidence": { "score": 0.9, "reason": "first hand" },
    })
}

fn read(
    field: &akashik_hub::hub::Field,
    agent: &str,
    at: usize,
    operation: &str,
    payload: &serde_json::Value,
) -> Message {
    let text = json!({
        "protocol": "akashik", "version": "0.1.0", "id": format!("m-{at}"), "operation": operation,
        "agent_id": agent, "session_id": null, "epoch": 0, "payload": payload,
    })
    .to_string();
    field.read(&Envelope::parse(&text).expect("a valid envelope"))
}
