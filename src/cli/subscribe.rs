//! `akashik subscribe`: SUBSCRIBE, and what it brings, line by line.
//!
//! Listing and unsubscribing ask over HTTP, as the other commands do. Listening holds a WebSocket, so while it lasts
//! the agent is connected; the Field counts it as failed some time after that, until it registers again.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::ask::{Hub, number, object, text_or_stdin};
use super::exit::Failure;
use super::screen::{self, cut, plain, quoted};
use crate::client::{Client, ClientError, Connection, Notifications, Register, Subscribe as Request};
use crate::protocol::{Cursor, ErrorCode, EventName, Notification, Operation};

/// How long the end may take once it was asked for; a reader that takes nothing can hold it up.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a line shows of a summary on however narrow a terminal, characters.
const SUMMARY_MIN_CHARS: usize = 30;

/// Less of a conflict's side than this tells nothing, characters.
const SIDE_MIN_CHARS: usize = 8;

/// SUBSCRIBE.
#[derive(Debug, Args)]
#[command(
    after_help = "While it listens the agent is connected. Some time after it ends (the hub's grace time, 30 s \
    by default) the agent counts as failed: give --role here, or register again, before it does anything else."
)]
pub(super) struct Subscribe {
    #[command(flatten)]
    hub: Hub,
    /// The protocol session that this belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The whole payload as JSON, in place of its flags ('-' reads stdin)
    #[arg(long, value_name = "JSON", conflicts_with = "Flags")]
    payload: Option<String>,
    /// Register in this role if the agent is not active; without a role, it must be active
    #[arg(long)]
    role: Option<String>,
    /// With --role: something the agent cares for; repeat it for more
    #[arg(long, requires = "role")]
    interest: Vec<String>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// What to hear of, such as memory.recorded,conflict.detected; a known subscription need not be told again
    #[arg(long, value_name = "EVENT", value_delimiter = ',', value_parser = event,
        required_unless_present_any = ["id", "list", "unsubscribe", "payload"])]
    events: Vec<EventName>,
    /// Nothing about units less relevant to the agent, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = number)]
    min_relevance: Option<f64>,
    /// At least so long between two lines about the same unit, conflict, task or agent
    #[arg(long, value_name = "MS")]
    debounce_ms: Option<u64>,
    /// With the units themselves, in JSON
    #[arg(long)]
    include_unit: bool,
    /// The subscription's id: a new one, or one of the agent's
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// First everything after this cursor, then what comes
    #[arg(long, value_name = "CURSOR", value_parser = cursor)]
    resume_after: Option<Cursor>,
    /// List the agent's subscriptions instead
    #[arg(long, conflicts_with_all = ["events", "id", "unsubscribe", "resume_after"])]
    list: bool,
    /// End this subscription instead
    #[arg(long, value_name = "ID", conflicts_with_all = ["events", "id", "resume_after"])]
    unsubscribe: Option<String>,
}

