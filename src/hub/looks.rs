//! Looks: what an operation would answer, without being one (Extension). For people who watch: nothing is stamped, noted
//! in the log or remembered, and no agent needs to be registered for it.
//!
//! A look shows what an observer may see: everything that is committed, and no drafts beyond those that the
//! configuration opens to all, also through the eyes of an agent that has some.

use std::sync::Arc;

use serde_json::json;

use super::answer::Answer;
use super::field::Field;
use super::reads::Look;
use crate::field::{AgentNo, Message};
use crate::protocol::{ErrorCode, Operation, Refusal, Request};

impl Field {
    /// What a message's ATTUNE or REPLAY would be answered now. `eyes` names a known agent: its interests count, and its
    /// own units are left out, as in an ATTUNE of its own. The answer's epoch is the Field's clock, which stands still.
    ///
    /// # Errors
    /// In the answer: what is wrong with the payload; `AGENT_NOT_REGISTERED` for eyes of nobody; `UNSUPPORTED_OPERATION`
    /// for what is no read; `OVERLOADED`.
    pub async fn look(&self, mut message: Message, eyes: Option<&str>) -> Answer {
        if let Some(enricher) = self.enricher() {
            let view = self.view();
            enricher.embed(&mut message, view.world()).await;
        }
        let view = self.view();
        let epoch = self.clock();
        let known = eyes.map(|eyes| view.world().agent_no(eyes).ok_or_else(|| unknown(eyes))).transpose();
        let outcome = match known.and_then(|asker| look(message, asker, epoch)) {
            Ok(look) => {
                let index = Arc::clone(self.index());
                self.reads().look(look, view.world().clone(), index).await.unwrap_or_else(|| Err(busy()))
            }
            Err(refusal) => Err(refusal),
        };
        Answer { epoch, outcome }
    }
}

fn look(message: Message, asker: Option<AgentNo>, epoch: u64) -> Result<Look, Refusal> {
    let Message { operation, request, embedded, .. } = message;
    match request? {
        Request::Attune(mut request) => {
            if request.scope.as_of_epoch.is_some() {
                return Err(no_past());
            }
            request.scope.include_drafts = false;
            Ok(Look::Attune { asker, request, embedded, epoch })
        }
        Request::Replay(request) => Ok(Look::Replay(request)),
        _ => Err(no_look(operation)),
    }
}

fn no_look(operation: Operation) -> Refusal {
    Refusal::new(
        ErrorCode::UnsupportedOperation,
        format!("{operation} cannot be looked at."),
        "Look at attune or replay; conflicts and units have GET endpoints.",
    )
}

fn no_past() -> Refusal {
    Refusal::invalid(
        "scope.as_of_epoch",
        "A look shows the present.",
        "Leave scope.as_of_epoch out, or send an ATTUNE, which can show the past.",
    )
}

fn unknown(eyes: &str) -> Refusal {
    Refusal::new(
        ErrorCode::AgentNotRegistered,
        format!("The agent {eyes:?} was never registered here."),
        "Leave Akashik-Agent out to look as nobody in particular, or name an agent that GET /v1/agents lists.",
    )
    .with("agent_id", json!(eyes))
}

fn busy() -> Refusal {
    Refusal::new(
        ErrorCode::Overloaded,
        "More reads are under way than this Field computes at a time.",
        "Ask again after the time given.",
    )
    .with("retry_after_ms", json!(1_000))
}
