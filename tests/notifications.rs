//! The client's streams of notifications, through real sockets that are cut, slow takers and hubs that die.

mod process;
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use akashik_hub::client::{
    Attune, Client, ClientError, ClientOptions, Connection, Notifications, Record, Subscribe,
};
use akashik_hub::protocol::{Cursor, ErrorCode, EventName, Notification};
use process::HubProcess;
use support::{Running, eventually, soon, start, start_with};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Stands between a client and a hub, and cuts.
struct Cutter {
    url: String,
    cut: watch::Sender<u64>,
    open: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
}

impl Cutter {
    async fn before(hub: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let cut = watch::Sender::new(0);
        let (open, connections) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (lines, is_open, count) = (cut.clone(), Arc::clone(&open), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                if !is_open.load(Ordering::Relaxed) {
                    continue;
                }
                count.fetch_add(1, Ordering::Relaxed);
                let mut cut = lines.subscribe();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(hub).await.unwrap();
                    let ended = tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => false,
                        _ = cut.changed() => true,
                    };
                    if ended {
                        // What is on its way is lost, as when a machine goes away.
                        near.set_zero_linger().unwrap();
                        far.set_zero_linger().unwrap();
                    }
                });
            }
        });
        Self { url, cut, open, connections }
    }

    fn cut(&self) {
        self.cut.send_modify(|times| *times += 1);
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn join(url: &str, agent: &str) -> Arc<Client> {
    let client = Client::connect(url, ClientOptions::new(agent)).await.unwrap();
    client.register("researcher").await.unwrap();
    Arc::new(client)
}

async fn join_hub(hub: &Running, agent: &str) -> Arc<Client> {
    join(&format!("http://{}", hub.addr), agent).await
}

fn recorded() -> Subscribe {
    Subscribe::to([EventName::MemoryRecorded])
}

fn finding(text: impl Into<String>) -> Record {
    Record::finding(text).because("to be heard of").sure(0.5, "made up")
}

/// Records from several tasks at full speed until told to stop; the units' epochs in order.
struct Publisher {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<Vec<u64>>>,
}

impl Publisher {
    fn start(client: &Arc<Client>) -> Self {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let tasks = (0..16)
            .map(|task| {
                let (client, stop, count) = (Arc::clone(client), Arc::clone(&stop), Arc::clone(&count));
                tokio::spawn(async move {
                    let mut epochs = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let text = format!("finding {task}/{}", epochs.len());
                        epochs.push(client.record(finding(text)).await.unwrap().epoch);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    epochs
                })
            })
            .collect();
        Self { stop, count, tasks }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    async fn stop(self) -> Vec<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut epochs = Vec::new();
        for task in self.tasks {
            epochs.extend(soon("the last records", task).await.unwrap());
        }
        epochs.sort_unstable();
        epochs
    }
}

async fn publish(client: &Client, count: usize) -> Vec<u64> {
    let records = (0..count).map(|at| client.record(finding(format!("finding {at}"))));
    let done = soon("all records", futures::future::try_join_all(records)).await.unwrap();
    let mut epochs: Vec<_> = done.iter().map(|recorded| recorded.epoch).collect();
    epochs.sort_unstable();
    epochs
}

async fn next(stream: &mut Notifications) -> Notification {
    soon("a notification", stream.next()).await.expect("the stream goes on").expect("a notification")
}

/// Takes until the last of these epochs has come; the epochs taken.
async fn take_through(stream: &mut Notifications, last: u64) -> Vec<u64> {
    let mut taken = Vec::new();
    while taken.last() != Some(&last) {
        taken.push(next(stream).await.epoch);
    }
    taken
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_repeated_over_many_cut_connections() {
    const CUTS: usize = 25;
    let hub = start().await;
    let cutter = Cutter::before(hub.addr).await;
    let writer = join_hub(&hub, "writer").await;
    let reader = join(&cutter.url, "reader").await;
    let mut stream = reader.subscribe(recorded()).await.unwrap();
    let mut again = reader.subscribe(recorded().debounce_ms(1).named("debounced")).await.unwrap();
    let taking = tokio::spawn(async move {
        let (mut taken, mut last) = (Vec::new(), 0);
        while let Some(notification) = stream.next().await {
            let notification = notification.unwrap();
            assert!(notification.epoch > last, "in order, nothing twice");
            last = notification.epoch;
            taken.push(last);
        }
        (taken, stream.cursor())
    });
    let publisher = Publisher::start(&writer);
    for cut in 1..=CUTS {
        // Each connection lives long enough to be told something, and is cut in the middle of it.
        let before = publisher.count();
        eventually("more records", || publisher.count() > before + 20).await;
        cutter.cut();
        eventually("the client's return", || cutter.connections() > cut).await;
    }
    let expected = publisher.stop().await;
    let last = *expected.last().unwrap();
    // A debounced subscription may repeat; it never loses.
    let mut debounced = std::collections::BTreeSet::new();
    while !debounced.contains(&last) {
        debounced.insert(next(&mut again).await.epoch);
    }
    assert_eq!(debounced.into_iter().collect::<Vec<_>>(), expected);
    reader.unsubscribe(&reader.subscriptions().await.unwrap()[1].id).await.unwrap();
    let (taken, cursor) = soon("the end of the stream", taking).await.unwrap();
    assert_eq!(taken, expected);
    assert_eq!(cursor, Cursor::new(last, 0));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_over_a_hub_that_dies() {
    let data = TempDir::new().unwrap();
    let mut hub = HubProcess::start(data.path(), &[]);
    let address = hub.address().to_owned();
    let writer = join(&hub.url, "writer").await;
    let reader = join(&hub.url, "reader").await;
    let mut stream = reader.subscribe(recorded()).await.unwrap();
    let publisher = Publisher::start(&writer);
    for end in [HubProcess::kill as fn(HubProcess), HubProcess::stop, HubProcess::kill] {
        let before = publisher.count();
        eventually("more records", || publisher.count() > before + 50).await;
        next(&mut stream).await;
        let (address, data) = (address.clone(), data.path().to_owned());
        let restarted = tokio::task::spawn_blocking(move || {
            end(hub);
            HubProcess::start_on(&data, &address, &[])
        });
        hub = restarted.await.unwrap();
    }
    let expected = publisher.stop().await;
    let taken = take_through(&mut stream, *expected.last().unwrap()).await;
    let of_the_end = &expected[expected.len() - taken.len()..];
    assert_eq!((taken.len() + 3, &taken[..]), (expected.len(), of_the_end), "three were taken before");
    hub.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_taker_loses_nothing_and_calls_go_on() {
    let hub = start().await;
    let writer = join_hub(&hub, "writer").await;
    let reader = join_hub(&hub, "reader").await;
    let mut stream = reader.subscribe(recorded().include_unit()).await.unwrap();
    let mut expected = publish(&writer, 6_000).await;
    for _ in 0..50 {
        let brought = soon("a call beside a full stream", reader.attune(Attune::for_role("r", 1))).await;
        assert_eq!(brought.unwrap().record.len(), 1);
    }
    expected.extend(publish(&writer, 1_000).await);
    let mut taken = Vec::new();
    while taken.len() < expected.len() {
        let notification = next(&mut stream).await;
        assert_eq!(notification.memory_unit.and_then(|unit| unit.epoch), Some(notification.epoch));
        taken.push(notification.epoch);
        if taken.len() % 500 == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert_eq!(taken, expected);
    assert_eq!(next_after(&mut stream, &writer).await, 1, "and it is live again");
    hub.stop().await;
}

/// Records one more; how many notifications come until it is told of.
async fn next_after(stream: &mut Notifications, writer: &Client) -> usize {
    let epoch = writer.record(finding("one more")).await.unwrap().epoch;
    take_through(stream, epoch).await.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_stream_holds_up_no_other_of_the_same_client() {
    let hub = start().await;
    let writer = join_hub(&hub, "writer").await;
    let reader = join_hub(&hub, "reader").await;
    let mut slow = reader.subscribe(recorded().named("slow")).await.unwrap();
    let mut quick = reader.subscribe(recorded().named("quick")).await.unwrap();
    let mut others = reader.subscribe(Subscribe::to([EventName::AgentJoined])).await.unwrap();
    let expected = publish(&writer, 5_000).await;
    let last = *expected.last().unwrap();
    assert_eq!(take_through(&mut quick, last).await, expected);
    assert_eq!(next_after(&mut quick, &writer).await, 1);
    join_hub(&hub, "carl").await;
    assert_eq!((next(&mut others).await.event, others.cursor().epoch > last), (EventName::AgentJoined, true));
    let all = take_through(&mut slow, last).await;
    assert_eq!(all, expected);
    assert_eq!(next_after(&mut slow, &writer).await, 2);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_by_unsubscribing_and_can_be_taken_up() {
    let hub = start().await;
    let writer = join_hub(&hub, "writer").await;
    let reader = join_hub(&hub, "reader").await;
    let mut first = reader.subscribe(recorded().named("mine")).await.unwrap();
    assert_eq!(&*first.subscription().id, "mine");
    let epochs = publish(&writer, 3).await;
    next(&mut first).await;
    let cursor = first.cursor();
    drop(first);

    // Dropped, it stays in the Field.
    assert_eq!(reader.subscriptions().await.unwrap().len(), 1);
    let mut second = reader.subscribe(Subscribe::again("mine").resume_after(cursor)).await.unwrap();
    assert_eq!(second.subscription().events, [EventName::MemoryRecorded]);
    assert_eq!(take_through(&mut second, epochs[2]).await, epochs[1..]);

    // A second stream of the same id ends the first.
    let mut third = reader.subscribe(recorded().named("mine")).await.unwrap();
    assert!(soon("the end", second.next()).await.is_none());
    drop(second);
    assert_eq!(next_after(&mut third, &writer).await, 1);
    reader.unsubscribe("mine").await.unwrap();
    assert!(soon("the end", third.next()).await.is_none());
    assert!(reader.subscriptions().await.unwrap().is_empty());
    let gone = reader.unsubscribe("mine").await;
    assert!(matches!(gone, Err(ClientError::Refused(body)) if body.code == ErrorCode::SubscriptionNotFound));

    let mut fourth = reader.subscribe(recorded()).await.unwrap();
    let ahead = Cursor::new(1 << 40, 0);
    let refused = reader.subscribe(recorded().resume_after(ahead)).await;
    assert!(matches!(refused, Err(ClientError::Refused(body)) if body.code == ErrorCode::InvalidMessage));
    drop(reader);
    assert!(soon("the end with the client", fourth.next()).await.is_none());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_away_too_long_returns_as_who_it_was() {
    let hub = start_with(|config| config.grace_ms = 50).await;
    let cutter = Cutter::before(hub.addr).await;
    let writer = join_hub(&hub, "writer").await;
    let reader = join(&cutter.url, "reader").await;
    let mut stream = reader.subscribe(recorded()).await.unwrap();
    let connection = reader.connection();
    cutter.open.store(false, Ordering::Relaxed);
    cutter.cut();
    soon("the agent to fail", async { while !hub.get("/v1/agents").await.text().contains("failed") {} })
        .await;
    assert!(matches!(&*connection.borrow(), Connection::Lost(_)));
    let missed = publish(&writer, 3).await;
    cutter.open.store(true, Ordering::Relaxed);
    assert_eq!(take_through(&mut stream, missed[2]).await, missed);
    assert_eq!(*connection.borrow(), Connection::Open);
    assert!(!hub.get("/v1/agents").await.text().contains("failed"));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_ended_elsewhere_says_so() {
    let hub = start().await;
    let cutter = Cutter::before(hub.addr).await;
    let reader = join(&cutter.url, "reader").await;
    let elsewhere =
        Client::connect(&format!("http://{}", hub.addr), ClientOptions::new("reader")).await.unwrap();
    let mut kept = reader.subscribe(recorded().named("kept")).await.unwrap();
    let mut ended = reader.subscribe(recorded().named("ended")).await.unwrap();
    elsewhere.unsubscribe("ended").await.unwrap();
    cutter.cut();
    match soon("the reason", ended.next()).await {
        Some(Err(ClientError::Refused(body))) => assert_eq!(body.code, ErrorCode::InvalidMessage),
        other => panic!("{other:?}"),
    }
    assert!(soon("the end", ended.next()).await.is_none());
    let writer = join_hub(&hub, "writer").await;
    assert_eq!(next_after(&mut kept, &writer).await, 1);

    // Who leaves on purpose is not brought back.
    reader.deregister().await.unwrap();
    assert!(soon("the end", kept.next()).await.is_none());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn authors_hear_of_resolved_conflicts_directly() {
    let hub = start().await;
    let ann = join_hub(&hub, "ann").await;
    let bob = join_hub(&hub, "bob").await;
    let mut direct = ann.direct();
    let unit = ann.record(finding("The sky is green.")).await.unwrap().memory_unit_id;
    let correction = finding("The sky is blue.").contradicts(unit).supersedes(unit);
    let conflict = bob.record(correction).await.unwrap().conflicts_detected[0];
    let told = soon("the resolution", direct.next()).await.unwrap().unwrap();
    assert_eq!((told.event, told.conflict_id), (EventName::ConflictResolved, Some(conflict)));
    assert_eq!((told.subscription_id.as_str(), direct.missed()), ("direct", 0));
    hub.stop().await;
}