impl Subscribe {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let payload = match &self.payload {
            None => self.flags.payload(),
            Some(text) => serde_json::from_str(&text_or_stdin(text)?)
                .map_err(|error| Failure::usage(format!("--payload is no valid JSON: {error}")))?,
        };
        if payload["action"] != "subscribe" {
            return screen::show_response(self.hub.json, &self.ask(&payload)?, listed);
        }
        let request = serde_json::from_value(payload["subscription"].clone())
            .map_err(|error| Failure::usage(format!("the payload's subscription: {error}")))?;
        // The main thread writes, and may have to wait for its reader; another one keeps the connection alive.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let is_named = !payload["subscription"]["id"].is_null();
        runtime.block_on(self.listen(request, is_named))
    }

    /// Asks over HTTP; an agent that is not active is registered first, where the command line says as what.
    fn ask(&self, payload: &Value) -> Result<Box<RawValue>, Failure> {
        let session = self.session.as_deref();
        let ask = || self.hub.operate(Operation::Subscribe, session, payload);
        match (ask(), &self.role) {
            (Err(failure), Some(role)) if failure.is_refused_with(ErrorCode::AgentNotRegistered) => {
                let register = json!({ "id": self.hub.agent()?, "role": role, "interests": self.interest });
                self.hub.operate(Operation::Register, session, &register)?;
                ask()
            }
            (outcome, _) => outcome,
        }
    }

    async fn listen(&self, request: Request, is_named: bool) -> Result<(), Failure> {
        let mut stop = stopping()?;
        let mut options = self.hub.options()?;
        options.session_id.clone_from(&self.session);
        let client = tokio::select! {
            client = Client::connect(self.hub.url(), options) => client?,
            _ = stop.changed() => return Ok(()),
        };
        let stream = tokio::select! {
            stream = self.subscribe(&client, request) => stream?,
            _ = stop.changed() => return Ok(()),
        };
        let told = tokio::spawn(tell(client.connection()));
        let outcome = self.show(stream, is_named, stop).await;
        told.abort();
        client.close().await;
        outcome
    }

    /// Subscribes; an agent that is not active is registered first, where the command line says as what.
    async fn subscribe(&self, client: &Client, request: Request) -> Result<Notifications, Failure> {
        let refused = match (client.subscribe(request.clone()).await, &self.role) {
            (Err(ClientError::Refused(body)), Some(role)) if body.code == ErrorCode::AgentNotRegistered => {
                role
            }
            (outcome, _) => return Ok(outcome?),
        };
        let register = self.interest.iter().fold(Register::as_role(refused), |r, i| r.interested_in(i));
        let registered = client.register(register).await?;
        if let Some(reason) = registered.rejection_reason {
            return Err(Failure::failed(format!("rejected: {reason}")));
        }
        Ok(client.subscribe(request).await?)
    }

    /// Prints what comes until it ends, or is told to.
    async fn show(
        &self,
        mut stream: Notifications,
        is_named: bool,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let id = stream.subscription().id.to_string();
        let listening = format!("listening as subscription {}, after {}", plain(&json!(id)), stream.cursor());
        say(&listening);
        if !is_named && io::stderr().is_terminal() {
            say(&self.lasting(&id, stream.cursor()));
        }
        let for_people = !self.hub.json && io::stdout().is_terminal();
        loop {
            let notification = tokio::select! {
                biased;
                _ = stop.changed() => break,
                notification = stream.next() => notification,
            };
            match notification {
                Some(Ok(notification)) if for_people => screen::print(&line(&notification, screen::width()))?,
                Some(Ok(notification)) => {
                    screen::print(&serde_json::to_string(&notification).map_err(Failure::failed)?)?;
                }
                Some(Err(error)) => return Err(error.into()),
                None => return Err(Failure::failed("the subscription has ended")),
            }
        }
        say(&format!("to go on: {}", self.going_on(&id, stream.cursor())));
        Ok(())
    }

    /// What a subscription that nobody gave a name leaves behind, for a person who may not know that it lasts.
    fn lasting(&self, id: &str, cursor: Cursor) -> String {
        format!(
            "the subscription {} stays in the Field until it is ended\n  to go on after a break: {}\n  to end it: {}",
            plain(&json!(id)),
            self.going_on(id, cursor),
            self.command(&format!("--unsubscribe {}", quoted(id))),
        )
    }

    /// The whole command that takes a subscription up after this cursor.
    fn going_on(&self, id: &str, cursor: Cursor) -> String {
        let json = if self.hub.json { "--json " } else { "" };
        self.command(&format!("{json}--id {} --resume-after {cursor}", quoted(id)))
    }

    /// A whole command for the same agent, to be pasted. The role goes with it: by then the agent may have failed.
    fn command(&self, rest: &str) -> String {
        let mut line = format!("akashik subscribe {}", self.hub.flags());
        let session = self.session.iter().map(|session| ("--session", session));
        let role = self.role.iter().map(|role| ("--role", role));
        let interests = self.interest.iter().map(|interest| ("--interest", interest));
        for (flag, value) in session.chain(role).chain(interests) {
            line.push_str(&format!(" {flag} {}", quoted(value)));
        }
        format!("{line} {rest}")
    }
}

impl Flags {
    fn payload(&self) -> Value {
        if self.list {
            return json!({ "action": "list" });
        }
        if let Some(id) = &self.unsubscribe {
            return json!({ "action": "unsubscribe", "subscription": { "id": id } });
        }
        let subscription = object([
            ("id", json!(self.id)),
            ("events", json!(self.events)),
            ("min_relevance", json!(self.min_relevance)),
            ("debounce_ms", json!(self.debounce_ms)),
            ("include_unit", json!(self.include_unit)),
            ("resume_after", json!(self.resume_after)),
        ]);
        json!({ "action": "subscribe", "subscription": subscription })
    }
}

fn event(text: &str) -> Result<EventName, String> {
    let name = text.trim();
    EventName::from_name(name).ok_or_else(|| format!("{name:?} is none of {}", EventName::names()))
}

fn cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|_| "must be a cursor, such as 42.0; 0.0 is the beginning".to_owned())
}

/// Becomes true when the process is told to end. Should the end be held up, it is cut short.
fn stopping() -> Result<watch::Receiver<bool>, Failure> {
    let (mut terminate, mut interrupt): (Signal, Signal) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (told, stop) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        told.send_replace(true);
        tokio::select! {
            () = tokio::time::sleep(FAREWELL) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(0);
    });
    Ok(stop)
}

