//! What a COMPACT is to do, worked out beside the actor from a view: which units match, how they are grouped, what
//! their syntheses say. Where a language model outside is to write those, it is waited for here too, on no thread.

use std::sync::Arc;

use rayon::prelude::*;
use tokio::sync::oneshot;

use super::actor::Call;
use super::answer::Answer;
use super::index::SharedIndex;
use super::reads::{Begun, Reads};
use super::scribe::{Written, wanted};
use crate::field::{Message, Plan, Preparation, UnitNo, World, compose, grouped};
use crate::limits::SUMMARY_ASKED_ALL_MAX_BYTES;
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
        let mut plan = plan(&preparation, &world, &index);
        if let Some(before) = message.plan.take() {
            plan.take_over(&before);
        }
        let scribe = self.scribe().filter(|_| plan.failure().is_none());
        let (wanted, too_much) = scribe.map(|_| wanted(&plan, &world)).unwrap_or_default();
        // The actor must not wait for this thread to let go of what the view shares with its state.
        drop(world);
        let Some(actor) = self.actor() else { return };
        match scribe.filter(|_| !wanted.is_empty()) {
            None => {
                drop(begun);
                message.plan = Some(Arc::new(plan));
                let _ = actor.blocking_send(Call::Planned { message: Box::new(message), connection, to });
            }
            Some(scribe) => {
                let asked = Arc::clone(scribe);
                scribe.spawn(async move {
                    // An actor that ends meanwhile has no use for it any more.
                    let written = tokio::select! {
                        written = asked.write(wanted) => written,
                        () = actor.closed() => return,
                    };
                    drop(begun);
                    enter(&mut plan, written, too_much, asked.model());
                    message.plan = Some(Arc::new(plan));
                    let _ = actor.send(Call::Planned { message: Box::new(message), connection, to }).await;
                });
            }
        }
    }
}

/// Puts into a plan what a language model has written.
fn enter(plan: &mut Plan, written: Written, too_much: bool, model: &str) {
    let Written { texts, failed } = written;
    let beyond = || {
        format!(
            "the originals have more than the {SUMMARY_ASKED_ALL_MAX_BYTES} bytes that one COMPACT sends out"
        )
    };
    if let Some(why) = failed.or_else(|| too_much.then(beyond)) {
        tracing::warn!(%why, written = texts.len(), "a language model outside did not write all syntheses");
        plan.fail(why.into());
    }
    for (at, text) in texts {
        plan.write(at, text.into(), model);
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
