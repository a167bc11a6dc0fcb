//! What is decided on its way to the disk: batches, commits that fail, the state read back, the end.

use std::sync::Arc;

use super::{Actor, InFlight, Mode};
use crate::field::Snapshot;
use crate::hub::restore::Restored;
use crate::hub::waiting::{storage_refusal, unreadable_refusal};
use crate::hub::writer::{Done, Job};
use crate::limits::RESERVE_EPOCHS;
use crate::log::LogError;
use crate::protocol::Timestamp;

impl Actor {
    /// Hands the log thread the next batch, when it is free and there is one.
    pub(super) fn send_batch(&mut self) {
        if self.log_busy || !matches!(self.mode, Mode::Open) {
            return;
        }
        // Nothing waits to show more than the clock, so a mark above it serves everything that waits.
        let low = match self.stopping {
            None => self.state.clock + RESERVE_EPOCHS / 2 > self.reserved,
            Some(_) => self.waiting.len() > 0 && self.state.clock > self.reserved,
        };
        let reserve = low.then(|| self.state.clock + RESERVE_EPOCHS);
        if self.gathered.is_empty() && reserve.is_none() {
            return;
        }
        let gathered = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        let entries = gathered.iter().map(|(entry, _)| Arc::clone(entry)).collect();
        let last = self.state.world.last_epoch;
        let world = self.state.world.clone();
        let due = self.parts.snapshots.is_due(&world);
        let snapshot = due.then(|| Snapshot::of(&self.state));
        let shelved = std::mem::take(&mut self.shelved);
        self.in_flight = Some(InFlight { last, reserve, world, entries: gathered, shelved, snapshot });
        self.ask_log(Job::Append { entries, reserve });
    }

    pub(super) fn ask_log(&mut self, job: Job) {
        // The channel holds one job and none is in flight, so this never waits; a dead thread shows itself
        // as the end of its answers.
        self.log_busy = true;
        let _ = self.parts.jobs.try_send(job);
    }

    pub(super) fn log_answered(&mut self, done: Done) {
        self.log_busy = false;
        match done {
            Done::Appended { result: Ok(()), entries, took } => {
                self.parts.metrics.commit(&self.parts.frame.name, entries, took.as_secs_f64());
                if let Some(batch) = self.in_flight.take() {
                    self.durable = batch.last;
                    self.reserved = self.reserved.max(batch.reserve.unwrap_or(0)).max(batch.last);
                    self.untold.extend(batch.entries);
                    if let Some(snapshot) = batch.snapshot {
                        self.parts.snapshots.keep(snapshot);
                    }
                    if self.state.world.last_epoch == batch.last {
                        // The same, but for texts that have left it since the batch was sent.
                        self.shelved.extend(batch.shelved);
                        self.publish_state();
                    } else {
                        self.durable_world = batch.world;
                        self.publish(batch.shelved);
                    }
                }
            }
            Done::Appended { result: Err(error), .. } => self.commit_failed(&error),
            Done::Reserved(Ok(mark)) => self.reserved = self.reserved.max(mark),
            Done::Reserved(Err(error)) => tracing::debug!(%error, "no epochs could be reserved"),
            Done::Probed(Ok(())) if matches!(self.mode, Mode::ReadOnly(_)) => {
                tracing::info!(field = %self.parts.frame.name, "the log can be written again; writes are served");
                self.mode = Mode::Open;
            }
            Done::Probed(Err(error)) => tracing::debug!(%error, "the log still cannot be written"),
            Done::Probed(Ok(())) | Done::Released(_) => {}
            Done::Reloaded(outcome) => self.reloaded(*outcome),
        }
    }

    fn commit_failed(&mut self, error: &LogError) {
        let full = matches!(error, LogError::Full(_));
        tracing::error!(field = %self.parts.frame.name, %error, "a commit failed; the state is read back from the log");
        let refusal = storage_refusal(full, &error.to_string());
        // What waits is answered when it is known what the log holds: a failed commit may have taken effect.
        self.gathered.clear();
        self.gathered_bytes = 0;
        if let Some(batch) = self.in_flight.take() {
            self.shelved.extend(batch.shelved);
        }
        self.mode = Mode::Reloading(refusal);
        self.ask_log(Job::Reload);
    }

    fn reloaded(&mut self, outcome: Result<Restored, LogError>) {
        let (Mode::Reloading(refusal) | Mode::Broken(refusal) | Mode::ReadOnly(refusal)) = self.mode.clone()
        else {
            return;
        };
        match outcome {
            Ok(Restored { mut state, reserved, from_snapshot: _, purges: _ }) => {
                // The process goes on: it knows who is connected.
                std::mem::swap(&mut state.presence, &mut self.state.presence);
                state.presence.resume(&state.world, Timestamp::now());
                self.durable = state.world.last_epoch;
                self.reserved = reserved;
                self.durable_world = state.world.clone();
                let lost = std::mem::replace(&mut self.state, state);
                // Letting go of a large state takes its time.
                let shelved = std::mem::take(&mut self.shelved);
                tokio::task::spawn_blocking(move || drop((lost, shelved)));
                // What turned out to be durable is answered as it was decided. Then the clock is where it was
                // last shown, and the reads that still wait are stamped anew.
                self.release_ready();
                self.state.clock = self.state.clock.max(self.shown);
                self.waiting.face(&mut self.state, self.reserved, &refusal, self.shown);
                self.mode = Mode::ReadOnly(refusal);
                self.publish(Vec::new());
            }
            Err(error) => {
                tracing::error!(field = %self.parts.frame.name, %error, "the log cannot be read back");
                let refusal = unreadable_refusal(&error.to_string());
                self.waiting.refuse_all(&refusal, self.shown);
                self.mode = Mode::Broken(refusal);
            }
        }
    }

    pub(super) fn log_thread_died(&mut self) {
        tracing::error!(field = %self.parts.frame.name, "the log thread ended; this Field is closed");
        let refusal = unreadable_refusal("its thread ended");
        self.waiting.refuse_all(&refusal, self.shown);
        self.log_busy = true;
    }

    /// Gives back the reserved epochs that nobody was shown, closes the log, tells who asked for the end.
    pub(super) async fn release_log(mut self) {
        if !self.log_busy && matches!(self.mode, Mode::Open) {
            self.ask_log(Job::Release(self.state.clock));
            if let Some(Done::Released(Err(error))) = self.parts.done.recv().await {
                tracing::warn!(field = %self.parts.frame.name, %error, "the log was not closed cleanly; it will recover");
            }
            let Self { parts, state, .. } = &mut self;
            parts.snapshots.finish(|| Snapshot::of(state), &state.world);
        }
        if let Some(stopping) = self.stopping.take() {
            let _ = stopping.send(());
        }
    }
}