/// Says on stderr when the hub goes and comes.
async fn tell(mut connection: watch::Receiver<Connection>) {
    while connection.changed().await.is_ok() {
        let news = match &*connection.borrow_and_update() {
            Connection::Open => "connected again; what was missed comes now".to_owned(),
            Connection::Lost(why) => {
                format!("the connection was lost ({}); reconnecting", plain(&json!(why)))
            }
        };
        say(&news);
    }
}

/// Says something beside the output. With stderr closed there is nobody to tell.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "akashik: {text}");
}

/// A notification on one line of at most so many characters: where, what, how relevant, whether something is to be
/// done, who did it, and what it says. However narrow the terminal is, the beginning of what it says is there.
fn line(notification: &Notification, width: usize) -> String {
    let Notification { cursor, event, relevance_score, requires_action, summary, agent_id, .. } =
        notification;
    let mark = if *requires_action { '!' } else { ' ' };
    let (name, place) = (event.name(), cursor.to_string());
    let mut line = format!("{place:>8}  {name:<18}  {relevance_score:.2} {mark} ");
    if !names(summary, agent_id) {
        line.push_str(&format!("{}: ", plain(&json!(agent_id))));
    }
    let room = width.saturating_sub(line.chars().count()).max(SUMMARY_MIN_CHARS);
    let said = match event {
        EventName::ConflictDetected => both_sides(summary, room),
        _ => None,
    };
    line.push_str(&said.unwrap_or_else(|| cut(summary, room)));
    line
}

/// Whether a summary says itself whose doing it is: "Finding by ann: …", "ann joined as critic.".
fn names(summary: &str, agent: &str) -> bool {
    let begins = summary.strip_prefix(agent).is_some_and(|rest| rest.starts_with(' '));
    // A colon before it would put it among somebody's words.
    begins || summary.split_once(&format!(" by {agent}: ")).is_some_and(|(kind, _)| !kind.contains(':'))
}

/// What the Field says of two units that contradict each other, each with its fair part of the room; `None` where it
/// says something else, such as the author's own words.
fn both_sides(summary: &str, room: usize) -> Option<String> {
    let (newer, older) = summary.split_once("\") contradicts ")?;
    let ((newer, one), (older, two)) = (newer.split_once(" (\"")?, older.split_once(" (\"")?);
    let (conflict, newer) = newer.split_once(": ")?;
    // "finding mem-3": the id says enough.
    let id = |unit: &str| plain(&json!(unit.rsplit(' ').next()));
    let (head, middle) = (format!("{}: {} \"", plain(&json!(conflict)), id(newer)), id(older));
    let frame = format!("{head}\" against {middle} \"\"").chars().count();
    let two = two.strip_suffix("\")").unwrap_or(two);
    let (left, sizes) = (room.saturating_sub(frame), [one.chars().count(), two.chars().count()]);
    if left < 2 * SIDE_MIN_CHARS && sizes[0] + sizes[1] > left {
        return Some(cut(&format!("{}: {} against {middle}", conflict, id(newer)), room));
    }
    // What a short side leaves over is the other's.
    let part = |mine: usize, other: usize| mine.min(left.saturating_sub(other.min(left / 2)));
    let (one, two) = (cut(one, part(sizes[0], sizes[1])), cut(two, part(sizes[1], sizes[0])));
    Some(format!("{head}{one}\" against {middle} \"{two}\""))
}

