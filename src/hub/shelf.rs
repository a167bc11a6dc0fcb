//! Texts of archived units, read from the log for whoever asks: memory holds them no more.
//!
//! A unit's text stands in the entry at its slot's epoch. Many of them that lie close together are read in one go over
//! the log, others one by one. Nobody is given what is purged: the view that asks says which units there are.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::field::{Entry, Event, State, UnitNo, Wanting, World};
use crate::log::{LogError, LogReader};

/// Entries between two that are wanted up to which reading on is cheaper than looking up the next one.
const GAP: u64 = 16;
/// Fewer than these are looked up one by one.
const RUN: usize = 4;

/// A connection to the log that is there to read texts.
pub(super) struct Shelf(Mutex<Box<dyn LogReader>>);

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").finish_non_exhaustive()
    }
}

impl Shelf {
    pub fn new(reader: Box<dyn LogReader>) -> Self {
        Self(Mutex::new(reader))
    }

    /// Gives a view the texts of these units.
    ///
    /// # Errors
    /// A log that cannot be read, or that does not hold them.
    pub fn give(&self, world: &mut World, units: &[UnitNo]) -> Result<(), LogError> {
        let mut read = || {
            let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            give(reader.as_ref(), world, units)
        };
        // Notices are made where sessions are served: others go on there while the disk is waited for.
        match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(read),
            _ => read(),
        }
    }

    /// What `ask` comes to in a world, given the texts that it wants.
    ///
    /// # Errors
    /// A log that cannot be read, or that does not hold them.
    pub fn ask<T>(&self, world: &World, ask: impl Fn(&World) -> Result<T, Wanting>) -> Result<T, LogError> {
        let wanting = match ask(world) {
            Ok(answer) => return Ok(answer),
            Err(wanting) => wanting,
        };
        let (mut world, mut wanting) = (world.clone(), wanting);
        loop {
            self.give(&mut world, &wanting.0)?;
            match ask(&world) {
                Ok(answer) => return Ok(answer),
                // What was given is not wanted again, so this ends.
                Err(more) => wanting = more,
            }
        }
    }
}

/// Gives a view the texts of those of these units that it does not hold whole.
///
/// # Errors
/// A log that cannot be read, or that does not hold them.
pub(super) fn give(reader: &dyn LogReader, world: &mut World, units: &[UnitNo]) -> Result<(), LogError> {
    let shelved = |no: &UnitNo| world.slot(*no).is_shelved().then(|| (world.slot(*no).epoch, *no));
    let mut wanted: Vec<(u64, UnitNo)> = units.iter().filter_map(shelved).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut rest = &wanted[..];
    while !rest.is_empty() {
        let run = 1 + rest.windows(2).take_while(|pair| pair[1].0 - pair[0].0 <= GAP).count();
        let (some, behind) = rest.split_at(run);
        rest = behind;
        if run >= RUN {
            read_on(reader, world, some)?;
        } else {
            for of_epoch in some.chunk_by(|one, other| one.0 == other.0) {
                let row = reader.get(of_epoch[0].0)?.ok_or_else(|| missing(of_epoch[0].0))?;
                enter(world, &row.body, of_epoch)?;
            }
        }
    }
    Ok(())
}

/// Reads the log from the first of these to the last.
fn read_on(reader: &dyn LogReader, world: &mut World, wanted: &[(u64, UnitNo)]) -> Result<(), LogError> {
    let mut entries = wanted.chunk_by(|one, other| one.0 == other.0).peekable();
    let mut fault = None;
    reader.scan(wanted[0].0.saturating_sub(1), &mut |epoch, body| {
        match entries.peek() {
            Some(next) if next[0].0 == epoch => {}
            Some(next) if next[0].0 > epoch => return ControlFlow::Continue(()),
            _ => return ControlFlow::Break(()),
        }
        let entered = entries.next().map_or(Ok(()), |of_epoch| enter(world, body, of_epoch));
        fault = entered.err();
        if fault.is_none() && entries.peek().is_some() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    match (fault, entries.next()) {
        (Some(fault), _) => Err(fault),
        (None, Some(left)) => Err(missing(left[0].0)),
        (None, None) => Ok(()),
    }
}

/// Gives these units the texts that the entry of their epoch holds.
fn enter(world: &mut World, body: &str, wanted: &[(u64, UnitNo)]) -> Result<(), LogError> {
    let epoch = wanted[0].0;
    let entry = Entry::from_json(body)
        .map_err(|error| LogError::Corrupt { epoch: Some(epoch), what: error.to_string() })?;
    for (_, no) in wanted {
        let id = world.slot(*no).id;
        let told = entry.events.iter().find_map(|event| match event {
            Event::Recorded { unit, .. } | Event::Committed { unit, .. } if unit.id == id => Some(unit),
            _ => None,
        });
        if !told.is_some_and(|unit| world.give(*no, Arc::clone(unit))) {
            return Err(missing(epoch));
        }
    }
    Ok(())
}

fn missing(epoch: u64) -> LogError {
    LogError::Corrupt { epoch: Some(epoch), what: "an archived unit is not there as it was recorded".into() }
}

/// Leaves a state that was read back as one that lives is: what is archived without texts, what is not with them.
///
/// # Errors
/// A log that cannot be read, or that does not hold them.
pub(super) fn settle(reader: &dyn LogReader, state: &mut State) -> Result<(), LogError> {
    let back = state.shelving.take_back();
    give(reader, &mut state.world, &back)?;
    // Here nobody waits for what it takes to let go of them.
    drop(state.shelve(usize::MAX, u64::MAX));
    Ok(())
}
