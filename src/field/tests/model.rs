//! A second reading of the specification, as naive as can be: statuses, conflicts and agents recomputed from
//! plain lists. It shares nothing with the code that it is held against but the names of the error codes.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::ErrorCode;

/// Section 4: "has 30 s to return".
const GRACE: u64 = 30_000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Link {
    Supersedes,
    Contradicts,
    Informs,
}

#[derive(Debug)]
pub struct Unit {
    pub id: String,
    pub status: &'static str,
    author: usize,
    /// Whether it was never committed: drafts, discarded ones too.
    private: bool,
    next: Option<usize>,
    links: Vec<(Link, usize)>,
}

#[derive(Debug)]
pub struct Conflict {
    pub older: usize,
    pub newer: usize,
    pub winner: Option<usize>,
}

#[derive(Debug)]
pub struct Subscription {
    pub agent: usize,
    pub events: &'static [&'static str],
    pub debounce_ms: u64,
}

#[derive(Debug, Default)]
pub struct Agent {
    /// Empty before it first registers.
    pub status: &'static str,
    role: u8,
    lives_by_connections: bool,
    connections: BTreeSet<u64>,
    gone_since: Option<u64>,
}

impl Agent {
    fn is_active(&self) -> bool {
        self.status == "idle"
    }
}

#[derive(Debug, Default)]
pub struct Model {
    pub clock: u64,
    pub agents: Vec<Agent>,
    pub units: Vec<Unit>,
    pub conflicts: Vec<Conflict>,
    pub subscriptions: BTreeMap<String, Subscription>,
}

type Outcome = Result<(), ErrorCode>;

impl Model {
    pub fn new(agents: usize) -> Self {
        Self { agents: (0..agents).map(|_| Agent::default()).collect(), ..Self::default() }
    }

    fn active(&self, agent: usize) -> Outcome {
        if self.agents[agent].is_active() { Ok(()) } else { Err(ErrorCode::AgentNotRegistered) }
    }

    pub fn register(&mut self, agent: usize, role: u8) -> Outcome {
        let known = &mut self.agents[agent];
        if known.is_active() {
            let may_resume = known.gone_since.is_some() && known.role == role;
            return if may_resume { Ok(()) } else { Err(ErrorCode::AgentIdTaken) };
        }
        *known = Agent { status: "idle", role, ..Agent::default() };
        Ok(())
    }

    /// Whether there was anybody to leave.
    pub fn deregister(&mut self, agent: usize, leaving: usize) -> Result<bool, ErrorCode> {
        self.active(agent)?;
        let target = &mut self.agents[leaving];
        let here = target.is_active() || target.status == "failed";
        if here {
            self.subscriptions.retain(|_, subscription| subscription.agent != leaving);
            *target = Agent { status: "offline", role: target.role, ..Agent::default() };
        }
        Ok(here)
    }

