//! What a COMPACT is to do, worked out beside the actor from a view: which units match, how they are grouped, what
//! their syntheses say. Where a language model outside is to write those, it is waited for here too, on no thread, without a
//! view of the Field and without a place among the reads: one COMPACT of a Field at a time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rayon::prelude::*;
use serde_json::json;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use super::actor::{Call, Published};
use super::answer::Answer;
use super::index::SharedIndex;
use super::reads::{Begun, Reads};
use super::scribe::{Errand, Scribe, Written, notes};
use crate::field::{Message, Plan, Preparation, UnitNo, World, compose, grouped};
use crate::protocol::{Compacted, ErrorCode, Refusal};
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
    /// Whether a language model outside may be asked: what it is told leaves the house, so it is for what can be kept.
    pub may_ask: bool,
    /// What it may ask of one, where an earlier plan of it began to.
    pub errand: Option<Arc<Errand>>,
    /// Counts it among the reads until it is worked out.
    pub begun: Begun,
}

/// Syntheses that one thread writes before it takes up others.
const STRIDE: usize = 16;
/// Who finds the model taken is not told to come again sooner than that.
const RETRY_AT_LEAST: Duration = Duration::from_millis(500);

/// A language model outside as one Field asks it.
pub(super) struct SummaryDesk {
    scribe: Arc<Scribe>,
    published: Arc<Published>,
    /// The errand that is under way, for as long as its COMPACT holds it.
    errand: Mutex<Weak<Errand>>,
}

impl SummaryDesk {
    /// A model, and where the newest state is that it may be told of.
    pub fn new(scribe: Arc<Scribe>, published: Arc<Published>) -> Self {
        Self { scribe, published, errand: Mutex::default() }
    }

    /// Begins the errand of a COMPACT.
    ///
    /// # Errors
    /// `OVERLOADED` while another one is under way: were both written, each would summarize what the other archives.
    fn begin(&self) -> Result<Arc<Errand>, Refusal> {
        let mut current = self.errand.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = current.upgrade() {
            let left = other.left().unwrap_or(self.scribe.total()).max(RETRY_AT_LEAST);
            return Err(Refusal::new(
                ErrorCode::Overloaded,
                "Another COMPACT of this Field waits for the language model that writes its syntheses.",
                "Repeat the message after the time given: the model is asked no longer than that. To archive or purge needs no waiting.",
            )
            .with("retry_after_ms", json!(left.as_millis() as u64)));
        }
        let errand = Arc::new(Errand::default());
        *current = Arc::downgrade(&errand);
        Ok(errand)
    }

    /// What is sent for a synthesis, as its originals stand now; nothing where some of them do not any more.
    fn notes(&self, plan: &Plan, at: usize) -> Option<String> {
        let view = self.published.view.load();
        plan.quotes(view.world(), at).map(|quotes| notes(&quotes))
    }
}

impl Reads {
    /// Works out a plan and takes the message back to the actor, which decides it with that. An actor that is gone drops
    /// both, and the door says so.
    pub(super) fn prepare(&self, planning: Planning, to: oneshot::Sender<Answer>) {
        let Planning { preparation, mut message, connection, world, index, may_ask, errand, begun } =
            planning;
        let units = preparation.units(&world);
        // Where nothing matches, or nothing can be kept, nobody is asked, or waited for.
        let desk = self.desk().filter(|_| may_ask && preparation.summarizes(units.len()));
        let errand = match (desk, errand) {
            (Some(desk), None) => match desk.begin() {
                Ok(errand) => Some(errand),
                Err(refusal) => {
                    let epoch = desk.published.clock.load(Ordering::Acquire);
                    let _ = to.send(Answer { epoch, outcome: Err(refusal) });
                    return;
                }
            },
            (_, errand) => errand,
        };
        let mut plan = plan(&preparation, &world, &index, units);
        if let Some(before) = message.plan.take() {
            plan.take_over(&before);
        }
        // The actor must not wait for this thread to let go of what the view shares with its state.
        drop(world);
        let Some(actor) = self.actor() else { return };
        let lacks = plan.failure().is_none() && plan.unwritten().next().is_some();
        match (desk.filter(|_| lacks), errand) {
            (Some(desk), Some(errand)) => {
                let asked = Arc::clone(desk);
                let planned = Planned { plan, message, connection, to, errand };
                // There is one such COMPACT, so it needs no place among the reads while it waits.
                drop(begun);
                desk.scribe.spawn(async move { planned.written(&asked, &actor).await });
            }
            (_, errand) => {
                drop(begun);
                message.plan = Some(Arc::new(plan));
                let _ =
                    actor.blocking_send(Call::Planned { message: Box::new(message), connection, to, errand });
            }
        }
    }
}

/// A COMPACT that is planned but for what a language model is to write.
struct Planned {
    plan: Plan,
    message: Message,
    connection: Option<u64>,
    to: oneshot::Sender<Answer>,
    errand: Arc<Errand>,
}

impl Planned {
    /// Has it written, and takes it back to the actor.
    async fn written(self, desk: &SummaryDesk, actor: &Sender<Call>) {
        let Self { mut plan, mut message, connection, to, errand } = self;
        let wanted = plan.unwritten().collect();
        let written = tokio::select! {
            written = desk.scribe.write(wanted, &errand, |at| desk.notes(&plan, at)) => written,
            // An actor that ends meanwhile has no use for it any more.
            () = actor.closed() => return,
        };
        enter(&mut plan, written, desk.scribe.model());
        message.plan = Some(Arc::new(plan));
        let (message, errand) = (Box::new(message), Some(errand));
        let _ = actor.send(Call::Planned { message, connection, to, errand }).await;
    }
}

/// Puts into a plan what a language model has written.
fn enter(plan: &mut Plan, written: Written, model: &str) {
    let Written { texts, passed_over, failed } = written;
    if let Some(why) = failed {
        tracing::warn!(%why, written = texts.len(), "a language model outside did not write all syntheses");
        plan.fail(why.into());
    }
    passed_over.into_iter().for_each(|at| plan.pass_over(at));
    for (at, text) in texts {
        plan.write(at, text.into(), model);
    }
}

fn plan(preparation: &Preparation, world: &World, index: &SharedIndex, units: Vec<UnitNo>) -> Plan {
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
