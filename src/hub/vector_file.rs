//! The vectors of a Field's units, kept beside its log so that a restart need not make them again.
//!
//! The file is a cache: nothing depends on it, it is never flushed, and whatever is wrong with it is thrown away and
//! made anew. It begins with the name of the model, its dimensions and the identity of the log that it belongs to;
//! behind that come blocks of records in the order in which the vectors became known, each block with a checksum. A
//! record names its unit and carries a checksum of the unit's text, so that a vector is never taken for another
//! text's, whatever was copied where. A crash loses the tail at most: a block that is not whole ends the file.
//!
//! One thread of its own writes (`spawn_writer`); it is handed what the index has taken in and holds up nobody.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::only_a_file;
use crate::limits::{VECTOR_BLOCK_RECORDS_MAX, VECTOR_BLOCKS_WAITING_MAX};
use crate::protocol::UnitId;
use crate::relevance::{Document, Vector};

/// The file's name in its Field's directory.
pub(super) const FILE_NAME: &str = "vectors.cache";

const MAGIC: &[u8; 8] = b"AKVECS01";
/// Before the model's name: magic, dimensions, length of the name, identity of the log.
const HEAD: usize = 8 + 4 + 4 + 16;
/// Before a record's steps: epoch and number of the unit, checksum of its text, scale.
const RECORD_HEAD: usize = 8 + 4 + 4 + 4;

/// Which log a file belongs to: made of its first entry, which no two logs share.
pub(super) type Identity = [u8; 16];

/// The identity of a log that begins with this entry.
pub(super) fn identity(first_entry: &str) -> Identity {
    let mut identity = [0; 16];
    identity.copy_from_slice(&blake3::hash(first_entry.as_bytes()).as_bytes()[..16]);
    identity
}

/// The checksum of all of a unit's text that counts for its vector.
pub(super) fn text_checksum(doc: &Document<'_>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for text in [doc.content, doc.question.unwrap_or_default(), doc.purpose] {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize()
}

/// What a file must say of itself to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Belonging {
    /// The model's name.
    pub model: String,
    /// Values of a vector.
    pub dimensions: usize,
    /// Whose log it is.
    pub log: Identity,
}

impl Belonging {
    fn header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEAD + self.model.len() + 4);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&(self.dimensions as u32).to_le_bytes());
        header.extend_from_slice(&(self.model.len() as u32).to_le_bytes());
        header.extend_from_slice(&self.log);
        header.extend_from_slice(self.model.as_bytes());
        header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        header
    }
}

/// One unit's vector as kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub unit: UnitId,
    /// See [`text_checksum`].
    pub text: u32,
    pub vector: Vector,
}

impl Record {
    /// What stands in the place of a record that was taken out.
    fn erased(dimensions: usize) -> Self {
        Self { unit: UnitId::new(0, 0), text: 0, vector: Vector::nowhere(dimensions) }
    }

    /// Whether it was taken out.
    pub fn is_erased(&self) -> bool {
        self.unit.epoch == 0
    }
}

/// Writes a block: how many records, the records, a checksum of both.
fn block(records: &[Record], dimensions: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(8 + records.len() * (RECORD_HEAD + dimensions));
    block.extend_from_slice(&(records.len() as u32).to_le_bytes());
    for record in records {
        block.extend_from_slice(&record.unit.epoch.to_le_bytes());
        block.extend_from_slice(&record.unit.number.to_le_bytes());
        block.extend_from_slice(&record.text.to_le_bytes());
        block.extend_from_slice(&record.vector.scale.to_le_bytes());
        block.extend(record.vector.steps.iter().map(|step| step.cast_unsigned()));
    }
    block.extend_from_slice(&crc32fast::hash(&block).to_le_bytes());
    block
}

/// A file being read, block by block.
pub(super) struct VectorReader {
    file: BufReader<File>,
    dimensions: usize,
    /// Where the blocks that were read whole end.
    good: u64,
}

impl VectorReader {
    /// Opens a file, if there is one and it belongs here.
    pub fn open(path: &Path, belonging: &Belonging) -> Option<Self> {
        only_a_file(path).ok()?;
        let mut file = BufReader::with_capacity(1 << 20, File::open(path).ok()?);
        let expected = belonging.header();
        let mut header = vec![0; expected.len()];
        file.read_exact(&mut header).ok()?;
        let good = header.len() as u64;
        (header == expected).then_some(Self { file, dimensions: belonging.dimensions, good })
    }

    /// Where the blocks that were read whole end.
    pub fn good(&self) -> u64 {
        self.good
    }