    /// With no id the Field gives one that nobody has.
    pub fn subscribe(
        &mut self,
        agent: usize,
        id: Option<&str>,
        events: Option<&'static [&'static str]>,
        debounce_ms: Option<u64>,
    ) -> Outcome {
        self.active(agent)?;
        let given = format!("sub-{}", self.clock + 1);
        let free = |id: &str| !self.subscriptions.contains_key(id);
        let given = if free(&given) { given } else { format!("{given}.1") };
        let id = id.map_or(given, str::to_owned);
        let known = self.subscriptions.get(&id);
        if known.is_some_and(|known| known.agent != agent) {
            return Err(ErrorCode::SubscriptionNotFound);
        }
        let events = events.or(known.map(|known| known.events)).ok_or(ErrorCode::InvalidMessage)?;
        let debounce_ms = debounce_ms.or(known.map(|known| known.debounce_ms)).unwrap_or(0);
        self.subscriptions.insert(id, Subscription { agent, events, debounce_ms });
        Ok(())
    }

    pub fn unsubscribe(&mut self, agent: usize, id: &str) -> Outcome {
        self.active(agent)?;
        match self.subscriptions.get(id) {
            Some(known) if known.agent == agent => drop(self.subscriptions.remove(id)),
            _ => return Err(ErrorCode::SubscriptionNotFound),
        }
        Ok(())
    }

    pub fn read(&self, agent: usize) -> Outcome {
        self.active(agent)
    }

    /// What every answered message means: an epoch, and a sign of life, over a connection or not.
    pub fn answered(&mut self, agent: usize, connection: Option<u64>, now: u64, is_read: bool) {
        self.clock += 1;
        self.alive(agent, connection, now, is_read);
    }

    /// The sign of life alone; `apart` if tying the agent to a connection is an operation of its own.
    pub fn alive(&mut self, agent: usize, connection: Option<u64>, now: u64, apart: bool) {
        let agent = &mut self.agents[agent];
        if agent.gone_since.is_some() {
            agent.gone_since = Some(now);
        }
        let Some(connection) = connection.filter(|_| agent.is_active()) else { return };
        agent.gone_since = None;
        agent.connections.insert(connection);
        if !agent.lives_by_connections {
            agent.lives_by_connections = true;
            self.clock += u64::from(apart);
        }
    }

    pub fn drop_connection(&mut self, connection: u64, now: u64) {
        for agent in &mut self.agents {
            if agent.connections.remove(&connection) && agent.connections.is_empty() {
                agent.gone_since = Some(now);
            }
        }
    }

    pub fn time_passed(&mut self, now: u64) {
        for agent in &mut self.agents {
            if agent.gone_since.is_some_and(|gone| now - gone >= GRACE) {
                *agent = Agent { status: "failed", role: agent.role, ..Agent::default() };
                self.clock += 1;
            }
        }
    }

    fn sees(&self, agent: usize, unit: usize) -> bool {
        self.units.get(unit).is_some_and(|unit| !unit.private || unit.author == agent)
    }

    fn latest(&self, mut unit: usize) -> usize {
        while let Some(next) = self.units[unit].next {
            unit = next;
        }
        unit
    }

    fn is_live(&self, unit: usize) -> bool {
        matches!(self.units[unit].status, "active" | "contested")
    }

    /// The units that links of a kind take effect on, or why they cannot.
    fn effects(
        &self,
        agent: usize,
        links: &[(Link, usize)],
        takes_effect: bool,
    ) -> Result<Effects, ErrorCode> {
        let mut effects = Effects::default();
        for &(link, target) in links.iter().filter(|(link, _)| *link != Link::Informs) {
            if !self.sees(agent, target) {
                return Err(ErrorCode::UnitNotFound);
            }
            if !takes_effect {
                continue;
            }
            let target = self.latest(target);
            if !self.is_live(target) {
                return Err(ErrorCode::InvalidTransition);
            }
            let met = if link == Link::Supersedes { &mut effects.replaced } else { &mut effects.contested };
            if !met.contains(&target) {
                met.push(target);
            }
        }
        Ok(effects)
    }

    pub fn record(&mut self, agent: usize, draft: bool, links: &[(Link, usize)]) -> Outcome {
        self.active(agent)?;
        let effects = self.effects(agent, links, !draft)?;
        let status = if draft { "draft" } else { "active" };
        let id = format!("mem-{}", self.clock + 1);
        let links = links.to_vec();
        self.units.push(Unit { id, status, author: agent, private: draft, next: None, links });
        self.take_effect(self.units.len() - 1, &effects);
        Ok(())
    }

    fn take_effect(&mut self, unit: usize, effects: &Effects) {
        for &older in &effects.contested {
            self.conflicts.push(Conflict { older, newer: unit, winner: None });
        }
        for &old in &effects.replaced {
            self.units[old].next = Some(unit);
            self.leaves(old, "superseded");
        }
        self.settle_statuses();
    }

    /// A unit leaves the live states: its partners win.
    fn leaves(&mut self, unit: usize, status: &'static str) {
        self.units[unit].status = status;
        for conflict in self.conflicts.iter_mut().filter(|conflict| conflict.winner.is_none()) {
            if conflict.older == unit {
                conflict.winner = Some(conflict.newer);
            } else if conflict.newer == unit {
                conflict.winner = Some(conflict.older);
            }
        }
    }

    /// Contested while in an unresolved conflict, active otherwise.
    fn settle_statuses(&mut self) {
        let open = |no: usize| {
            self.conflicts
                .iter()
                .any(|conflict| conflict.winner.is_none() && (conflict.older == no || conflict.newer == no))
        };
        let contested: Vec<_> = (0..self.units.len()).map(open).collect();
        for (unit, contested) in self.units.iter_mut().zip(contested) {
            if matches!(unit.status, "active" | "contested") {
                unit.status = if contested { "contested" } else { "active" };
            }
        }
    }

    fn own(&self, agent: usize, unit: usize) -> Outcome {
        self.active(agent)?;
        if !self.sees(agent, unit) {
            return Err(ErrorCode::UnitNotFound);
        }
        if self.units[unit].author == agent { Ok(()) } else { Err(ErrorCode::Forbidden) }
    }

    pub fn retract(&mut self, agent: usize, unit: usize) -> Outcome {
        self.own(agent, unit)?;
        if self.is_live(unit) {
            self.leaves(unit, "retracted");
            self.settle_statuses();
        }
        if self.units[unit].status == "retracted" { Ok(()) } else { Err(ErrorCode::InvalidTransition) }
    }

    pub fn discard(&mut self, agent: usize, unit: usize) -> Outcome {
        self.own(agent, unit)?;
        if self.units[unit].status != "draft" {
            return Err(ErrorCode::InvalidTransition);
        }
        self.units[unit].status = "retracted";
        Ok(())
    }

    pub fn commit(&mut self, agent: usize, unit: usize, links: Option<&[(Link, usize)]>) -> Outcome {
        self.own(agent, unit)?;
        if self.units[unit].status != "draft" {
            return Err(ErrorCode::InvalidTransition);
        }
        let links = links.unwrap_or(&self.units[unit].links);
        let effects = self.effects(agent, links, true)?;
        self.units[unit].status = "active";
        self.units[unit].private = false;
        self.take_effect(unit, &effects);
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Effects {
    replaced: Vec<usize>,
    contested: Vec<usize>,
}
