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
        self.units.get(unit).is_some_and(|unit| !unit.purged && (!unit.private || unit.author == agent))
    }

    fn latest(&self, mut unit: usize) -> usize {
        while let Some(next) = self.units[unit].next {
            unit = next;
        }
        unit
    }

    fn is_live(&self, unit: usize) -> bool {
        matches!(self.units[unit].status, "active" | "contested") && !self.units[unit].purged
    }

    /// The units that links of a kind take effect on, or why they cannot.
    fn effects(
        &self,
        agent: usize,
        links: &[(Link, usize)],
        takes_effect: bool,
    ) -> Result<Effects, ErrorCode> {
        let mut effects = Effects::default();
        for &(link, target) in links.iter().filter(|(link, _)| link.takes_effect()) {
            if !self.sees(agent, target) {
                return Err(ErrorCode::UnitNotFound);
            }
            if !takes_effect {
                continue;
            }
            let target = self.latest(target);
            if self.units[target].purged {
                return Err(ErrorCode::UnitNotFound);
            }
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

    fn known(&self, links: &[(Link, usize)]) -> Vec<(Link, usize)> {
        links.iter().copied().filter(|(_, target)| *target < self.units.len()).collect()
    }

    pub fn record(
        &mut self,
        agent: usize,
        draft: bool,
        links: &[(Link, usize)],
        confidence: (u8, u8),
    ) -> Outcome {
        self.active(agent)?;
        let effects = self.effects(agent, links, !draft)?;
        let status = if draft { "draft" } else { "active" };
        let id = format!("mem-{}", self.clock + 1);
        let links = self.known(links);
        let epoch = self.clock + 1;
        let unit = Unit {
            id,
            status,
            author: agent,
            private: draft,
            next: None,
            links,
            epoch,
            confidence,
            archived: false,
            purged: false,
        };
        self.units.push(unit);
        self.take_effect(self.units.len() - 1, &effects);
        Ok(())
    }

    fn take_effect(&mut self, unit: usize, effects: &Effects) {
        for &older in &effects.contested {
            let ballots = BTreeMap::new();
            self.conflicts.push(Conflict { older, newer: unit, status: "detected", winner: None, ballots });
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
        for conflict in self.conflicts.iter_mut().filter(|conflict| conflict.is_open()) {
            if conflict.older == unit {
                conflict.end(Some(conflict.newer));
            } else if conflict.newer == unit {
                conflict.end(Some(conflict.older));
            }
        }
    }

    /// Contested while in an unresolved conflict, active otherwise.
    fn settle_statuses(&mut self) {
        let open = |no: usize| {
            self.conflicts
                .iter()
                .any(|conflict| conflict.is_open() && (conflict.older == no || conflict.newer == no))
        };
        let contested: Vec<_> = (0..self.units.len()).map(open).collect();
        for (unit, contested) in self.units.iter_mut().zip(contested) {
            if matches!(unit.status, "active" | "contested") {
                unit.status = if contested { "contested" } else { "active" };
                unit.archived &= !contested;
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
        self.units[unit].links = self.known(links);
        self.units[unit].status = "active";
        (self.units[unit].private, self.units[unit].epoch) = (false, self.clock + 1);
        self.take_effect(unit, &effects);
        Ok(())
    }
}

/// MERGE: section 6's table, section 7's strategies.
impl Model {
    /// The answer's status. `said`: whether there is a text for a synthesis.
    pub fn merge(
        &mut self,
        agent: usize,
        number: usize,
        how: How,
        winner: Option<usize>,
        said: bool,
    ) -> Result<&'static str, ErrorCode> {
        self.active(agent)?;
        let conflict = self.conflicts.get(number).ok_or(ErrorCode::ConflictNotFound)?;
        let pair = [conflict.older, conflict.newer];
        if pair.iter().any(|unit| self.units[*unit].purged) {
            return Err(ErrorCode::ConflictNotFound);
        }
        let allowed = match (conflict.status, how, winner) {
            ("detected", How::Human, winner) => winner.is_none(),
            ("detected", ..) => true,
            ("resolving", How::Vote, _) | ("resolving", How::Human, None) => true,
            ("escalated", How::Human, Some(_)) => true,
            _ => false,
        };
        if !allowed {
            return Err(ErrorCode::InvalidTransition);
        }
        let joins = how == How::Synthesis;
        if joins != said || (joins && winner.is_some()) || winner.is_some_and(|unit| !pair.contains(&unit)) {
            return Err(ErrorCode::MergeFailed);
        }
        match how {
            How::Synthesis => Ok(self.join(agent, number, pair)),
            How::Vote => self.vote(agent, number, winner),
            How::Human => Ok(self.finish(number, winner)),
            How::Authority => Ok(self.finish(number, None)),
            How::LastWrite | How::Confidence | How::Evidence => {
                let found = self.stronger(pair, how);
                if found.is_some() && winner.is_some() && found != winner {
                    return Err(ErrorCode::MergeFailed);
                }
                Ok(self.finish(number, found))
            }
        }
    }

    fn stronger(&self, [older, newer]: [usize; 2], how: How) -> Option<usize> {
        let weight = |unit: usize| match how {
            How::LastWrite => (usize::from(unit == newer), 0),
            How::Confidence => (usize::from(self.units[unit].confidence.0), 0),
            _ => {
                let supports = |source: &usize| {
                    *source != unit && self.units[*source].links.contains(&(Link::Supports, unit))
                };
                let live = (0..self.units.len()).filter(|source| self.is_live(*source));
                (live.filter(supports).count(), usize::from(self.units[unit].confidence.1))
            }
        };
        let (a, b) = (weight(older), weight(newer));
        if a == b { None } else { Some(if a > b { older } else { newer }) }
    }

    fn vote(
        &mut self,
        agent: usize,
        number: usize,
        winner: Option<usize>,
    ) -> Result<&'static str, ErrorCode> {
        let winner = winner.ok_or(ErrorCode::MergeFailed)?;
        let conflict = &mut self.conflicts[number];
        conflict.ballots.insert(agent, winner);
        conflict.status = "resolving";
        // An odd quorum: whoever has two of three has more than half.
        let votes = conflict.ballots.values().filter(|unit| **unit == winner).count();
        Ok(if votes * 2 > QUORUM { self.finish(number, Some(winner)) } else { "pending_vote" })
    }

    /// For the winner, or, without one, for a human to decide.
    fn finish(&mut self, number: usize, winner: Option<usize>) -> &'static str {
        let conflict = &mut self.conflicts[number];
        let Some(winner) = winner else {
            conflict.status = "escalated";
            return "escalated";
        };
        conflict.end(Some(winner));
        let loser = if winner == conflict.older { conflict.newer } else { conflict.older };
        self.gives_way(loser, winner);
        "resolved"
    }

    fn join(&mut self, agent: usize, number: usize, pair: [usize; 2]) -> &'static str {
        self.conflicts[number].end(None);
        let new = self.units.len();
        let score = pair.map(|unit| self.units[unit].confidence.0).into_iter().min().unwrap_or_default();
        self.units.push(Unit {
            id: format!("mem-{}", self.clock + 1),
            status: "active",
            author: agent,
            private: false,
            next: None,
            links: Vec::new(),
            epoch: self.clock + 1,
            archived: false,
            purged: false,
            confidence: (score, 0),
        });
        pair.into_iter().for_each(|unit| self.gives_way(unit, new));
        "resolved"
    }

    fn gives_way(&mut self, loser: usize, successor: usize) {
        self.units[loser].next = Some(successor);
        self.leaves(loser, "superseded");
        self.settle_statuses();
    }
}

