//! What a COMPACT is to do, worked out beside the actor from a view: which units match, how they are grouped, what
//! their syntheses say.

use std::sync::Arc;

use rayon::prelude::*;
use tokio::sync::oneshot;

use super::actor::Call;
use super::answer::Answer;
use super::index::SharedIndex;
use super::reads::{Begun, Reads};
use crate::field::{Message, Plan, Preparation, UnitNo, World, compose, grouped};
use crate::protocol::{Compacted, Refusal};
use crate::relevance::Condenser;

/// A COMPACT on its way to its plan.
#[derive(Debug)]
pub(super) struct Planning {
    pub preparation: Preparation,
    pub message: Message,
    /// The connection that it came over.
    pub connection: Option<u64>,
    pub world: World,
    pub index: Arc<SharedIndex>,
    /// Counts it among the reads until it is worked out.
    pub begun: Begun,
}

/// Syntheses that one thread writes before it takes up others.
const STRIDE: usize = 16;

impl Reads {
    /// Works out a plan and takes the message back to the actor, which decides it with that. An actor that is gone drops
    /// both, and the door says so.
    pub(super) fn prepare(&self, planning: Planning, to: oneshot::Sender<Answer>) {
        let Planning { preparation, mut message, connection, world, index, begun } = planning;
        message.plan = Some(Arc::new(plan(&preparation, &world, &index)));
        // The actor must not wait for this thread to let go of what the view shares with its state.
        drop((world, begun));
        if let Some(actor) = self.actor() {
            let _ = actor.blocking_send(Call::Planned { message: Box::new(message), connection, to });
        }
    }
}

fn plan(preparation: &Preparation, world: &World, index: &SharedIndex) -> Plan {
    let units = preparation.units(world);
    let groups = groups(preparation, world, index, &units);
    let syntheses = index.on_crew(|| {
        let groups = groups.into_par_iter().with_min_len(STRIDE);
        groups.map_init(Condenser::default, |condenser, group| compose(world, condenser, group)).collect()
    });
    preparation.plan(world, units, syntheses)
}

fn groups(
    preparation: &Preparation,
    world: &World,
    index: &SharedIndex,
    units: &[UnitNo],
) -> Vec<Vec<UnitNo>> {
    if !preparation.summarizes(units.len()) {
        return Vec::new();
    }
    grouped(world, units, &index.directions(world, units))
}

/// What a COMPACT would do.
pub(super) fn preview(
    preparation: &Preparation,
    world: &World,
    index: &SharedIndex,
) -> Result<Compacted, Refusal> {
    let units = preparation.units(world);
    let groups = groups(preparation, world, index, &units);
    preparation.preview(world, &units, groups.len())
}
