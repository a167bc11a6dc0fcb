//! Units and conflicts: RECORD, COMMIT, DISCARD and RETRACT, and what their links do (sections 3, 6 and 7).

use std::collections::BTreeMap;

use super::{Conflict, Link, Model, Outcome, Unit};
use crate::protocol::ErrorCode;

/// Section 3: what stands, in question or not, found by its meaning or by its words alone.
const LIVE: [&str; 3] = ["active", "contested", "pending_enrichment"];

#[derive(Debug, Default)]
struct Effects {
    replaced: Vec<usize>,
    contested: Vec<usize>,
}

impl Model {
    fn sees(&self, agent: usize, unit: usize) -> bool {
        self.units.get(unit).is_some_and(|unit| !unit.purged && (!unit.private || unit.author == agent))
    }

    fn latest(&self, mut unit: usize) -> usize {
        while let Some(next) = self.units[unit].next {
            unit = next;
        }
        unit
    }

    pub(super) fn is_live(&self, unit: usize) -> bool {
        LIVE.contains(&self.units[unit].status) && !self.units[unit].purged
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
            waits: self.outage && !draft,
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
    pub(super) fn leaves(&mut self, unit: usize, status: &'static str) {
        self.units[unit].status = status;
        for conflict in self.conflicts.iter_mut().filter(|conflict| conflict.is_open()) {
            if conflict.older == unit {
                conflict.end(Some(conflict.newer));
            } else if conflict.newer == unit {
                conflict.end(Some(conflict.older));
            }
        }
    }

    /// Contested while in an unresolved conflict; else pending while the embedding is missing, and then active.
    pub(super) fn settle_statuses(&mut self) {
        let open = |no: usize| {
            self.conflicts
                .iter()
                .any(|conflict| conflict.is_open() && (conflict.older == no || conflict.newer == no))
        };
        let contested: Vec<_> = (0..self.units.len()).map(open).collect();
        for (unit, contested) in self.units.iter_mut().zip(contested) {
            if LIVE.contains(&unit.status) {
                unit.status = match (contested, unit.waits) {
                    (true, _) => "contested",
                    (false, true) => "pending_enrichment",
                    (false, false) => "active",
                };
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
        (self.units[unit].status, self.units[unit].waits) = ("active", self.outage);
        (self.units[unit].private, self.units[unit].epoch) = (false, self.clock + 1);
        self.take_effect(unit, &effects);
        Ok(())
    }

    /// Whether a unit is one that still waits for its embedding.
    pub fn is_waiting(&self, unit: usize) -> bool {
        self.units.get(unit).is_some_and(|known| known.waits) && self.is_live(unit)
    }

    /// The embeddings of these units were made at last; of how many that tells anything.
    pub fn enriched(&mut self, units: &[usize]) -> usize {
        let waiting: Vec<_> = units.iter().copied().filter(|unit| self.is_waiting(*unit)).collect();
        for unit in &waiting {
            self.units[*unit].waits = false;
        }
        self.settle_statuses();
        self.clock += u64::from(!waiting.is_empty());
        waiting.len()
    }

    /// What an ATTUNE without further conditions may bring, by number.
    pub fn attuned(&self, agent: usize, own: bool, archived: bool) -> Result<Vec<usize>, ErrorCode> {
        self.active(agent)?;
        let brings = |no: &usize| {
            let unit = &self.units[*no];
            self.is_live(*no) && (own || unit.author != agent) && (archived || !unit.archived)
        };
        Ok((0..self.units.len()).filter(brings).collect())
    }
}
