//! Snapshots that are whole come back; whatever else stands in their place is not taken, and harms nothing.

use proptest::prelude::{Strategy as _, prop};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

use super::*;
use crate::field::tests::random::{past, step};
use crate::field::{Entry, format_numbered};
use crate::hub::restore::restore;
use crate::log::{Batch, Log, MemoryLog, Row};

/// A Field's log, its state, and a directory with its snapshot.
struct Kept {
    log: MemoryLog,
    entries: Vec<Entry>,
    state: State,
    directory: TempDir,
}

fn row(entry: &Entry) -> Row {
    Row { epoch: entry.epoch, body: entry.to_json() }
}

fn log_of(entries: &[Entry]) -> MemoryLog {
    let mut log = MemoryLog::new();
    let rows: Vec<_> = entries.iter().map(row).collect();
    log.append(&Batch { rows: &rows, reserve: None }).expect("memory can be written");
    log
}

/// The state that a log comes to, from its beginning.
fn of_log(log: &MemoryLog) -> State {
    restore(&*reader(log), None, |_| ()).expect("memory can be read").state
}

fn reader(log: &MemoryLog) -> Box<dyn LogReader> {
    log.reader().expect("memory can be read")
}

impl Kept {
    fn after(steps: usize) -> Self {
        let mut runner = TestRunner::deterministic();
        let steps = prop::collection::vec(step(), steps).new_tree(&mut runner).expect("steps").current();
        let (entries, _) = past(&steps);
        let log = log_of(&entries);
        let state = of_log(&log);
        let kept = Self { log, entries, state, directory: tempfile::tempdir().expect("a directory") };
        kept.write(&kept.state);
        kept
    }

    fn write(&self, state: &State) {
        let snapshot = Snapshot::of(state);
        let belonging = Belonging::of(&*reader(&self.log), snapshot.epoch(), snapshot.entries());
        let belonging = belonging.expect("memory can be read").expect("the log has that entry");
        write(self.directory.path(), &snapshot, &belonging, &mut |_, _| Ok(())).expect("it is written");
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(FILE_NAME)
    }

    /// What comes of the snapshot for a log.
    fn read(&self, log: &MemoryLog) -> Result<State, Unusable> {
        let file = SnapshotFile::open(self.directory.path())?;
        file.check(&*reader(log))?;
        file.state()
    }

    /// What a start comes to: the state, and how many entries of it came from the snapshot.
    fn started(&self, log: &MemoryLog) -> (State, u64) {
        let restored = restore(&*reader(log), Some(self.directory.path()), |_| ()).expect("a start");
        (restored.state, restored.from_snapshot)
    }
}

fn same(a: &State, b: &State) -> bool {
    a.world == b.world && a.ledger == b.ledger && a.clock == b.clock
}

#[test]
fn what_was_written_comes_back_and_the_log_behind_it_is_applied() {
    let mut kept = Kept::after(60);
    assert!(same(&kept.read(&kept.log).expect("it is whole"), &kept.state));
    let half = kept.entries.len() / 2;
    let entries: Vec<_> = kept.entries.drain(..half).collect();
    kept.write(&of_log(&log_of(&entries)));
    let (state, from_snapshot) = kept.started(&kept.log);
    assert_eq!(from_snapshot, half as u64);
    assert!(same(&state, &kept.state));
}

#[test]
fn cut_anywhere_it_is_not_taken() {
    let kept = Kept::after(12);
    let whole = fs::read(kept.path()).expect("it is there");
    println!("{} bytes", whole.len());
    for length in 0..whole.len() {
        fs::write(kept.path(), &whole[..length]).expect("it can be written");
        assert!(kept.read(&kept.log).is_err(), "cut to {length}");
    }
    fs::write(kept.path(), [&whole[..], &[0]].concat()).expect("it can be written");
    assert!(kept.read(&kept.log).is_err(), "longer than it was");
}

#[test]
fn with_any_byte_changed_it_is_not_taken() {
    let kept = Kept::after(12);
    let whole = fs::read(kept.path()).expect("it is there");
    for at in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 1 << (at % 8);
        fs::write(kept.path(), wrong).expect("it can be written");
        assert!(kept.read(&kept.log).is_err(), "byte {at} changed");
    }
    // The start that finds such a one reads the log, and leaves what somebody may want to look at.
    let (state, from_snapshot) = kept.started(&kept.log);
    assert!(same(&state, &kept.state) && from_snapshot == 0 && kept.path().exists());
}

/// A head that is right but for what it begins with, and what comes behind it.
fn of_version(own: &[u8], magic: &[u8; 8], format: [u8; 16], parts: &[u8]) -> Vec<u8> {
    let mut head = own[..HEAD - 4].to_vec();
    head[..MAGIC.len()].copy_from_slice(magic);
    head[MAGIC.len()..][..16].copy_from_slice(&format);
    head.extend(crc32fast::hash(&head).to_le_bytes());
    [&head, parts].concat()
}

