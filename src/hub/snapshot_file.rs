//! The file of a Field's snapshot: its state at some epoch, kept beside its log so that a start need not apply all of it.
//!
//! A file of its own and no table of the log's database: there it would have to go through the journal, hundreds of
//! megabytes at a time, and the one writer would have to wait for it.
//!
//! The log is the truth. A snapshot says which log it belongs to, by the log's first entry and by the last entry that it
//! holds, and is only taken where that log still holds both: one of another Field, or of a log that was put back to an
//! older copy and went on from there, is not taken, nor is one that another version wrote, or any that is not whole to
//! the byte. Then the log is read from its beginning; a snapshot is never a reason not to start.
//!
//! It begins with a head; behind that come the parts, each with its kind, its length and a checksum of all three, and
//! at the end how many they were. It is written under another name, flushed, and then takes the place of the one before.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use thiserror::Error;

use super::only_a_file;
use crate::field::{Assembly, Part, Piece, Snapshot, State, read_part, snapshot_format};
use crate::log::{LogError, LogReader};

/// The file's name in its Field's directory.
pub(super) const FILE_NAME: &str = "state.snapshot";
/// What it is called while it is being written.
const UNFINISHED_NAME: &str = "state.snapshot.new";

const MAGIC: &[u8; 8] = b"AKSNAP01";
/// Magic, format, first and last entry, epoch and number of entries, checksum of these.
const HEAD: usize = 8 + 3 * 16 + 2 * 8 + 4;
/// Kind, length, checksum.
const PART_HEAD: usize = 1 + 4 + 4;
/// The kind of what ends the file.
const END: u8 = 0xff;
/// Parts that wait for the one who puts them together, for each thread that reads.
const AHEAD: usize = 4;
/// Threads that read a snapshot: more would wait for the one that puts the parts together.
const READERS_MAX: usize = 6;

/// Why there is no state to be had from a snapshot.
#[derive(Debug, Error)]
pub(super) enum Unusable {
    /// There is none.
    #[error("there is none")]
    Absent,
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(io::Error),
    /// It is not whole.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// It was written by another version of this program, or is something else.
    #[error("it was written by another version of the hub")]
    OtherFormat,
    /// The log is another one than that which it was made of.
    #[error("it is not of this log: {0}")]
    OtherLog(&'static str),
    /// The log could not be asked.
    #[error("the log cannot be compared with it: {0}")]
    Log(LogError),
}

/// What a snapshot says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Belonging {
    /// Stands for the log's first entry.
    first: [u8; 16],
    /// Stands for the last entry that it holds.
    last: [u8; 16],
    /// That entry's epoch.
    pub epoch: u64,
    /// How many entries it holds.
    pub entries: u64,
}

fn mark(body: &str) -> [u8; 16] {
    let mut mark = [0; 16];
    mark.copy_from_slice(&blake3::hash(body.as_bytes()).as_bytes()[..16]);
    mark
}

impl Belonging {
    /// Of a snapshot of the state that this log comes to at this epoch; nothing if it has no such entry.
    pub fn of(reader: &dyn LogReader, epoch: u64, entries: u64) -> Result<Option<Self>, LogError> {
        let mut first = None;
        reader.scan(0, &mut |_, body| {
            first = Some(mark(body));
            ControlFlow::Break(())
        })?;
        let last = reader.get(epoch)?.map(|row| mark(&row.body));
        Ok(first.zip(last).map(|(first, last)| Self { first, last, epoch, entries }))
    }

    fn header(&self) -> Vec<u8> {
        let Self { first, last, epoch, entries } = self;
        let mut header = Vec::with_capacity(HEAD);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&snapshot_format());
        header.extend_from_slice(first);
        header.extend_from_slice(last);
        header.extend_from_slice(&epoch.to_le_bytes());
        header.extend_from_slice(&entries.to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        header
    }

    fn read(header: &[u8; HEAD]) -> Result<Self, Unusable> {
        if !header.starts_with(MAGIC) {
            return Err(Unusable::OtherFormat);
        }
        let (body, checksum) = header.split_last_chunk::<4>().expect("a head is longer than that");
        if crc32fast::hash(body).to_le_bytes() != *checksum {
            return Err(Unusable::Damaged("its head does not match its checksum"));
        }
        let (marks, numbers) = body[MAGIC.len()..].split_at(48);
        let (marks, numbers) = (marks.as_chunks::<16>().0, numbers.as_chunks::<8>().0);
        if marks[0] != snapshot_format() {
            return Err(Unusable::OtherFormat);
        }
        let [epoch, entries] = [numbers[0], numbers[1]].map(u64::from_le_bytes);
        Ok(Self { first: marks[1], last: marks[2], epoch, entries })
    }

