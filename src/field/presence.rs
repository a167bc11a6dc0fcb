//! Who is here: what the rules must know of connections (section 4, liveness).
//!
//! It arrives as commands, is kept beside the log and ends with the process. After a restart every agent
//! that lived by a connection has its time of grace to return.

use std::collections::{BTreeSet, HashMap};

use imbl::Vector;

use super::state::{AgentNo, World};
use crate::protocol::Timestamp;

/// What is known of one agent's presence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Whereabouts {
    /// Open connections that it has spoken over.
    pub connections: u32,
    /// When it last sent anything.
    pub last_seen: Timestamp,
    /// Since when it has had none, if it lives by connections.
    gone_since: Option<Timestamp>,
}

/// The connections of all agents.
#[derive(Debug, Clone, Default)]
pub struct Presence {
    agents: Vector<Whereabouts>,
    attached: HashMap<u64, BTreeSet<AgentNo>>,
    /// The same the other way round, for agents that have connections.
    holding: HashMap<AgentNo, BTreeSet<u64>>,
    /// Who is gone, longest first.
    gone: BTreeSet<(Timestamp, AgentNo)>,
}

impl Presence {
    /// Nobody is here, and by agent, this is when each last sent anything.
    pub(super) fn remembered(last_seen: &[Timestamp]) -> Self {
        let whereabouts =
            |last_seen: &Timestamp| Whereabouts { last_seen: *last_seen, ..Whereabouts::default() };
        Self { agents: last_seen.iter().map(whereabouts).collect(), ..Self::default() }
    }

    /// What is known of an agent.
    pub fn of(&self, agent: AgentNo) -> Whereabouts {
        self.agents.get(agent as usize).copied().unwrap_or_default()
    }

    /// All agents' whereabouts, by their numbers; a cheap clone for views.
    pub fn all(&self) -> Vector<Whereabouts> {
        self.agents.clone()
    }

    fn entry(&mut self, agent: AgentNo) -> &mut Whereabouts {
        while self.agents.len() <= agent as usize {
            self.agents.push_back(Whereabouts::default());
        }
        &mut self.agents[agent as usize]
    }

    /// Notes since when an agent is gone, or that it is not.
    fn set_gone(&mut self, agent: AgentNo, since: Option<Timestamp>) {
        let before = std::mem::replace(&mut self.entry(agent).gone_since, since);
        if let Some(before) = before {
            self.gone.remove(&(before, agent));
        }
        if let Some(since) = since {
            self.gone.insert((since, agent));
        }
    }

    /// An agent sent something. A sign of life without a connection starts a running grace time anew.
    pub fn seen(&mut self, agent: AgentNo, now: Timestamp) {
        let before = self.of(agent);
        if before.last_seen >= now && before.gone_since.is_none() {
            // Known already: an entry is applied and noted at the same moment.
            return;
        }
        let entry = self.entry(agent);
        entry.last_seen = entry.last_seen.max(now);
        if entry.gone_since.is_some() {
            self.set_gone(agent, Some(now));
        }
    }

    /// An agent spoke over a connection.
    pub fn attach(&mut self, agent: AgentNo, connection: u64) {
        if self.attached.entry(connection).or_default().insert(agent) {
            self.holding.entry(agent).or_default().insert(connection);
            self.entry(agent).connections += 1;
            self.set_gone(agent, None);
        }
    }

    /// Whether an agent has spoken over a connection.
    pub fn is_attached(&self, agent: AgentNo, connection: u64) -> bool {
        self.holding.get(&agent).is_some_and(|connections| connections.contains(&connection))
    }

    /// A connection ended.
    pub fn detach(&mut self, connection: u64, now: Timestamp) {
        for agent in self.attached.remove(&connection).unwrap_or_default() {
            if let Some(connections) = self.holding.get_mut(&agent) {
                connections.remove(&connection);
                if connections.is_empty() {
                    self.holding.remove(&agent);
                }
            }
            let entry = self.entry(agent);
            entry.connections = entry.connections.saturating_sub(1);
            if entry.connections == 0 {
                self.set_gone(agent, Some(now));
            }
        }
    }

    /// An agent left the Field: its attachments end.
    pub(super) fn forget(&mut self, agent: AgentNo) {
        for connection in self.holding.remove(&agent).unwrap_or_default() {
            if let Some(agents) = self.attached.get_mut(&connection) {
                agents.remove(&agent);
            }
        }
        self.entry(agent).connections = 0;
        self.set_gone(agent, None);
    }

    /// The process, or the state, is new: whoever lives by connections and has none gets the full grace time.
    /// Attachments of agents that the log does not know as active were made by entries that were lost.
    pub fn resume(&mut self, world: &World, now: Timestamp) {
        let is_active = |agent: &AgentNo| world.agents.get(*agent as usize).is_some_and(|a| a.is_active());
        let lost: Vec<AgentNo> = (0..).take(self.agents.len()).filter(|agent| !is_active(agent)).collect();
        for agent in lost {
            self.forget(agent);
        }
        self.agents.truncate(world.agents.len());
        for (no, record) in (0..).zip(&world.agents) {
            let entry = *self.entry(no);
            if record.is_active() && record.holder && entry.connections == 0 && entry.gone_since.is_none() {
                self.set_gone(no, Some(now));
            }
        }
    }

    /// The agent whose grace time has been over for longest.
    pub(super) fn overdue(&self, now: Timestamp, grace_ms: u64) -> Option<AgentNo> {
        let (since, agent) = self.gone.first()?;
        (now.0.saturating_sub(since.0) >= grace_ms).then_some(*agent)
    }

    /// Whether an agent lives by connections and has none.
    pub(super) fn is_gone(&self, agent: AgentNo) -> bool {
        self.of(agent).gone_since.is_some()
    }
}