#[derive(Debug, Default)]
struct Effects {
    replaced: Vec<usize>,
    contested: Vec<usize>,
}

/// COMPACT: sections 7 and 12.
impl Model {
    /// The units that it touches.
    pub fn compact(
        &mut self,
        agent: usize,
        how: PutAway,
        status: Option<&str>,
        max_age: Option<u64>,
    ) -> Result<Vec<usize>, ErrorCode> {
        self.active(agent)?;
        if how == PutAway::Purge && status.is_none() && max_age.is_none() {
            return Err(ErrorCode::InvalidMessage);
        }
        let epoch = self.clock + 1;
        let matches = |unit: &Unit| {
            !unit.purged
                && !["draft", "contested"].contains(&unit.status)
                && (!unit.private || (unit.author == agent && how != PutAway::Summarize))
                // The Field's own syntheses are left alone.
                && (unit.author < super::random::AGENTS.len() || how != PutAway::Summarize)
                && (!unit.archived || how == PutAway::Purge)
                && status.is_none_or(|status| status == unit.status)
                && max_age.is_none_or(|most| epoch - unit.epoch > most)
        };
        let touched: Vec<usize> = (0..self.units.len()).filter(|no| matches(&self.units[*no])).collect();
        for no in &touched {
            let unit = &mut self.units[*no];
            (unit.archived, unit.purged) = (how != PutAway::Purge, how == PutAway::Purge);
        }
        Ok(touched)
    }

    /// A synthesis by the Field itself, as it turned out.
    pub fn synthesis(&mut self, author: usize, id: String, score: u8) {
        self.units.push(Unit {
            id,
            status: "active",
            author,
            private: false,
            next: None,
            links: Vec::new(),
            epoch: self.clock,
            archived: false,
            purged: false,
            confidence: (score, 0),
        });
    }
}
