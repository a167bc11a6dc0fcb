//! COMPACT: sections 7 and 12.

use super::{Model, PutAway, Unit};
use crate::field::tests::random::AGENTS;
use crate::protocol::ErrorCode;

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
                && (unit.author < AGENTS.len() || how != PutAway::Summarize)
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
            // The Field's own text is embedded behind, like what the log tells at a start.
            waits: false,
            epoch: self.clock,
            archived: false,
            purged: false,
            confidence: (score, 0),
        });
    }
}
