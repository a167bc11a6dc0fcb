//! What the GET endpoints see: the newest durable state.

use std::sync::Arc;

use imbl::Vector;
use serde_json::{Value, json};

use super::index::SharedIndex;
use super::reads::unreadable;
use super::shelf::Shelf;
use crate::field::{Policy, UnitFilter, Wanting, Whereabouts, World};
use crate::log::LogError;
use crate::protocol::{ConflictStatus, Refusal};

/// What all views of one Field share.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub name: Arc<str>,
    pub policy: Arc<Policy>,
    pub index: Arc<SharedIndex>,
    /// Where texts are that memory does not hold.
    pub shelf: Arc<Shelf>,
}

impl Frame {
    /// A view of this Field.
    pub fn view(&self, world: &World, whereabouts: Vector<Whereabouts>, clock: u64) -> Arc<View> {
        Arc::new(View { frame: self.clone(), world: world.clone(), whereabouts, clock })
    }
}

/// An immutable durable state of one Field.
#[derive(Debug)]
pub struct View {
    frame: Frame,
    world: World,
    whereabouts: Vector<Whereabouts>,
    clock: u64,
}

impl View {
    /// The state itself.
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// What `ask` comes to here, with texts from the log where memory does not hold them.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub(super) fn ask<T>(&self, ask: impl Fn(&World) -> Result<T, Wanting>) -> Result<T, LogError> {
        self.frame.shelf.ask(&self.world, ask)
    }

    /// Brings the index up to this state, unless the hub winds down; `whole` if it is all that the log holds.
    pub(super) fn catch_up_index(&self, whole: bool) {
        self.frame.index.follow_view(&self.world, whole);
    }

    /// Embeds some units that are still without a vector; whether there may be more.
    pub(super) fn embed_missing(&self) -> bool {
        self.frame.index.embed_missing(&self.world)
    }

    /// What the state itself tells for `GET /v1/field/status`: name, epoch, level, counts.
    pub fn status(&self) -> Value {
        let mut status = self.world.status();
        status.insert("name".into(), json!(&*self.frame.name));
        status.insert("epoch".into(), json!(self.clock));
        status.insert("level".into(), json!(self.frame.policy.level));
        Value::Object(status)
    }

    /// `GET /v1/agents`.
    pub fn agents(&self) -> Value {
        self.world.agents_shown(&self.whereabouts)
    }

    /// `GET /v1/conflicts`.
    pub fn conflicts(&self, status: &[ConflictStatus]) -> Value {
        self.world.conflicts_shown(status)
    }

    /// `GET /v1/units/{id}`; `None` when there is none that `asker` may see. May read the log.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it cannot be read.
    pub fn unit(&self, id: &str, asker: Option<&str>) -> Result<Option<Value>, Refusal> {
        let show = |world: &World| world.unit_shown(id, asker, &self.frame.policy);
        self.ask(show).map_err(|error| unreadable(&error))
    }

    /// `GET /v1/units`. May read the log.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it cannot be read.
    pub fn units(&self, filter: &UnitFilter, asker: Option<&str>) -> Result<Value, Refusal> {
        let show = |world: &World| world.units_shown(filter, asker, &self.frame.policy);
        self.ask(show).map_err(|error| unreadable(&error))
    }
}
