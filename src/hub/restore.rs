//! Recovery: the state rebuilt from the log, by applying and nothing else.

use std::ops::ControlFlow;

use crate::field::{Entry, State, World, apply};
use crate::log::{LogError, LogReader};
use crate::protocol::Timestamp;

/// A state as the log tells it, and how far the clock was reserved.
#[derive(Debug)]
pub(super) struct Restored {
    pub state: State,
    pub reserved: u64,
}

impl Restored {
    /// The state with which a new process begins: its clock starts at the reserved mark, so that no epoch
    /// that anybody was ever shown is handed out again (section 2, restart), and whoever lives by connections
    /// has the full grace time to return.
    pub fn reborn(mut self, now: Timestamp) -> Self {
        self.state.clock = self.state.clock.max(self.reserved);
        self.state.presence.resume(&self.state.world, now);
        self
    }
}

/// How many entries are applied between two calls of `progress`.
const STRIDE: u64 = 4_096;

/// Reads the whole log. `progress` is shown the growing world now and then: units can be indexed while the rest
/// is read.
///
/// # Errors
/// A log that cannot be read, or an entry that this version did not write.
pub(super) fn restore(reader: &dyn LogReader, progress: impl Fn(&World)) -> Result<Restored, LogError> {
    let mut state = State::default();
    let mut fault = None;
    reader.scan(0, &mut |epoch, body| match Entry::from_json(body) {
        Ok(mut entry) => {
            entry.intern(&state.world);
            apply(&mut state, &entry);
            if state.world.entries.is_multiple_of(STRIDE) {
                progress(&state.world);
            }
            ControlFlow::Continue(())
        }
        Err(error) => {
            fault = Some(LogError::Corrupt { epoch: Some(epoch), what: error.to_string() });
            ControlFlow::Break(())
        }
    })?;
    if let Some(fault) = fault {
        return Err(fault);
    }
    Ok(Restored { state, reserved: reader.reserved()? })
}
