//! The rules, tested through the one door that the heart has: messages in, verdicts out.
//!
//! The [`Stage`] is a Field without a hub: it decides, applies, keeps entries as the texts that the log keeps,
//! and answers reads from them. One file per subject; [`model`] is a second reading of the specification that
//! random operations are held against.

mod agents;
mod attune;
mod audience;
mod census;
mod clock;
mod compact;
mod conflicts;
mod detect;
mod detection;
mod drafts;
mod factors;
mod hostile;
mod idempotency;
mod invariants;
mod large;
mod levels;
mod lifecycle;
mod log_lines;
mod merge;
mod merge_effects;
mod merge_told;
mod model;
mod order;
mod pending;
mod purge;
pub(crate) mod random;
mod record;
mod refusals;
mod replay;
mod replay_bounds;
mod scope;
mod shelved;
mod strategies;
mod subscribe;
mod token_budget;
mod votes;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::protocol::{Envelope, ErrorCode, Refusal, Timestamp, Unit, UnitStatus};
use crate::relevance::{Condenser, Index, Reader, Tokens};

/// A message before it is sent.
#[derive(Clone)]
struct Saying {
    agent: String,
    operation: &'static str,
    payload: Value,
    id: Option<String>,
    epoch: u64,
    session: Option<&'static str>,
    connection: Option<u64>,
}

fn saying(agent: &str, operation: &'static str, payload: Value) -> Saying {
    Saying { agent: agent.into(), operation, payload, id: None, epoch: 0, session: None, connection: None }
}

impl Saying {
    fn id(self, id: &str) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    fn epoch(self, epoch: u64) -> Self {
        Self { epoch, ..self }
    }

    fn session(self, session: &'static str) -> Self {
        Self { session: Some(session), ..self }
    }

    fn over(self, connection: u64) -> Self {
        Self { connection: Some(connection), ..self }
    }
}

/// What came back: the epoch that the reply shows, and the response or the refusal.
#[derive(Debug)]
struct Reply {
    epoch: u64,
    outcome: Result<Value, Refusal>,
}

impl Reply {
    #[track_caller]
    fn ok(self) -> Value {
        self.outcome.expect("the message is answered")
    }

    #[track_caller]
    fn refusal(self) -> Refusal {
        self.outcome.expect_err("the message is refused")
    }

    #[track_caller]
    fn code(self) -> ErrorCode {
        self.refusal().code
    }

    #[track_caller]
    fn unit_id(self) -> String {
        text(&self.ok()["memory_unit_id"])
    }
}

/// A Field in memory.
#[derive(Default)]
struct Stage {
    state: State,
    policy: Policy,
    /// The log: entries as texts, by epoch.
    kept: BTreeMap<u64, String>,
    index: Index,
    reader: Reader,
    tokens: Tokens,
    /// What becomes of texts at a model outside.
    embedded: Embedded,
    /// Whether units are compared with the Field when they are committed, and how.
    detection: detection::Detection,
    now: u64,
    sent: u64,
    /// Whether the texts of archived units stay in memory.
    keeps: bool,
}

impl Stage {
    fn new() -> Self {
        Self { now: 1_772_361_000_000, ..Self::default() }
    }

    /// A Field where these agents are registered, each in the role of its own name.
    fn with_agents(agents: &[&str]) -> Self {
        let mut stage = Self::new();
        for agent in agents {
            stage.join(agent);
        }
        stage
    }

    fn of_level(level: u8) -> Self {
        let policy = Policy::new("default", level, false, crate::limits::GRACE_MS, Policy::default().limits);
        Self { policy, ..Self::new() }
    }

    fn join(&mut self, agent: &str) {
        self.send(agent, "REGISTER", json!({ "id": agent, "role": agent })).ok();
    }

    fn send(&mut self, agent: &str, operation: &'static str, payload: Value) -> Reply {
        self.say(saying(agent, operation, payload))
    }

