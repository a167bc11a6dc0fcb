//! Who is here: what the rules must know of connections (section 4, liveness).
//!
//! It arrives as commands, is kept beside the log and ends with the process. After a restart every agent
//! that lived by a connection has its time of grace to return.

use std::collections::HashMap;

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
    attached: HashMap<u64, Vec<AgentNo>>,
}

impl Presence {
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

    /// An agent sent something. A sign of life without a connection starts a running grace time anew.
    pub(super) fn seen(&mut self, agent: AgentNo, now: Timestamp) {
        let entry = self.entry(agent);
        entry.last_seen = entry.last_seen.max(now);
        if entry.gone_since.is_some() {
            entry.gone_since = Some(now);
        }
    }

    /// An agent spoke over a connection.
    pub fn attach(&mut self, agent: AgentNo, connection: u64) {
        let agents = self.attached.entry(connection).or_default();
        if agents.contains(&agent) {
            return;
        }
        agents.push(agent);
        let entry = self.entry(agent);
        entry.connections += 1;
        entry.gone_since = None;
    }

    /// Whether an agent has spoken over a connection.
    pub fn is_attached(&self, agent: AgentNo, connection: u64) -> bool {
        self.attached.get(&connection).is_some_and(|agents| agents.contains(&agent))
    }

    /// A connection ended.
    pub fn detach(&mut self, connection: u64, now: Timestamp) {
        for agent in self.attached.remove(&connection).unwrap_or_default() {
            let entry = self.entry(agent);
            entry.connections = entry.connections.saturating_sub(1);
            if entry.connections == 0 {
                entry.gone_since = Some(now);
            }
        }
    }

    /// An agent left the Field: its attachments end.
    pub(super) fn forget(&mut self, agent: AgentNo) {
        for agents in self.attached.values_mut() {
            agents.retain(|&attached| attached != agent);
        }
        let entry = self.entry(agent);
        entry.connections = 0;
        entry.gone_since = None;
    }

    /// The process, or the state, is new: whoever lives by connections and has none gets the full grace time.
    /// Attachments of agents that the log does not know as active were made by entries that were lost.
    pub fn resume(&mut self, world: &World, now: Timestamp) {
        self.agents.truncate(world.agents.len());
        let is_active = |agent: &AgentNo| world.agents.get(*agent as usize).is_some_and(|a| a.is_active());
        for agents in self.attached.values_mut() {
            agents.retain(is_active);
        }
        for (no, record) in (0..).zip(&world.agents) {
            let entry = self.entry(no);
            if !record.is_active() {
                entry.connections = 0;
                entry.gone_since = None;
            } else if record.holder && entry.connections == 0 && entry.gone_since.is_none() {
                entry.gone_since = Some(now);
            }
        }
    }

    /// The agents whose grace time is over.
    pub(super) fn overdue(&self, now: Timestamp, grace_ms: u64) -> impl Iterator<Item = AgentNo> {
        (0..).zip(&self.agents).filter_map(move |(no, entry)| {
            let gone = entry.gone_since?;
            (now.0.saturating_sub(gone.0) >= grace_ms).then_some(no)
        })
    }

    /// Whether an agent lives by connections and has none.
    pub(super) fn is_gone(&self, agent: AgentNo) -> bool {
        self.of(agent).gone_since.is_some()
    }
}
