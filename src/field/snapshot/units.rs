//! Slots and their units as bytes.
//!
//! Many units say the same of their author, role, session and task. A part of a snapshot therefore begins with these
//! texts, each once, and units name them by their place: what is read back shares them, as it did before.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::bytes::{Source, Stored, listed, put_text};
use crate::field::kept::{Kept, Stub};
use crate::field::put_away::nothing;
use crate::field::state::{Slot, TaskNo};
use crate::protocol::{
    Confidence, Intent, MemoryType, Mode, Relation, RelationType, Source as Origin, Timestamp, Unit,
    UnitStatus,
};

listed!(MemoryType, Mode, UnitStatus, RelationType);

/// Texts that slots share, by their place. Place 0 stands for no text.
#[derive(Default)]
struct Shared<'a> {
    places: HashMap<&'a str, u32>,
    all: Vec<&'a str>,
}

impl<'a> Shared<'a> {
    fn place(&mut self, text: Option<&'a str>) -> u32 {
        let Some(text) = text else { return 0 };
        *self.places.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() as u32
        })
    }
}

/// Slots, one behind the other, as one part of a snapshot.
pub(super) struct SlotsWriter<'a> {
    shared: Shared<'a>,
    slots: Vec<u8>,
    count: u64,
}

impl<'a> SlotsWriter<'a> {
    pub fn new() -> Self {
        Self { shared: Shared::default(), slots: Vec::new(), count: 0 }
    }

    /// How many bytes there are so far, about.
    pub fn bytes(&self) -> usize {
        self.slots.len()
    }

    pub fn put(&mut self, slot: &'a Slot) {
        let out = &mut self.slots;
        self.count += 1;
        // All fields are named, so that a new one cannot be forgotten.
        let Slot { id, kept, epoch, author, chain, place, task, kind, mode, status, purged } = slot;
        id.put(out);
        epoch.put(out);
        author.put(out);
        chain.map_or(0, NonZeroU32::get).put(out);
        place.put(out);
        task.map_or(0, TaskNo::get).put(out);
        kind.put(out);
        mode.put(out);
        status.put(out);
        purged.put(out);
        if *purged {
            // What stands in its unit's place is no unit of its own.
            return;
        }
        let unit = match kept {
            Kept::Whole(unit) => unit,
            Kept::Shelved(stub) => return self.put_stub(stub),
        };
        true.put(out);
        let Unit { id, mode, kind, content, intent, confidence, source, relations } = &**unit;
        id.put(out);
        mode.put(out);
        kind.put(out);
        content.put(out);
        let Intent { purpose, task_id, question } = intent;
        purpose.put(out);
        self.shared.place(task_id.as_deref()).put(out);
        question.put(out);
        confidence.put(out);
        let Origin { agent_id, agent_role, session_id, timestamp: Timestamp(at) } = source;
        for text in [Some(&**agent_id), Some(&**agent_role), session_id.as_deref()] {
            self.shared.place(text).put(out);
        }
        at.put(out);
        relations.put(out);
    }

    fn put_stub(&mut self, stub: &'a Stub) {
        let out = &mut self.slots;
        false.put(out);
        let Stub { session, relations, score, evidence, text_bytes } = stub;
        self.shared.place(session.as_deref()).put(out);
        relations.len().put(out);
        relations.iter().for_each(|relation| relation.put(out));
        score.put(out);
        evidence.put(out);
        text_bytes.put(out);
    }

    /// The part, and an empty one begun.
    pub fn finish(&mut self) -> Vec<u8> {
        let Self { shared, slots, count } = std::mem::replace(self, Self::new());
        let mut part = Vec::with_capacity(slots.len() + 32 * shared.all.len() + 20);
        shared.all.len().put(&mut part);
        shared.all.iter().for_each(|text| put_text(text, &mut part));
        count.put(&mut part);
        part.extend_from_slice(&slots);
        part
    }
}

/// Reads the slots of a part.
pub(super) fn take_slots(bytes: &[u8]) -> Option<Vec<Slot>> {
    let mut from = Source(bytes);
    let shared = Vec::<Arc<str>>::take(&mut from)?;
    let count = usize::take(&mut from)?;
    let mut slots = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        slots.push(take_slot(&mut from, &shared)?);
    }
    from.is_empty().then_some(slots)
}

fn take_slot(from: &mut Source<'_>, shared: &[Arc<str>]) -> Option<Slot> {
    let (id, epoch) = (Stored::take(from)?, Stored::take(from)?);
    let (author, chain) = (Stored::take(from)?, NonZeroU32::new(Stored::take(from)?));
    let place = Stored::take(from)?;
    let task = TaskNo::new(Stored::take(from)?);
    let (kind, mode, status) = (Stored::take(from)?, Stored::take(from)?, Stored::take(from)?);
    let purged = Stored::take(from)?;
    let kept = if purged {
        Kept::Whole(nothing())
    } else if Stored::take(from)? {
        Kept::Whole(Arc::new(take_unit(from, shared)?))
    } else {
        Kept::Shelved(Arc::new(take_stub(from, shared)?))
    };
    Some(Slot { id, kept, epoch, author, chain, place, task, kind, mode, status, purged })
}

/// A text by its place; the outer nothing is a place that is none.
fn at(place: u32, shared: &[Arc<str>]) -> Option<Option<Arc<str>>> {
    match (place as usize).checked_sub(1) {
        None => Some(None),
        Some(at) => shared.get(at).map(|text| Some(Arc::clone(text))),
    }
}

fn take_stub(from: &mut Source<'_>, shared: &[Arc<str>]) -> Option<Stub> {
    let session = at(Stored::take(from)?, shared)?;
    let relations = Vec::<Relation>::take(from)?.into();
    let (score, evidence) = (Stored::take(from)?, Stored::take(from)?);
    Some(Stub { session, relations, score, evidence, text_bytes: Stored::take(from)? })
}

fn take_unit(from: &mut Source<'_>, shared: &[Arc<str>]) -> Option<Unit> {
    let (id, mode, kind) = (Stored::take(from)?, Stored::take(from)?, Stored::take(from)?);
    let (content, purpose) = (Stored::take(from)?, Stored::take(from)?);
    let task_id = at(Stored::take(from)?, shared)?;
    let question = Stored::take(from)?;
    let confidence = Stored::take(from)?;
    let agent_id = at(Stored::take(from)?, shared)??;
    let agent_role = at(Stored::take(from)?, shared)??;
    let session_id = at(Stored::take(from)?, shared)?;
    let timestamp = Timestamp(Stored::take(from)?);
    let relations = Stored::take(from)?;
    let intent = Intent { purpose, task_id, question };
    let source = Origin { agent_id, agent_role, session_id, timestamp };
    Some(Unit { id, mode, kind, content, intent, confidence, source, relations })
}

impl Stored for Confidence {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { score, reason, evidence, assumptions } = self;
        score.put(out);
        reason.put(out);
        evidence.put(out);
        assumptions.put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let (score, reason) = (Stored::take(from)?, Stored::take(from)?);
        Some(Self { score, reason, evidence: Stored::take(from)?, assumptions: Stored::take(from)? })
    }
}

impl Stored for Relation {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { kind, target_id, description } = self;
        kind.put(out);
        target_id.put(out);
        description.put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let (kind, target_id) = (Stored::take(from)?, Stored::take(from)?);
        Some(Self { kind, target_id, description: Stored::take(from)? })
    }
}