#[test]
fn that_of_another_version_is_not_taken() {
    let kept = Kept::after(40);
    let own = fs::read(kept.path()).expect("it is there");
    let put = |bytes: Vec<u8>| fs::write(kept.path(), bytes).expect("it can be written");
    put(of_version(&own, MAGIC, snapshot_format(), &own[HEAD..]));
    assert_eq!(kept.started(&kept.log).1, kept.entries.len() as u64, "with its own head it is");
    // The formats before this one, those that are to come, and one of another kind of head; with parts that could be taken
    // for this version's and with others.
    let [first, second, last] = [1, 2, u32::MAX].map(format_numbered);
    let versions = [(MAGIC, first), (MAGIC, second), (MAGIC, last), (b"AKSNAP02", snapshot_format())];
    for (at, (magic, format)) in versions.into_iter().enumerate() {
        for parts in [&own[HEAD..], b"\xfenothing that this version can read"] {
            put(of_version(&own, magic, format, parts));
            assert!(matches!(kept.read(&kept.log), Err(Unusable::OtherFormat)), "version {at}");
            let (state, from_snapshot) = kept.started(&kept.log);
            assert!(same(&state, &kept.state) && from_snapshot == 0, "version {at}");
        }
    }
    // The next one takes its place.
    kept.write(&kept.state);
    assert_eq!(kept.started(&kept.log).1, kept.entries.len() as u64);
}

#[test]
fn that_of_another_log_is_not_taken_and_goes() {
    let kept = Kept::after(40);
    let whole = fs::read(kept.path()).expect("it is there");
    let older = log_of(&kept.entries[..kept.entries.len() - 1]);
    // An older copy that went on otherwise has an entry of that epoch, but another one.
    let mut otherwise = kept.entries.clone();
    otherwise.last_mut().expect("there are some").agent_id = "somebody else".into();
    let mut foreign = kept.entries.clone();
    foreign.first_mut().expect("there are some").message_id = Some("another".into());
    let logs = [
        ("older", older),
        ("otherwise", log_of(&otherwise)),
        ("foreign", log_of(&foreign)),
        ("empty", MemoryLog::new()),
    ];
    for (name, log) in logs {
        fs::write(kept.path(), &whole).expect("it can be written");
        assert!(matches!(kept.read(&log), Err(Unusable::OtherLog(_))), "{name}");
        let (state, from_snapshot) = kept.started(&log);
        assert!(same(&state, &of_log(&log)) && from_snapshot == 0, "{name}");
        assert!(!kept.path().exists(), "{name}");
    }
}

#[test]
fn one_that_was_not_finished_leaves_the_one_before() {
    let kept = Kept::after(12);
    let before = fs::read(kept.path()).expect("it is there");
    let snapshot = Snapshot::of(&kept.state);
    let belonging = Belonging::of(&*reader(&kept.log), snapshot.epoch(), snapshot.entries());
    let belonging = belonging.expect("memory can be read").expect("the log has that entry");
    let mut parts = 0;
    let full = &mut |_: &File, _| {
        parts += 1;
        if parts > 3 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    };
    let failed = write(kept.directory.path(), &snapshot, &belonging, full).expect_err("the disk is full");
    assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::read(kept.path()).expect("it is there"), before);
    assert_eq!(fs::read_dir(kept.directory.path()).expect("a directory").count(), 1);
    // What a killed hub left is cleared away by the next start.
    fs::write(kept.directory.path().join(UNFINISHED_NAME), b"AKSNAP01 half").expect("it can be written");
    assert!(same(&kept.started(&kept.log).0, &kept.state));
    assert_eq!(fs::read_dir(kept.directory.path()).expect("a directory").count(), 1);
}

#[test]
fn none_and_something_else_under_its_name() {
    let kept = Kept::after(12);
    fs::remove_file(kept.path()).expect("it is there");
    assert!(matches!(kept.read(&kept.log), Err(Unusable::Absent)));
    fs::create_dir(kept.path()).expect("a directory in its place");
    assert!(kept.read(&kept.log).is_err());
    assert!(same(&kept.started(&kept.log).0, &kept.state));
}

/// Opening a pipe waits for its other end: a start, or the thread that writes, would never come back.
#[cfg(unix)]
#[test]
fn a_pipe_under_either_name_is_refused_at_once() {
    let kept = Kept::after(12);
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo is there");
        assert!(made.success());
    };
    fs::remove_file(kept.path()).expect("it is there");
    pipe(&kept.path());
    assert!(kept.read(&kept.log).is_err());
    assert!(same(&kept.started(&kept.log).0, &kept.state));
    fs::remove_file(kept.path()).expect("it is there");
    pipe(&kept.directory.path().join(UNFINISHED_NAME));
    let snapshot = Snapshot::of(&kept.state);
    let belonging = Belonging::of(&*reader(&kept.log), snapshot.epoch(), snapshot.entries());
    let belonging = belonging.expect("memory can be read").expect("the log has that entry");
    write(kept.directory.path(), &snapshot, &belonging, &mut |_, _| Ok(())).expect_err("it is no file");
}