    /// Whether the log is the one that this was made of, and still holds all of it.
    fn check(&self, reader: &dyn LogReader) -> Result<(), Unusable> {
        if reader.last_epoch().map_err(Unusable::Log)? < self.epoch {
            return Err(Unusable::OtherLog("it holds more than the log"));
        }
        match Self::of(reader, self.epoch, self.entries).map_err(Unusable::Log)? {
            Some(own) if own.first != self.first => {
                Err(Unusable::OtherLog("the log begins with another entry"))
            }
            Some(own) if own == *self => Ok(()),
            _ => Err(Unusable::OtherLog("the log does not hold the entry that it ends with")),
        }
    }
}

fn part_head(kind: u8, bytes: &[u8]) -> io::Result<[u8; PART_HEAD]> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::Error::other("a part is too large"))?;
    let mut head = [0; PART_HEAD];
    head[0] = kind;
    head[1..5].copy_from_slice(&length.to_le_bytes());
    head[5..].copy_from_slice(&part_checksum(kind, length, bytes).to_le_bytes());
    Ok(head)
}

fn part_checksum(kind: u8, length: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&length.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Writes a snapshot in place of the one that is there. `pause` is called after every part with the file that is being
/// written, and may give up.
///
/// # Errors
/// What the system or `pause` says; then the one before is still there, and nothing besides.
pub(super) fn write(
    directory: &Path,
    snapshot: &Snapshot,
    belonging: &Belonging,
    pause: &mut dyn FnMut(&File, usize) -> io::Result<()>,
) -> io::Result<u64> {
    let unfinished = directory.join(UNFINISHED_NAME);
    let written = write_all(&unfinished, snapshot, belonging, pause)
        .and_then(|bytes| fs::rename(&unfinished, directory.join(FILE_NAME)).map(|()| bytes));
    match written {
        Ok(bytes) => {
            // The name must last as surely as what is in it.
            if cfg!(unix) {
                File::open(directory)?.sync_all()?;
            }
            Ok(bytes)
        }
        Err(error) => {
            // What is left of it would only take room that seems to be scarce.
            let _ = fs::remove_file(&unfinished);
            Err(error)
        }
    }
}

fn write_all(
    path: &Path,
    snapshot: &Snapshot,
    belonging: &Belonging,
    pause: &mut dyn FnMut(&File, usize) -> io::Result<()>,
) -> io::Result<u64> {
    use std::io::Write;
    only_a_file(path)?;
    let mut file = File::create(path)?;
    let header = belonging.header();
    file.write_all(&header)?;
    let (mut parts, mut total) = (0u64, header.len());
    let mut one = |kind: u8, bytes: &[u8]| {
        let head = part_head(kind, bytes)?;
        // Large writes need no buffer, and many small ones there are not.
        file.write_all(&head)?;
        file.write_all(bytes)?;
        total += head.len() + bytes.len();
        pause(&file, head.len() + bytes.len())
    };
    snapshot.write(&mut |part, bytes| {
        parts += 1;
        one(part as u8, bytes)
    })?;
    one(END, &parts.to_le_bytes())?;
    file.sync_all()?;
    Ok(total as u64)
}

/// Removes what a crash left of a snapshot that was being written.
pub(super) fn tidy(directory: &Path) {
    match fs::remove_file(directory.join(UNFINISHED_NAME)) {
        Ok(()) => tracing::debug!("an unfinished snapshot was removed"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, "an unfinished snapshot cannot be removed"),
    }
}

/// Removes a snapshot that is of no use; whether none is there any more.
pub(super) fn remove(directory: &Path) -> bool {
    match fs::remove_file(directory.join(FILE_NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "a snapshot that is of no use any more cannot be removed");
            false
        }
        _ => true,
    }
}

/// Where a part stands.
struct Place {
    part: Part,
    at: u64,
    length: u32,
    checksum: u32,
}

/// A snapshot that was opened.
pub(super) struct SnapshotFile {
    path: PathBuf,
    /// What it says of itself.
    pub belonging: Belonging,
    /// How large it is.
    pub bytes: u64,
    places: Vec<Place>,
}

