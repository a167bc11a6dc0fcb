//! Each step, taken by a stage and by the model; and how the two are compared.

use serde_json::json;

use super::AGENTS;
use super::steps::{STATUSES, Step, Winner};
use crate::field::tests::model::{self, How, Link, Model, PutAway};
use crate::field::tests::*;

/// What subscriptions ask for, in the order in which they are kept.
const EVENTS: [&[&str]; 3] = [
    &["memory.recorded"],
    &["memory.superseded", "conflict.detected", "conflict.resolved"],
    &["memory.contested", "agent.joined", "agent.failed", "memory.retracted", "agent.left"],
];

/// A stage and the model of it, side by side.
pub(super) struct Pair {
    pub stage: Stage,
    model: Model,
    last: Option<(Saying, usize, u64)>,
}

impl Pair {
    pub fn new() -> Self {
        // Every unit is left to be compared behind, and is, some time.
        let stage = Stage { detection: detection::Detection::Deferred, ..Stage::new() };
        Self { stage, model: Model::new(AGENTS.len()), last: None }
    }

    /// Which unit a number means: one of those that there are, or, seldom, none.
    fn pick(&self, number: usize) -> usize {
        number % (self.model.units.len() + 1)
    }

    fn unit_id(&self, unit: usize) -> String {
        self.model.units.get(unit).map_or_else(|| "mem-999999".to_owned(), |unit| unit.id.clone())
    }

    fn picked(&self, links: &[(Link, usize)]) -> (Vec<(Link, usize)>, Value) {
        let picked: Vec<_> = links.iter().map(|&(link, number)| (link, self.pick(number))).collect();
        let name = |link| match link {
            Link::Supersedes => "supersedes",
            Link::Contradicts => "contradicts",
            Link::Supports => "supports",
            Link::Informs => "informs",
        };
        let json: Vec<_> = picked
            .iter()
            .map(|&(link, unit)| json!({ "type": name(link), "target_id": self.unit_id(unit) }))
            .collect();
        (picked, json!(json))
    }

    /// A subscription's name; with 0 the Field gives one. The last is what the Field would give next.
    fn name(&self, name: u8) -> Option<String> {
        match name {
            0 => None,
            4 => Some(format!("sub-{}", self.model.clock + 2)),
            chosen => Some(format!("s-{chosen}")),
        }
    }

