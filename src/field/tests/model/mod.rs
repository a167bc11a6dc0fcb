//! A second reading of the specification, as naive as can be: statuses, conflicts and agents recomputed from
//! plain lists. It shares nothing with the code that it is held against but the names of the error codes.

mod compact;
mod merge;
mod units;

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::ErrorCode;

/// Section 4: "has 30 s to return".
const GRACE: u64 = 30_000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Link {
    Supersedes,
    Contradicts,
    Supports,
    Informs,
}

/// The strategies of COMPACT.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PutAway {
    Archive,
    Summarize,
    Purge,
}

impl Link {
    fn takes_effect(self) -> bool {
        matches!(self, Self::Supersedes | Self::Contradicts)
    }
}

/// The strategies of MERGE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum How {
    LastWrite,
    Confidence,
    Human,
    Authority,
    Evidence,
    Synthesis,
    Vote,
}

/// Section 7: the default quorum.
const QUORUM: usize = 3;

#[derive(Debug, Clone)]
pub struct Unit {
    pub id: String,
    pub status: &'static str,
    author: usize,
    /// Whether it was never committed: drafts, discarded ones too.
    private: bool,
    next: Option<usize>,
    /// To units that there were when it was said.
    links: Vec<(Link, usize)>,
    /// Whether its embedding could not be made yet; it counts while the unit is live.
    waits: bool,
    /// When it was committed; a draft, when it was recorded.
    epoch: u64,
    pub archived: bool,
    pub purged: bool,
    /// Its score in percent, and how many pieces of evidence it has.
    confidence: (u8, u8),
}

#[derive(Debug, Clone)]
pub struct Conflict {
    pub older: usize,
    pub newer: usize,
    pub status: &'static str,
    pub winner: Option<usize>,
    /// Who voted for which unit.
    pub ballots: BTreeMap<usize, usize>,
}

impl Conflict {
    fn is_open(&self) -> bool {
        self.status != "resolved"
    }

    fn end(&mut self, winner: Option<usize>) {
        self.status = "resolved";
        self.winner = winner;
    }
}

#[derive(Debug, Clone)]
pub struct Subscription {
    pub agent: usize,
    pub events: &'static [&'static str],
    pub debounce_ms: u64,
}

#[derive(Debug, Clone, Default)]
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

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub clock: u64,
    /// Whether embeddings cannot be made.
    pub outage: bool,
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
}