impl SnapshotFile {
    /// Opens the snapshot in a Field's directory and finds its parts.
    pub fn open(directory: &Path) -> Result<Self, Unusable> {
        let path = directory.join(FILE_NAME);
        let absent = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Unusable::Absent,
            _ => Unusable::Io(error),
        };
        only_a_file(&path).map_err(Unusable::Io)?;
        let mut file = File::open(&path).map_err(absent)?;
        let bytes = file.metadata().map_err(Unusable::Io)?.len();
        let mut header = [0; HEAD];
        read_exact(&mut file, &mut header)?;
        let belonging = Belonging::read(&header)?;
        let mut places = Vec::new();
        let mut at = HEAD as u64;
        loop {
            let mut head = [0; PART_HEAD];
            read_exact(&mut file, &mut head)?;
            let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let (kind, length, checksum) = (head[0], number(1), number(5));
            at += PART_HEAD as u64;
            if kind == END {
                let mut count = [0; 8];
                read_exact(&mut file, &mut count)?;
                let counted = u64::from_le_bytes(count) == places.len() as u64;
                let whole = length == 8 && part_checksum(kind, length, &count) == checksum;
                if !counted || !whole || at + 8 != bytes {
                    return Err(Unusable::Damaged("its end is not where it should be"));
                }
                return Ok(Self { path, belonging, bytes, places });
            }
            let part = Part::ALL.get(usize::from(kind)).copied();
            let part = part.ok_or(Unusable::Damaged("it has a part of an unknown kind"))?;
            if bytes - at < u64::from(length) {
                return Err(Unusable::Damaged("it is cut short"));
            }
            places.push(Place { part, at, length, checksum });
            at += u64::from(length);
            file.seek(SeekFrom::Start(at)).map_err(Unusable::Io)?;
        }
    }

    /// Whether it belongs to a log that still holds all of it.
    pub fn check(&self, reader: &dyn LogReader) -> Result<(), Unusable> {
        self.belonging.check(reader)
    }

    /// The state that it holds. Parts are read by several threads and put together by this one.
    pub fn state(&self) -> Result<State, Unusable> {
        let next = AtomicUsize::new(0);
        let threads = thread::available_parallelism().map_or(1, usize::from).clamp(1, READERS_MAX);
        let (pieces, pieces_in) = sync_channel(AHEAD * threads);
        thread::scope(|scope| {
            for _ in 0..threads {
                let (pieces, next) = (pieces.clone(), &next);
                scope.spawn(move || self.read_parts(next, &pieces));
            }
            drop(pieces);
            // Where this gives up, whoever still reads finds nobody to give it to, and ends.
            self.assemble(pieces_in)
        })
    }

    fn assemble(&self, pieces: Receiver<(usize, Result<Piece, Unusable>)>) -> Result<State, Unusable> {
        const ODD: Unusable = Unusable::Damaged("its parts do not belong together");
        let mut assembly = Assembly::default();
        // What came before its turn; it is part of the state to be, and so takes no room of its own.
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        while wanted < self.places.len() {
            let (at, piece) = pieces.recv().map_err(|_| ODD)?;
            early.insert(at, piece);
            while let Some(piece) = early.remove(&wanted) {
                assembly.take(piece?).ok_or(ODD)?;
                wanted += 1;
            }
        }
        let state = assembly.finish().ok_or(ODD)?;
        let Belonging { epoch, entries, .. } = self.belonging;
        let named = (state.world.last_epoch, state.world.entries) == (epoch, entries);
        named.then_some(state).ok_or(ODD)
    }

    /// Reads the next part that nobody has begun, until there is none.
    fn read_parts(&self, next: &AtomicUsize, to: &SyncSender<(usize, Result<Piece, Unusable>)>) {
        let mut file = File::open(&self.path);
        let mut bytes = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = self.places.get(at) else { return };
            let piece = match &mut file {
                Ok(file) => read(file, place, &mut bytes),
                Err(error) => Err(Unusable::Io(io::Error::new(error.kind(), error.to_string()))),
            };
            if to.send((at, piece)).is_err() {
                return;
            }
        }
    }
}

fn read(file: &mut File, place: &Place, bytes: &mut Vec<u8>) -> Result<Piece, Unusable> {
    bytes.resize(place.length as usize, 0);
    file.seek(SeekFrom::Start(place.at)).map_err(Unusable::Io)?;
    read_exact(file, bytes)?;
    if part_checksum(place.part as u8, place.length, bytes) != place.checksum {
        return Err(Unusable::Damaged("a part does not match its checksum"));
    }
    read_part(place.part, bytes).ok_or(Unusable::Damaged("a part cannot be read"))
}

fn read_exact(file: &mut File, bytes: &mut [u8]) -> Result<(), Unusable> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Unusable::Damaged("it is cut short"),
        _ => Unusable::Io(error),
    })
}

#[cfg(test)]
#[path = "snapshot_file_tests.rs"]
mod tests;