/// The agent's subscriptions, one a line; or that one has ended.
fn listed(response: &Value) -> String {
    let Some(subscriptions) = response["subscriptions"].as_array() else { return screen::figures(response) };
    if subscriptions.is_empty() {
        return "no subscriptions".to_owned();
    }
    let row = |one: &Value| {
        let events: Vec<_> = one["events"].as_array().into_iter().flatten().map(plain).collect();
        let (id, relevance, pause) = (plain(&one["id"]), &one["min_relevance"], &one["debounce_ms"]);
        format!("{id}  {}  relevance from {relevance}, {pause} ms apart", events.join(","))
    };
    subscriptions.iter().map(row).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::ask::DEFAULT_URL;
    use super::*;

    #[test]
    fn a_line_tells_what_matters_and_steers_no_terminal() {
        let mut notification: Notification = serde_json::from_value(json!({
            "subscription_id": "s", "event": "memory.recorded", "epoch": 42, "relevance_score": 0.834,
            "summary": "Finding by x: a\u{1b}[2Jb", "memory_unit_id": "mem-42", "conflict_id": null,
            "requires_action": false, "cursor": "42.0", "agent_id": "ann", "task_id": null
        }))
        .unwrap();
        let usual = "    42.0  memory.recorded     0.83   ";
        assert_eq!(line(&notification, 80), format!("{usual}ann: Finding by x: a [2Jb"));
        notification.requires_action = true;
        assert!(line(&notification, 80).contains(" ! "));
    }

    fn notification(event: &str, summary: &str) -> Notification {
        serde_json::from_value(json!({
            "subscription_id": "s", "event": event, "epoch": 42, "relevance_score": 1.0, "summary": summary,
            "memory_unit_id": null, "conflict_id": null, "requires_action": false, "cursor": "42.0",
            "agent_id": "ann", "task_id": null
        }))
        .unwrap()
    }

    #[test]
    fn who_did_it_is_said_once() {
        for (summary, is_named) in [
            ("Finding by ann: It grows.", true),
            ("ann joined as critic.", true),
            ("Finding by anna: It grows.", false),
            ("anna joined as critic.", false),
            ("conflict-3: it is denied by ann: no", false),
        ] {
            let shown = line(&notification("memory.recorded", summary), 200);
            assert!(shown.ends_with(summary), "{shown}");
            assert_eq!(!shown.ends_with(&format!("ann: {summary}")), is_named, "{shown}");
        }
    }

    #[test]
    fn a_line_is_as_long_as_the_terminal_is_wide() {
        let long = notification("memory.recorded", &"word ".repeat(100));
        for width in [80, 120, 200] {
            assert_eq!(line(&long, width).chars().count(), width);
        }
        assert!(line(&long, 10).contains("word word"));
    }

    #[test]
    fn a_conflict_shows_both_its_sides() {
        let (grows, short) = ("The market grows by 23 % a year, as reported.", "It shrinks.");
        let told = |one: &str, two: &str| {
            let summary =
                format!("conflict-9: finding mem-9 (\"{one}\") contradicts decision mem-3 (\"{two}\")");
            notification("conflict.detected", &summary)
        };
        let usual = "    42.0  conflict.detected   1.00   ann: conflict-9: ";
        let whole = format!("{usual}mem-9 \"{grows}\" against mem-3 \"{short}\"");
        assert_eq!(line(&told(grows, short), 200), whole);
        let cut = line(&told(grows, short), 120);
        assert!(cut.chars().count() <= 120 && cut.ends_with("…\" against mem-3 \"It shrinks.\""), "{cut}");
        assert_eq!(line(&told(grows, grows), 80), format!("{usual}mem-9 against mem-3"));
        let even = line(&told(grows, grows), 120);
        assert_eq!(even.matches("The market grows").count(), 2, "{even}");
        // The hub may have cut the second side; an author's own words are no two sides.
        let mut own = told(grows, short);
        own.summary.replace_range(own.summary.len() - 4.., "…");
        assert!(line(&own, 200).ends_with("\"It shrink…\""), "{}", line(&own, 200));
        own.summary = "conflict-9: they cannot both hold".into();
        assert_eq!(line(&own, 200), format!("{usual}they cannot both hold"));
    }

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        subscribe: Subscribe,
    }

    fn subscribe(flags: &[&str]) -> Subscribe {
        let words = ["akashik-subscribe", "--agent", "bob"].into_iter().chain(flags.iter().copied());
        <Line as clap::Parser>::try_parse_from(words).expect("a good line").subscribe
    }

    #[test]
    fn the_way_on_is_a_whole_command() {
        let cursor = "42.1".parse().unwrap();
        let plain = subscribe(&["--url", DEFAULT_URL, "--events", "agent.left"]);
        assert_eq!(
            plain.going_on("sub-2", cursor),
            "akashik subscribe --agent bob --id sub-2 --resume-after 42.1"
        );
        let flags = ["--url", "http://h:1", "--field", "lab", "--token", "secret", "--role", "the critic"];
        let full = subscribe(&[&flags[..], &["--interest", "price", "--events", "agent.left"]].concat());
        let line = full.going_on("sub-2", cursor);
        assert_eq!(
            line,
            "akashik subscribe --url http://h:1 --field lab --agent bob --role 'the critic' --interest price \
             --id sub-2 --resume-after 42.1"
        );
        let told = full.lasting("sub-2", cursor);
        assert!(
            told.starts_with("the subscription sub-2 stays in the Field") && told.contains(&line),
            "{told}"
        );
        assert!(told.ends_with(" --interest price --unsubscribe sub-2"), "{told}");
    }

    #[test]
    fn subscriptions_are_listed() {
        let one = json!({"id": "s", "events": ["memory.recorded", "agent.left"], "min_relevance": 0.5, "debounce_ms": 0});
        let shown = listed(&json!({"subscriptions": [one]}));
        assert_eq!(shown, "s  memory.recorded,agent.left  relevance from 0.5, 0 ms apart");
        assert_eq!(listed(&json!({"subscriptions": []})), "no subscriptions");
    }
}
