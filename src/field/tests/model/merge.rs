//! MERGE: section 6's table, section 7's strategies.

use super::{How, Link, Model, QUORUM, Unit};
use crate::protocol::ErrorCode;

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
            waits: self.outage,
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