    /// Sends a message the way a door and an actor do.
    fn say(&mut self, saying: Saying) -> Reply {
        self.now += 1;
        self.sent += 1;
        let id = saying.id.unwrap_or_else(|| format!("message {}", self.sent));
        let envelope = json!({
            "protocol": "akashik", "version": "0.1.0", "id": id, "operation": saying.operation,
            "agent_id": saying.agent, "session_id": saying.session, "epoch": saying.epoch,
            "payload": saying.payload,
        })
        .to_string();
        let message = Message::read(&Envelope::parse(&envelope).expect("an envelope"), &self.policy);
        let mut message = Message { embedded: self.embedded.clone(), ..message };
        message.suspected = self.suspected(&message);
        let command = Command { at: Timestamp(self.now), connection: saying.connection, message };
        let mut command = command;
        let mut verdict = decide(&self.state, &self.policy, &command);
        loop {
            match verdict {
                Verdict::Prepare(preparation) => {
                    command.message.plan = Some(Arc::new(self.plan(&preparation)));
                }
                Verdict::Fetch(wanting) => command.message.recalled.extend(self.recalled(&wanting)),
                _ => break,
            }
            verdict = decide(&self.state, &self.policy, &command);
        }
        let reply = match verdict {
            Verdict::Prepare(_) | Verdict::Fetch(_) => unreachable!("it was planned"),
            Verdict::Refuse(refusal) => return Reply { epoch: self.state.clock, outcome: Err(refusal) },
            Verdict::Change(entry) => {
                let epoch = entry.epoch;
                self.enter_with(&entry, &command.message.recalled);
                Reply { epoch, outcome: Ok(self.first_answer(epoch)) }
            }
            Verdict::Repeat { epoch } => Reply { epoch, outcome: Ok(self.first_answer(epoch)) },
            Verdict::Read(read) => {
                self.state.clock = read.epoch;
                Reply { epoch: read.epoch, outcome: self.look(&read) }
            }
        };
        self.note_life(&command);
        reply
    }

    /// What a hub does beside the actor.
    fn plan(&mut self, preparation: &Preparation) -> Plan {
        let units = preparation.units(&self.state.world);
        let groups = self.groups(preparation, &units);
        let mut condenser = Condenser::default();
        let world = &self.state.world;
        let syntheses = groups.into_iter().map(|group| compose(world, &mut condenser, group)).collect();
        preparation.plan(world, units, syntheses)
    }

    fn groups(&mut self, preparation: &Preparation, units: &[UnitNo]) -> Vec<Vec<UnitNo>> {
        if !preparation.summarizes(units.len()) {
            return Vec::new();
        }
        let world = &self.state.world;
        let direction = |no: &UnitNo| self.reader.embed(&document(world.slot(*no)).unwrap());
        let directions: Vec<_> = units.iter().map(direction).collect();
        grouped(world, units, &directions)
    }

    fn enter(&mut self, entry: &Entry) {
        self.enter_with(entry, &[]);
    }

    /// Enters what was decided with these units at hand; then the texts of what is archived leave memory.
    fn enter_with(&mut self, entry: &Entry, recalled: &[Arc<Unit>]) {
        apply(&mut self.state, entry);
        for no in self.state.shelving.take_back() {
            let id = self.state.world.slot(no).id;
            let unit = recalled.iter().find(|unit| unit.id == id).expect("the rule had its text");
            assert!(self.state.world.give(no, Arc::clone(unit)));
        }
        if !self.keeps {
            self.state.shelve(usize::MAX, entry.epoch);
        }
        let before = self.kept.insert(entry.epoch, entry.to_json());
        assert!(before.is_none(), "one entry per epoch");
    }

    /// Units as the log tells them.
    fn recalled(&self, Wanting(units): &Wanting) -> Vec<Arc<Unit>> {
        let of = |no: &UnitNo| {
            let slot = self.state.world.slot(*no);
            let entry = Entry::from_json(&self.kept[&slot.epoch]).unwrap();
            let told = entry.events.into_iter().find_map(|event| match event {
                Event::Recorded { unit, .. } | Event::Committed { unit, .. } => {
                    (unit.id == slot.id).then_some(unit)
                }
                _ => None,
            });
            told.expect("the entry at its epoch tells a unit")
        };
        units.iter().map(of).collect()
    }

    /// The world with all texts that are in the log.
    fn filled(&self) -> World {
        let mut world = self.state.world.clone();
        let wanting = Wanting(world.shelved().collect());
        for (no, unit) in wanting.0.iter().zip(self.recalled(&wanting)) {
            assert!(world.give(*no, unit), "it is told as it was recorded");
        }
        world
    }

    fn first_answer(&self, epoch: u64) -> Value {
        let entry = Entry::from_json(&self.kept[&epoch]).unwrap();
        serde_json::from_str(entry.reply.expect("an answered message").get()).unwrap()
    }

