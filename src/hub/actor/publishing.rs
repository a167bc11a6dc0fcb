//! The durable state as others see it, and the texts that leave it.

use std::sync::Arc;

use super::{Actor, Mode};
use crate::protocol::Unit;

/// Archived units whose texts are let go of between two turns of the actor: some tens of microseconds.
const SHELVED_A_TURN: usize = 128;
/// Where nothing else changes, a view is published after so many.
const SHELVED_A_VIEW: usize = 8 * 1_024;

impl Actor {
    /// Publishes the state as it is, of which everything is durable.
    pub(super) fn publish_state(&mut self) {
        self.durable_world = self.state.world.clone();
        let shelved = std::mem::take(&mut self.shelved);
        self.publish(shelved);
    }

    /// Publishes the durable state, and lets go of units whose texts have left it.
    pub(super) fn publish(&mut self, shelved: Vec<Arc<Unit>>) {
        let whereabouts = self.state.presence.all();
        let view = self.parts.frame.view(&self.durable_world, whereabouts, self.shown);
        let before = self.parts.published.view.swap(view);
        if before.world().purges.len() != self.durable_world.purges.len() || !shelved.is_empty() {
            // Nobody else may hold the units that were purged, or the texts that are in the log now: letting go of a hundred
            // thousand takes its time.
            self.parts.reads.let_go((before, shelved));
        }
        // A signal that is already there will do.
        let _ = self.parts.indexer.try_send(());
        if !self.durable_world.uncompared.is_empty() {
            let _ = self.parts.detector.try_send(());
        }
    }

    /// Gives what has become durable to whoever follows; their replies are out by now.
    pub(super) fn tell(&mut self) {
        let fresh = std::mem::take(&mut self.untold);
        if !fresh.is_empty() || self.durable != self.parts.feed.head() {
            self.parts.feed.publish(fresh, self.durable);
        }
    }

    pub(super) fn has_to_shelve(&self) -> bool {
        matches!(self.mode, Mode::Open) && self.state.shelving.is_due(self.durable)
    }

    /// Lets go of some texts of archived units, which the log holds. Whoever drops the last hold on one has work, so they
    /// are held until no view of ours does, and let go of elsewhere.
    pub(super) fn shelve(&mut self) {
        if !self.has_to_shelve() {
            return;
        }
        self.shelved.extend(self.state.shelve(SHELVED_A_TURN, self.durable));
        let enough = self.shelved.len() >= SHELVED_A_VIEW || !self.has_to_shelve();
        if enough && self.state.world.last_epoch == self.durable {
            // Nothing may come for a long time: what is published lets go, too. Where a batch is under way, that is done when it
            // has ended.
            self.publish_state();
        }
    }
}