    /// The next block's records, in the order in which they were written. `None` at the end, or where the file is
    /// not whole.
    pub fn next_block(&mut self) -> Option<Vec<Record>> {
        let mut count = [0; 4];
        self.file.read_exact(&mut count).ok()?;
        let records = u32::from_le_bytes(count) as usize;
        let record_bytes = RECORD_HEAD + self.dimensions;
        if records == 0 || records > VECTOR_BLOCK_RECORDS_MAX {
            return None;
        }
        let mut bytes = vec![0; records * record_bytes + 4];
        self.file.read_exact(&mut bytes).ok()?;
        let (body, checksum) = bytes.split_last_chunk::<4>()?;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&count);
        hasher.update(body);
        if hasher.finalize().to_le_bytes() != *checksum {
            return None;
        }
        self.good += (count.len() + bytes.len()) as u64;
        body.chunks_exact(record_bytes).map(record).collect()
    }
}

fn record(bytes: &[u8]) -> Option<Record> {
    let (epoch, rest) = bytes.split_first_chunk::<8>()?;
    let (number, rest) = rest.split_first_chunk::<4>()?;
    let (text, rest) = rest.split_first_chunk::<4>()?;
    let (scale, steps) = rest.split_first_chunk::<4>()?;
    Some(Record {
        unit: UnitId::new(u64::from_le_bytes(*epoch), u32::from_le_bytes(*number)),
        text: u32::from_le_bytes(*text),
        vector: Vector {
            scale: f32::from_le_bytes(*scale),
            steps: steps.iter().map(|step| step.cast_signed()).collect(),
        },
    })
}

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Job {
    /// Keep the file up to here, and write behind it; 0 makes it anew.
    Begin { belonging: Belonging, keep: u64 },
    /// Write these.
    Append(Vec<Record>),
    /// Take the records of these units out: they are purged.
    Erase(Vec<UnitId>),
}

/// Starts the thread that writes a Field's file. It ends when the sender is dropped.
pub(super) fn spawn_writer(
    field: &str,
    path: PathBuf,
) -> io::Result<(SyncSender<Job>, thread::JoinHandle<()>)> {
    let (jobs, jobs_in) = sync_channel(VECTOR_BLOCKS_WAITING_MAX);
    let work = move || write_all(&path, &jobs_in);
    Ok((jobs, thread::Builder::new().name(format!("akashik-vecs-{field}")).spawn(work)?))
}

fn write_all(path: &Path, jobs: &Receiver<Job>) {
    let mut open: Option<(File, Belonging)> = None;
    while let Ok(job) = jobs.recv() {
        let outcome = match job {
            Job::Begin { belonging, keep } => begin(path, &belonging, keep).map(|file| {
                open = Some((file, belonging));
            }),
            Job::Erase(units) => match &mut open {
                Some((file, belonging)) => erase(path, file, belonging, &units.into_iter().collect()),
                None => Ok(()),
            },
            Job::Append(records) => match &mut open {
                Some((file, Belonging { dimensions, .. })) => records
                    .chunks(VECTOR_BLOCK_RECORDS_MAX)
                    .try_for_each(|records| file.write_all(&block(records, *dimensions))),
                None => Ok(()),
            },
        };
        if let Err(error) = outcome {
            // A block may stand there in part: what came behind it would never be found.
            open = None;
            tracing::warn!(path = %path.display(), %error, "vectors are not kept; the next start makes them anew");
        }
    }
}

/// Writes the blocks anew that hold records of these units, in their places, without them.
fn erase(path: &Path, file: &mut File, belonging: &Belonging, units: &HashSet<UnitId>) -> io::Result<()> {
    let Some(mut reader) = VectorReader::open(path, belonging) else { return Ok(()) };
    let mut from = reader.good();
    while let Some(mut records) = reader.next_block() {
        let mut found = false;
        for record in records.iter_mut().filter(|record| units.contains(&record.unit)) {
            *record = Record::erased(belonging.dimensions);
            found = true;
        }
        if found {
            file.seek(SeekFrom::Start(from))?;
            file.write_all(&block(&records, belonging.dimensions))?;
        }
        from = reader.good();
    }
    file.seek(SeekFrom::End(0))?;
    Ok(())
}

fn begin(path: &Path, belonging: &Belonging, keep: u64) -> io::Result<File> {
    only_a_file(path)?;
    let mut file = File::options().create(true).truncate(false).write(true).open(path)?;
    file.set_len(keep)?;
    file.seek(SeekFrom::Start(keep))?;
    if keep == 0 {
        file.write_all(&belonging.header())?;
    }
    Ok(file)
}

#[cfg(test)]
#[path = "vector_file_tests.rs"]
mod tests;