    fn look(&mut self, read: &Read) -> Result<Value, Refusal> {
        self.catch_up();
        let world = &self.state.world;
        match &read.query {
            Query::Attune(request) => {
                let selection = select(
                    world,
                    &self.index,
                    &self.policy,
                    read.epoch,
                    Some(read.asker),
                    request,
                    &read.embedded,
                );
                let filled;
                let answer = match show(world, &self.tokens, read.epoch, request, selection) {
                    Ok(answer) => answer,
                    Err(unshown) => {
                        let Unshown { selection, wanting } = *unshown;
                        assert!(!wanting.0.is_empty());
                        filled = self.filled();
                        show(&filled, &self.tokens, read.epoch, request, selection)
                            .ok()
                            .expect("all is there")
                    }
                };
                let shown = answer.ids();
                // As a client gets it: by way of text, where a score is short.
                let answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
                if self.policy.audit != Audit::Off {
                    let entry = audit(&self.state, Timestamp(self.now), read, shown).unwrap();
                    self.enter(&entry);
                }
                Ok(answer)
            }
            Query::Detect(request) => {
                let coverage = self.noticed(read, request)?;
                let world = &self.state.world;
                detect(world, request, coverage).map(|answer| serde_json::to_value(answer).unwrap())
            }
            Query::Compact(preparation) => {
                let (preparation, units) = (preparation.clone(), preparation.units(world));
                let groups = self.groups(&preparation, &units).len();
                preparation
                    .preview(&self.state.world, &units, groups)
                    .map(|answer| serde_json::to_value(answer).unwrap())
            }
            Query::Detected(..) => unreachable!("a stage detects in one go"),
            Query::Subscriptions => Ok(serde_json::to_value(subscriptions(world, read.asker)).unwrap()),
            Query::Replay(request) => {
                let mut chronicle = Kept(&self.kept);
                replay(world, &mut chronicle, &self.policy, Some(read.asker), request)
                    .map(|answer| serde_json::to_value(answer).unwrap())
            }
        }
    }

    fn catch_up(&mut self) {
        let world = self.filled();
        for (_, no) in &world.timeline.clone().skip(self.index.len() as usize) {
            let slot = world.slot(*no);
            let doc = document(slot).expect("all is there");
            let reading = self.index.known().read(&mut self.reader, &doc, false);
            self.index.enter(&doc, kind(slot.kind), slot.task, &reading);
        }
    }

    fn note_life(&mut self, command: &Command) {
        let Some(agent) = self.state.world.agent_no(&command.message.agent_id) else { return };
        self.state.presence.seen(agent, command.at);
        let Some(connection) = command.connection else { return };
        let record = self.state.world.agent(agent);
        let attached = self.state.presence.is_attached(agent, connection);
        if record.is_active() && (!record.holder || !attached) {
            self.state.presence.attach(agent, connection);
            if let Some(entry) = connect(&self.state, agent, command.at) {
                self.enter(&entry);
            }
        }
    }

    fn drop_connection(&mut self, connection: u64) {
        self.state.presence.detach(connection, Timestamp(self.now));
    }

    /// Lets time pass, and those fail whose time is over.
    fn wait(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        while let Some(entry) = overdue(&self.state, &self.policy, Timestamp(self.now)) {
            self.enter(&entry);
        }
    }

    /// The state as a restart finds it.
    fn rebuilt(&self) -> State {
        self.rebuilt_as_of(u64::MAX)
    }

    /// The state as it was once the operation at `epoch` was applied.
    fn rebuilt_as_of(&self, epoch: u64) -> State {
        let mut state = State::default();
        for text in self.kept.range(..=epoch).map(|(_, text)| text) {
            let mut entry = Entry::from_json(text).expect("what was kept can be read");
            entry.intern(&state.world);
            apply(&mut state, &entry);
        }
        state
    }

    fn record(&mut self, agent: &str, content: &str) -> String {
        self.send(agent, "RECORD", finding(content)).unit_id()
    }

    fn draft(&mut self, agent: &str, content: &str) -> String {
        self.send(agent, "RECORD", with(finding(content), json!({ "mode": "draft" }))).unit_id()
    }

    /// A finding of `agent` with relations, `[type, target]` each.
    fn relate(&mut self, agent: &str, relations: &[[&str; 2]]) -> Reply {
        self.send(agent, "RECORD", related("related", relations))
    }

    fn give_up(&mut self, agent: &str, operation: &'static str, unit: &str) -> Reply {
        self.send(agent, operation, json!({ "memory_unit_id": unit, "reason": "it was wrong" }))
    }

    fn commit(&mut self, agent: &str, unit: &str) -> Reply {
        self.send(agent, "COMMIT", json!({ "memory_unit_id": unit }))
    }

    /// MERGE with a rationale and further keys of the resolution.
    fn merge(&mut self, agent: &str, conflict: &str, strategy: &str, resolution: Value) -> Reply {
        let resolution = with(json!({ "rationale": "so it is" }), resolution);
        let payload = json!({ "conflict_id": conflict, "strategy": strategy, "resolution": resolution });
        self.send(agent, "MERGE", payload)
    }

    /// The conflict of this id, as DETECT lists it.
    #[track_caller]
    fn conflict(&mut self, asker: &str, id: &str) -> Value {
        let found = self.conflicts(asker).into_iter().find(|conflict| conflict["id"] == id);
        found.expect("a known conflict")
    }

    fn slot(&self, unit: &str) -> &Slot {
        self.state.world.slot(self.unit_no(unit))
    }