    /// Sends what the model has already judged, and compares.
    fn send(&mut self, agent: usize, saying: Saying, expected: Result<(), ErrorCode>) -> Option<Value> {
        let is_preview = saying.payload["dry_run"] == true;
        let is_read = ["ATTUNE", "DETECT"].contains(&saying.operation) || is_preview;
        let connection = saying.connection;
        let id = format!("m-{}", self.stage.sent);
        let saying = saying.id(&id);
        let reply = self.stage.say(saying.clone());
        assert_eq!(reply.outcome.as_ref().map(|_| ()).map_err(|refusal| refusal.code), expected);
        if expected.is_ok() {
            assert_eq!(reply.epoch, self.model.clock + 1);
            self.model.answered(agent, connection, self.stage.now, is_read);
            if !is_read {
                self.last = Some((saying, agent, reply.epoch));
            }
        }
        reply.outcome.ok()
    }

    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Register { agent, role, over } => {
                let expected = self.model.register(*agent, *role);
                let payload = json!({ "id": AGENTS[*agent], "role": format!("role {role}") });
                self.send(*agent, via(*agent, "REGISTER", payload, *over), expected);
            }
            Step::Deregister { agent, target, over } => {
                let expected = self.model.deregister(*agent, *target);
                let saying = via(*agent, "DEREGISTER", json!({ "agent_id": AGENTS[*target] }), *over);
                let reply = self.send(*agent, saying, expected.map(|_| ()));
                let status = expected.map(|here| if here { "ok" } else { "not_found" });
                assert_eq!(reply.map(|reply| text(&reply["status"])).as_deref(), status.ok());
            }
            Step::Record { agent, over, draft, links, confidence } => {
                let (picked, relations) = self.picked(links);
                let expected = self.model.record(*agent, *draft, &picked, *confidence);
                let mode = if *draft { "draft" } else { "committed" };
                let task = [None, Some("t-1"), Some("t-2"), Some("t-1")][(*agent + links.len()) % 4];
                let intent = json!({ "purpose": "p", "task_id": task });
                let (percent, items) = *confidence;
                let confidence = json!({
                    "score": f64::from(percent) / 100.0, "reason": "r",
                    "evidence": vec!["e"; items.into()],
                });
                let own = json!({
                    "mode": mode, "relations": relations, "intent": intent, "confidence": confidence,
                });
                let payload = with(finding("said"), own);
                let reply = self.send(*agent, via(*agent, "RECORD", payload, *over), expected);
                self.check_warning(reply.as_ref(), self.model.units.len().saturating_sub(1));
            }
            Step::Commit { agent, unit, links } => {
                let unit = self.pick(*unit);
                let mut payload = json!({ "memory_unit_id": self.unit_id(unit) });
                let given = links.as_ref().map(|links| {
                    let (picked, relations) = self.picked(links);
                    payload["relations"] = relations;
                    picked
                });
                let expected = self.model.commit(*agent, unit, given.as_deref());
                let reply = self.send(*agent, via(*agent, "COMMIT", payload, None), expected);
                self.check_warning(reply.as_ref(), unit);
            }
            Step::Retract { agent, unit } => {
                let unit = self.pick(*unit);
                let expected = self.model.retract(*agent, unit);
                self.give_up(*agent, "RETRACT", unit, expected);
            }
            Step::Discard { agent, unit } => {
                let unit = self.pick(*unit);
                let expected = self.model.discard(*agent, unit);
                self.give_up(*agent, "DISCARD", unit, expected);
            }
            Step::Merge { agent, conflict, how, winner, text } => {
                self.merge(*agent, *conflict, *how, *winner, *text);
            }
            Step::Compact { agent, how, status, max_age, preview } => {
                self.compact(*agent, *how, status.map(|at| STATUSES[at]), *max_age, *preview);
            }
            Step::Look { agent, over } => {
                let expected = self.model.read(*agent);
                let reply =
                    self.send(*agent, via(*agent, "DETECT", json!({ "mode": "list" }), *over), expected);
                self.check_listed(reply.as_ref());
            }
            Step::Attune { agent, over, own, archived } => {
                self.attune(*agent, *over, *own, *archived);
            }
            Step::Outage(fails) => {
                self.model.outage = *fails;
                let why = || Embedded::Failed("it is down".into());
                self.stage.embedded = if *fails { why() } else { Embedded::Unasked };
            }
            Step::Enriched(numbers) => {
                let units: Vec<_> = numbers.iter().map(|number| self.pick_waiting(*number)).collect();
                let ids: Vec<_> = units.iter().map(|unit| self.unit_id(*unit)).collect();
                let ids: Vec<_> = ids.iter().map(String::as_str).collect();
                let turned = self.model.enriched(&units);
                assert_eq!(self.stage.enriched(&ids), vec!["ENRICHED"; turned]);
            }
            Step::Subscribe { agent, over, name, events, debounce_ms } => {
                let (id, events) = (self.name(*name), events.map(|set| EVENTS[usize::from(set)]));
                let expected = self.model.subscribe(*agent, id.as_deref(), events, *debounce_ms);
                let wish = json!({ "id": id, "events": events, "debounce_ms": debounce_ms });
                let payload = json!({ "action": "subscribe", "subscription": wish });
                self.send(*agent, via(*agent, "SUBSCRIBE", payload, *over), expected);
            }
            Step::Unsubscribe { agent, name } => {
                let id = self.name(*name).expect("a name");
                let expected = self.model.unsubscribe(*agent, &id);
                let payload = json!({ "action": "unsubscribe", "subscription": { "id": id } });
                self.send(*agent, via(*agent, "SUBSCRIBE", payload, None), expected);
            }
            Step::Again => {
                let Some((saying, agent, epoch)) = self.last.clone() else { return };
                let reply = self.stage.say(Saying { connection: None, ..saying });
                assert_eq!(reply.epoch, epoch);
                reply.ok();
                self.model.alive(agent, None, self.stage.now, true);
            }
            Step::Drop(connection) => {
                self.stage.drop_connection(*connection);
                self.model.drop_connection(*connection, self.stage.now);
            }
            Step::Behind(most) => {
                let waiting = self.stage.state.world.uncompared.len();
                let entered = self.stage.caught_up(*most);
                self.model.clock += u64::from(entered);
                assert_eq!(entered, waiting > 0);
                let left = self.stage.state.world.uncompared.len();
                assert_eq!(left, waiting.saturating_sub(*most));
            }
            Step::Wait(milliseconds) => {
                self.stage.wait(*milliseconds);
                self.model.time_passed(self.stage.now);
            }
        }
    }

    fn compact(
        &mut self,
        agent: usize,
        how: PutAway,
        status: Option<&str>,
        max_age: Option<u64>,
        preview: bool,
    ) {
        let strategy = match how {
            PutAway::Archive => "archive",
            PutAway::Summarize => "summarize",
            PutAway::Purge => "purge",
        };
        let filter = json!({ "status": status.map(|status| vec![status]), "max_age_epochs": max_age });
        let payload = json!({ "strategy": strategy, "filter": filter, "dry_run": preview });
        let before = preview.then(|| self.model.clone());
        let expected = self.model.compact(agent, how, status, max_age);
        if let Some(before) = before {
            self.model = before;
        }
        let touched = expected.as_ref().map(|units| units.len() as u64).map_err(|code| *code);
        let reply = self.send(agent, via(agent, "COMPACT", payload, None), expected.map(|_| ()));
        let Some(reply) = reply else { return };
        assert_eq!(Ok(reply["units_affected"].as_u64().unwrap()), touched);
        let made = reply["synthesis_units_created"].as_u64().unwrap();
        assert_eq!(made > 0, how == PutAway::Summarize && touched != Ok(0));
        for number in (0..made).filter(|_| !preview) {
            let epoch = self.model.clock;
            let id = if number == 0 { format!("mem-{epoch}") } else { format!("mem-{epoch}.{number}") };
            let score =
                self.stage.slot(&id).said().confidence.as_ref().and_then(|confidence| confidence.score);
            self.model.synthesis(AGENTS.len(), id, (score.unwrap() * 100.0).round() as u8);
        }
    }

    /// What an ATTUNE brings, and as what.
    fn attune(&mut self, agent: usize, over: Option<u64>, own: bool, archived: bool) {
        let expected = self.model.attuned(agent, own, archived);
        let scope = json!({
            "role": "reader", "max_units": 1000, "include_own": own, "include_archived": archived,
        });
        let saying = via(agent, "ATTUNE", json!({ "scope": scope }), over);
        let reply = self.send(agent, saying, expected.as_ref().map(|_| ()).map_err(|code| *code));
        let (Some(reply), Ok(expected)) = (reply, expected) else { return };
        let shown = list(&reply["record"]);
        let shown: BTreeMap<_, _> = shown
            .iter()
            .map(|one| (text(&one["memory_unit"]["id"]), text(&one["memory_unit"]["status"])))
            .collect();
        let known = |unit: &usize| &self.model.units[*unit];
        let expected: BTreeMap<_, _> =
            expected.iter().map(known).map(|unit| (unit.id.clone(), unit.status.to_owned())).collect();
        assert_eq!(reply["context_budget"]["units_available"], expected.len());
        assert_eq!(shown, expected);
        // Whoever asks is told that only words counted.
        assert_eq!(reply["warning"]["code"] == "ENRICHMENT_FAILED", self.model.outage, "{reply}");
    }

    /// The open conflicts and those that are over, but for what was purged.
    fn check_listed(&self, reply: Option<&Value>) {
        let Some(reply) = reply else { return };
        let listed: Vec<_> = list(&reply["conflicts"])
            .iter()
            .map(|one| [&one["unit_a"], &one["unit_b"], &one["status"]].map(text))
            .collect();
        let known = |unit: usize| &self.model.units[unit];
        let told = |of: &&model::Conflict| [of.older, of.newer].iter().all(|unit| !known(*unit).purged);
        let expected: Vec<_> = self
            .model
            .conflicts
            .iter()
            .filter(told)
            .map(|of| [known(of.older).id.clone(), known(of.newer).id.clone(), of.status.to_owned()])
            .collect();
        assert_eq!(listed, expected);
    }

    /// Whoever commits a unit without its embedding is told, and nobody else is.
    fn check_warning(&self, reply: Option<&Value>, unit: usize) {
        let Some(reply) = reply else { return };
        assert_eq!(reply["warning"]["code"] == "ENRICHMENT_FAILED", self.model.is_waiting(unit), "{reply}");
    }

    /// Which unit a number means as one that was embedded: mostly one that waits, seldom any.
    fn pick_waiting(&self, number: usize) -> usize {
        let waiting: Vec<_> =
            (0..self.model.units.len()).filter(|unit| self.model.is_waiting(*unit)).collect();
        if number < 80 && !waiting.is_empty() { waiting[number % waiting.len()] } else { self.pick(number) }
    }

    fn give_up(
        &mut self,
        agent: usize,
        operation: &'static str,
        unit: usize,
        expected: Result<(), ErrorCode>,
    ) {
        // What is not there has no id; the model says the same of a unit that is hidden.
        let payload = json!({ "memory_unit_id": self.unit_id(unit), "reason": "r" });
        self.send(agent, via(agent, operation, payload, None), expected);
    }

    /// Which conflict a number means: mostly one that is open, seldom none.
    fn pick_conflict(&self, number: usize) -> usize {
        let all = &self.model.conflicts;
        let open: Vec<_> = (0..all.len()).filter(|no| all[*no].status != "resolved").collect();
        if number < 80 && !open.is_empty() { open[number % open.len()] } else { number % (all.len() + 1) }
    }

    fn merge(&mut self, agent: usize, conflict: usize, how: How, winner: Winner, said: bool) {
        let conflict = self.pick_conflict(conflict);
        let known = self.model.conflicts.get(conflict);
        let winner = match winner {
            Winner::Nobody => None,
            Winner::Older => known.map(|conflict| conflict.older),
            Winner::Newer => known.map(|conflict| conflict.newer),
            Winner::Any(number) => Some(self.pick(number)),
        };
        let id = self.stage.state.world.conflicts.get(conflict).map(|conflict| conflict.id);
        let winner_id = winner.map(|unit| self.unit_id(unit));
        let payload = json!({
            "conflict_id": id.map_or_else(|| "conflict-999999".to_owned(), |id| id.to_string()),
            "strategy": strategy(how),
            "resolution": { "rationale": "r", "winner_id": winner_id, "synthesis": said.then_some("both") },
        });
        let expected = self.model.merge(agent, conflict, how, winner, said);
        let reply = self.send(agent, via(agent, "MERGE", payload, None), expected.map(|_| ()));
        let Some(reply) = reply else { return };
        assert_eq!(Ok(&*text(&reply["status"])), expected);
        let world = &self.stage.state.world;
        assert_eq!(reply["conflict"], json!(world.conflicts[conflict]), "the reply shows what came of it");
        let lost = list(&reply["side_effects"]["superseded_units"]);
        assert!(lost.iter().all(|unit| self.stage.status(&text(unit)) == UnitStatus::Superseded));
        assert_eq!(lost.len(), if reply["status"] == "resolved" { 1 + usize::from(said) } else { 0 });
        if said {
            self.check_warning(Some(&reply), self.model.units.len() - 1);
        } else {
            assert_eq!(reply.get("warning"), None, "{reply}");
        }
    }

    pub fn compare(&self) {
        let (world, model) = (&self.stage.state.world, &self.model);
        assert_eq!(self.stage.state.clock, model.clock);
        let units: Vec<_> = (0..)
            .zip(&world.units)
            .map(|(no, slot)| (slot.id.to_string(), slot.status.name(), world.is_archived(no), slot.purged))
            .collect();
        let known = |unit: &model::Unit| (unit.id.clone(), unit.status, unit.archived, unit.purged);
        let expected: Vec<_> = model.units.iter().map(known).collect();
        assert_eq!(units, expected);
        let pending: Vec<_> = world.pending.iter().map(|no| *no as usize).collect();
        let expected: Vec<_> = (0..model.units.len()).filter(|unit| model.is_waiting(*unit)).collect();
        assert_eq!(pending, expected, "what waits for its embedding");
        let id = |unit: usize| model.units[unit].id.clone();
        let conflicts: Vec<_> = world
            .conflicts
            .iter()
            .map(|conflict| {
                let winner = conflict.resolution.as_ref().and_then(|resolution| resolution.winner_id);
                let pair = [conflict.unit_a, conflict.unit_b].map(|id| id.to_string());
                (pair, conflict.status.name(), winner.map(|id| id.to_string()), conflict.ballots.len())
            })
            .collect();
        let expected: Vec<_> = model
            .conflicts
            .iter()
            .map(|conflict| {
                let pair = [id(conflict.older), id(conflict.newer)];
                (pair, conflict.status, conflict.winner.map(id), conflict.ballots.len())
            })
            .collect();
        assert_eq!(conflicts, expected);
        let subscriptions: BTreeMap<_, _> = world
            .subscriptions
            .values()
            .map(|record| {
                let agent = &world.agent(record.agent).agent.id;
                let of = &record.subscription;
                let events: Vec<_> = of.events.iter().map(|event| event.name()).collect();
                (of.id.to_string(), (agent.to_string(), events, of.debounce_ms))
            })
            .collect();
        let expected: BTreeMap<_, _> = model
            .subscriptions
            .iter()
            .map(|(id, of)| (id.clone(), (AGENTS[of.agent].to_owned(), of.events.to_vec(), of.debounce_ms)))
            .collect();
        assert_eq!(subscriptions, expected);
        for (agent, expected) in AGENTS.iter().zip(&model.agents) {
            let known = world.agent_no(agent).map_or("", |no| world.agent(no).agent.status.name());
            assert_eq!(known, expected.status, "{agent}");
        }
    }
}

fn strategy(how: How) -> &'static str {
    match how {
        How::LastWrite => "last_write_wins",
        How::Confidence => "confidence_weighted",
        How::Human => "human_escalation",
        How::Authority => "authority",
        How::Evidence => "evidence_count",
        How::Synthesis => "synthesis",
        How::Vote => "vote",
    }
}

fn via(agent: usize, operation: &'static str, payload: Value, over: Option<u64>) -> Saying {
    let session = [None, Some("s-1"), Some("s-2"), Some("s-1")][agent];
    Saying { connection: over, session, ..saying(AGENTS[agent], operation, payload) }
}
