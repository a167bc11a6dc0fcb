//! The one predicate of who may see which unit, for ATTUNE, DETECT, REPLAY, GETs and pushes alike.

use super::policy::Policy;
use super::state::{AgentNo, Slot, UnitNo, World};
use crate::protocol::{Mode, UnitId, UnitStatus};

/// Whether `asker` (nobody in particular: `None`) may see a unit. Drafts are their author's alone, discarded
/// ones for good (sections 3 and 12); the policy can open drafts, but not discarded ones, to all.
pub fn may_see(slot: &Slot, asker: Option<AgentNo>, policy: &Policy) -> bool {
    slot.mode == Mode::Committed
        || asker == Some(slot.author)
        || (policy.shared_drafts && slot.status == UnitStatus::Draft)
}

impl World {
    /// The unit that a client's text names, if there is one and `asker` may see it.
    pub(super) fn find_visible(&self, id: &str, asker: Option<AgentNo>, policy: &Policy) -> Option<UnitNo> {
        let no = self.find(id.parse::<UnitId>().ok()?)?;
        may_see(self.slot(no), asker, policy).then_some(no)
    }
}