    fn unit_no(&self, unit: &str) -> UnitNo {
        self.state.world.find(unit.parse().expect("a unit's id")).expect("a known unit")
    }

    #[track_caller]
    fn status(&self, unit: &str) -> UnitStatus {
        self.slot(unit).status
    }

    fn agent_status(&self, agent: &str) -> String {
        let no = self.state.world.agent_no(agent).expect("a known agent");
        self.state.world.agent(no).agent.status.to_string()
    }

    fn conflicts(&mut self, asker: &str) -> Vec<Value> {
        list(&self.send(asker, "DETECT", json!({ "mode": "list" })).ok()["conflicts"])
    }

    /// ATTUNE with a wide scope and further keys of it.
    fn attune(&mut self, agent: &str, scope: Value) -> Value {
        let scope = with(json!({ "role": "reader", "max_units": 1000 }), scope);
        self.send(agent, "ATTUNE", json!({ "scope": scope })).ok()
    }

    fn attuned_ids(&mut self, agent: &str, scope: Value) -> Vec<String> {
        let mut ids = ids_of(&self.attune(agent, scope));
        ids.sort();
        ids
    }

    fn replay(&mut self, agent: &str, target: [&str; 2], depth: &str) -> Reply {
        let payload = json!({ "target_type": target[0], "target_id": target[1], "depth": depth });
        self.send(agent, "REPLAY", payload)
    }
}

/// Two units that contradict each other.
struct Dispute {
    /// The older unit.
    a: String,
    /// The newer one.
    b: String,
    conflict: String,
}

impl Dispute {
    /// Of ada, who is sure to 0.5, and bob, to 0.7; kim looks on.
    fn staged() -> (Stage, Self) {
        let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
        let dispute = Self::between(&mut stage, json!({}), json!({ "score": 0.7 }));
        (stage, dispute)
    }

    /// Of ada and bob, with these keys of their confidences.
    fn between(stage: &mut Stage, a: Value, b: Value) -> Self {
        let sure = |unit: Value, more: Value| {
            let confidence = with(unit["confidence"].clone(), more);
            with(unit, json!({ "confidence": confidence }))
        };
        let a = stage.send("ada", "RECORD", sure(finding("It grows."), a)).unit_id();
        let against = related("It shrinks.", &[["contradicts", &a]]);
        let b = stage.send("bob", "RECORD", sure(against, b)).unit_id();
        let conflict = b.replace("mem", "conflict");
        Self { a, b, conflict }
    }
}

/// The log that a stage keeps.
struct Kept<'a>(&'a BTreeMap<u64, String>);

impl Chronicle for Kept<'_> {
    fn entry(&mut self, epoch: u64) -> Result<Option<Entry>, String> {
        self.0.get(&epoch).map(|text| Entry::from_json(text).map_err(|error| error.to_string())).transpose()
    }
}

fn finding(content: &str) -> Value {
    json!({
        "type": "finding", "content": content, "intent": { "purpose": "to know" },
        "confidence": { "score": 0.5, "reason": "seen" },
    })
}

fn related(content: &str, relations: &[[&str; 2]]) -> Value {
    let relations: Vec<_> =
        relations.iter().map(|[kind, target]| json!({ "type": kind, "target_id": target })).collect();
    with(finding(content), json!({ "relations": relations }))
}

/// `value` with the keys of `more`.
fn with(mut value: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    value.as_object_mut().expect("an object").extend(more);
    value
}

#[track_caller]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text, not {value}")).to_owned()
}

#[track_caller]
fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("a list, not {value}")).clone()
}

/// The units of an ATTUNE response, in its order.
fn ids_of(attuned: &Value) -> Vec<String> {
    list(&attuned["record"]).iter().map(|scoped| text(&scoped["memory_unit"]["id"])).collect()
}

/// The events of a REPLAY response as `"<epoch> <type> <agent>"`.
fn told(replayed: &Value) -> Vec<String> {
    list(&replayed["timeline"])
        .iter()
        .map(|event| {
            format!("{} {} {}", event["epoch"], text(&event["event_type"]), text(&event["agent_id"]))
        })
        .collect()
}

/// All notices of an entry, those of archived units too.
pub(crate) fn all_notices(world: &World, entry: &Entry) -> Vec<Notice> {
    let Notices { mut told, places } = notices(world, entry).expect("a world with all texts");
    assert_eq!(places, super::places(entry), "told without the world");
    told.extend(archived(world, entry, places, 0..archived_places(entry)).expect("a world with all texts"));
    told
}

/// The lines of an entry's text.
fn lines_of(body: &str) -> Vec<String> {
    let mut lines = Vec::new();
    log_lines(body, 0, |line| {
        lines.push(line);
        true
    })
    .unwrap();
    lines
}
