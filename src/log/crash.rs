//! What a crash, a full quota or a damaged file does to the log in SQLite.
//!
//! A crash is played by copying the files away while the log is open: the copy is what a killed
//! process leaves. A lost power supply may besides leave any part of what was not flushed yet, so
//! the copy's journal is cut and garbled at random places. Every test prints its seed.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rusqlite::Connection;

use crate::log::{Batch, Log, LogError, LogReader, Row, SqliteLog, SqliteOptions, verify};

const NO_OPTIONS: SqliteOptions = SqliteOptions { max_bytes: None };

fn row(epoch: u64, length: usize) -> Row {
    let text = "x".repeat(length);
    Row { epoch, body: format!("{{\"epoch\":{epoch},\"text\":\"{text}\"}}") }
}

fn put(log: &mut SqliteLog, rows: &[Row]) -> Result<(), LogError> {
    let reserve = None;
    log.append(&Batch { rows, reserve })
}

fn open(dir: &Path) -> SqliteLog {
    SqliteLog::open(dir, NO_OPTIONS).expect("open")
}

fn all(reader: &dyn LogReader) -> Vec<Row> {
    let mut found = Vec::new();
    let mut each = |epoch, body: &str| {
        let body = body.to_owned();
        found.push(Row { epoch, body });
        ControlFlow::Continue(())
    };
    reader.scan(0, &mut each).expect("scan");
    found
}

/// Where the commits of a journal end, in bytes, those of its present round only.
fn commit_ends(wal: &[u8]) -> Vec<usize> {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    if wal.len() < HEADER {
        return Vec::new();
    }
    let salt = &wal[16..24];
    (0..(wal.len() - HEADER) / FRAME)
        .map(|frame| HEADER + frame * FRAME)
        .take_while(|at| &wal[at + 8..at + 16] == salt)
        .filter(|at| wal[at + 4..at + 8] != [0; 4])
        .map(|at| at + FRAME)
        .collect()
}

/// A log's files as a crash would leave them, and how many rows each commit in the journal ends
/// with.
struct Remains {
    database: Vec<u8>,
    wal: Vec<u8>,
    shm: Vec<u8>,
    rows: Vec<Row>,
    /// Rows that are in the database file itself.
    settled: usize,
    /// End of a commit in the journal, and the number of rows up to it.
    commits: Vec<(usize, usize)>,
}

/// Writes a log at random, with or without an earlier round of its journal, and copies its files.
fn remains(random: &mut StdRng) -> Remains {
    let dir = tempfile::tempdir().expect("tempdir");
    let mut log = open(dir.path());
    let mut rows: Vec<Row> = Vec::new();
    let mut ends = Vec::new();
    let rounds = random.random_range(1..=3);
    for round in 0..rounds {
        if round > 0 {
            log.rest().expect("rest");
        }
        for _ in 0..random.random_range(1..=12) {
            let mut epoch = rows.last().map_or(0, |row| row.epoch);
            let batch: Vec<Row> = (0..random.random_range(1..=20))
                .map(|_| {
                    epoch += random.random_range(1..=3);
                    row(epoch, random.random_range(0..=3000))
                })
                .collect();
            put(&mut log, &batch).expect("append");
            rows.extend(batch);
            ends.push(rows.len());
        }
    }
    let read = |ending: &str| {
        let file = dir.path().join(format!("field.db{ending}"));
        fs::read(file).expect("copy")
    };
    let wal = read("-wal");
    let places = commit_ends(&wal);
    // The last commits are in the journal, those of earlier rounds are not.
    let known = places.len().min(ends.len());
    let settled = ends.len() - known;
    Remains {
        database: read(""),
        shm: read("-shm"),
        settled: settled.checked_sub(1).map_or(0, |before| ends[before]),
        commits: places[places.len() - known..]
            .iter()
            .copied()
            .zip(ends[settled..].iter().copied())
            .collect(),
        wal,
        rows,
    }
}

#[test]
fn a_damaged_journal_loses_only_what_is_behind_the_damage() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..12 {
        let remains = remains(&mut random);
        for _ in 0..12 {
            recover(&remains, &mut random);
        }
    }
}

/// Damages a copy at one place, opens it, and compares.
fn recover(remains: &Remains, random: &mut StdRng) {
    let dir = tempfile::tempdir().expect("tempdir");
    let mut wal = remains.wal.clone();
    let place = random.random_range(0..wal.len());
    let kind = random.random_range(0..4);
    match kind {
        0 => wal.truncate(place),
        1 => wal[place] ^= 1 << random.random_range(0..8),
        2 => wal[place..].fill(0),
        _ => {
            // The first byte is surely another one.
            wal[place] ^= 0xff;
            random.fill(&mut wal[place + 1..]);
        }
    }
    let write = |ending: &str, bytes: &[u8]| {
        fs::write(dir.path().join(format!("field.db{ending}")), bytes).expect("write");
    };
    write("", &remains.database);
    write("-wal", &wal);
    // The index is none, an old one, or rubbish: it must not matter.
    match random.random_range(0..3) {
        0 => {}
        1 => write("-shm", &remains.shm),
        _ => {
            let mut rubbish = vec![0; remains.shm.len()];
            random.fill(&mut rubbish[..]);
            write("-shm", &rubbish);
        }
    }
    let intact = remains.commits.iter().rev().find(|(end, _)| *end <= place);
    let expected = intact.map_or(remains.settled, |(_, rows)| *rows);

    let offline = verify(dir.path()).expect("verify");
    assert!(offline.is_sound(), "{:?}", offline.faults);
    let mut log = open(dir.path());
    let reader = log.reader().expect("reader");
    let found = all(&*reader);
    assert!(remains.rows.starts_with(&found), "no prefix");
    // Zeroes over what was zero before are no damage, so there may be more.
    assert!(found.len() >= expected, "a whole commit is missing");
    if kind != 2 {
        assert_eq!(found.len(), expected, "kind {kind} at {place}");
    }
    assert_eq!(offline.entries, found.len() as u64);
    let next = found.last().map_or(1, |row| row.epoch + 1);
    put(&mut log, &[row(next, 10)]).expect("the log goes on");
    let report = verify(dir.path()).expect("verify");
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(report.entries, offline.entries + 1);
}

#[test]
fn a_killed_process_loses_nothing() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let remains = remains(&mut random);
    let dir = tempfile::tempdir().expect("tempdir");
    fs::write(dir.path().join("field.db"), &remains.database).expect("write");
    fs::write(dir.path().join("field.db-wal"), &remains.wal).expect("write");
    let log = open(dir.path());
    assert_eq!(all(&*log.reader().expect("reader")), remains.rows);
}

/// A commit that failed at its flush may have left all its frames in the journal, seen by nobody.
/// Once the log was reopened and said that it is not there, it must not come back after a crash.
#[test]
fn a_failed_commit_does_not_come_back_after_reopening() {
    let copy = |from: &Path, to: &Path| {
        for ending in ["", "-wal"] {
            let name = format!("field.db{ending}");
            fs::copy(from.join(&name), to.join(&name)).expect("copy");
        }
    };
    let rows_after_crash = |dir: &Path| {
        let after = tempfile::tempdir().expect("tempdir");
        copy(dir, after.path());
        all(&*open(after.path()).reader().expect("reader")).len()
    };
    let other = tempfile::tempdir().expect("tempdir");
    let mut twin = open(other.path());
    put(&mut twin, &[row(1, 100), row(2, 100)]).expect("append");
    let dir = tempfile::tempdir().expect("tempdir");
    copy(other.path(), dir.path());
    let mut log = open(dir.path());
    let reader = log.reader().expect("a reader keeps the journal alive");
    assert_eq!(all(&*reader).len(), 2);

    // The twin commits a third row; its journal is what ours would be after the failed flush.
    put(&mut twin, &[row(3, 100)]).expect("append");
    let frames = fs::read(other.path().join("field.db-wal")).expect("read");
    fs::write(dir.path().join("field.db-wal"), frames).expect("write");
    assert_eq!(all(&*reader).len(), 2);
    assert_eq!(rows_after_crash(dir.path()), 3, "the danger is real");
    log.reopen().expect("reopen");
    assert_eq!(all(&*reader).len(), 2);
    assert_eq!(rows_after_crash(dir.path()), 2);
    put(&mut log, &[row(3, 7)]).expect("append");
    assert_eq!(rows_after_crash(dir.path()), 3);
    assert_eq!(reader.get(3), Ok(Some(row(3, 7))));
}

#[test]
fn a_full_quota_keeps_what_is_there_and_passes() {
    let dir = tempfile::tempdir().expect("tempdir");
    let quota = |bytes| SqliteOptions { max_bytes: Some(bytes) };
    let mut log = SqliteLog::open(dir.path(), quota(512 * 1024)).expect("open");
    let mut last = 0;
    let refused = loop {
        let batch: Vec<Row> = (last + 1..=last + 8).map(|epoch| row(epoch, 700)).collect();
        match put(&mut log, &batch) {
            Ok(()) => last += 8,
            Err(error) => break error,
        }
        assert!(last < 10_000, "no quota");
    };
    assert!(matches!(refused, LogError::Full(_)), "{refused}");
    assert!(last > 400, "full much too early, at {last}");
    assert_eq!(put(&mut log, &[row(last + 1, 1)]), Err(LogError::Broken));
    assert_eq!(log.probe(), Err(LogError::Broken));
    log.reopen().expect("reopen");
    let reader = log.reader().expect("reader");
    assert_eq!(reader.last_epoch(), Ok(last));
    assert_eq!(all(&*reader).len() as u64, last);
    for _ in 0..3 {
        assert!(matches!(log.probe(), Err(LogError::Full(_))));
    }
    assert_eq!(all(&*reader).len() as u64, last);
    log.rest().expect("rest");
    log.release(last + 100).expect("the clock needs no new page");
    assert!(reader.stat().expect("stat").bytes <= 512 * 1024);
    drop((log, reader));

    let mut log = SqliteLog::open(dir.path(), quota(1024 * 1024)).expect("open");
    log.probe().expect("room");
    put(&mut log, &[row(last + 1, 700)]).expect("room");
    let reader = log.reader().expect("reader");
    assert_eq!(reader.last_epoch(), Ok(last + 1));
    assert_eq!(reader.reserved(), Ok(last + 100));
    drop((log, reader));

    // A quota below what is there already is a full log, no broken one.
    let mut log = SqliteLog::open(dir.path(), quota(4096)).expect("open");
    assert!(matches!(put(&mut log, &[row(last + 2, 100_000)]), Err(LogError::Full(_))));
    assert!(verify(dir.path()).expect("verify").is_sound());
}

#[test]
fn a_probe_leaves_nothing_and_a_cut_one_is_tidied_up() {
    let dir = tempfile::tempdir().expect("tempdir");
    let mut log = open(dir.path());
    put(&mut log, &[row(1, 10)]).expect("append");
    log.probe().expect("probe");
    let pages = log.reader().expect("reader").stat().expect("stat").pages;
    for _ in 0..5 {
        log.probe().expect("probe");
    }
    let stat = log.reader().expect("reader").stat().expect("stat");
    assert_eq!(stat.pages, pages, "probes pile up");
    drop(log);
    let database = Connection::open(dir.path().join("field.db")).expect("open");
    let padding = "INSERT INTO meta VALUES ('padding', zeroblob(65536))";
    database.execute(padding, []).expect("insert");
    let log = open(dir.path());
    let left: i64 = database
        .query_row("SELECT count(*) FROM meta WHERE key = 'padding'", [], |row| row.get(0))
        .expect("query");
    assert_eq!(left, 0);
    drop(log);
}

#[test]
fn one_writer_only() {
    let dir = tempfile::tempdir().expect("tempdir");
    let log = open(dir.path());
    let second = SqliteLog::open(dir.path(), NO_OPTIONS);
    assert!(matches!(second, Err(LogError::Busy(_))));
    drop(log);
    open(dir.path());
}

#[test]
fn files_that_are_not_for_us_are_refused_and_left_alone() {
    let dir = tempfile::tempdir().expect("tempdir");
    let file = dir.path().join("field.db");
    let refused = |expected: fn(&LogError) -> bool| {
        let before = fs::read(&file).expect("read");
        for error in [SqliteLog::open(dir.path(), NO_OPTIONS).err(), verify(dir.path()).err()] {
            let error = error.expect("refused");
            assert!(expected(&error), "{error}");
        }
        assert_eq!(fs::read(&file).expect("read"), before);
    };
    fs::write(&file, "this is a letter to my aunt. ".repeat(500)).expect("write");
    refused(|error| matches!(error, LogError::Foreign(_)));

    fs::remove_file(&file).expect("remove");
    let other = Connection::open(&file).expect("open");
    other.execute_batch("CREATE TABLE t(a)").expect("table");
    drop(other);
    refused(|error| matches!(error, LogError::Foreign(_)));

    fs::remove_file(&file).expect("remove");
    // Were the lock not empty, the loss would be noticed.
    drop(open(dir.path()));
    let newer = Connection::open(&file).expect("open");
    let update = "UPDATE meta SET value = 2 WHERE key = 'format'";
    newer.execute(update, []).expect("update");
    drop(newer);
    refused(|error| *error == LogError::Format { found: 2, supported: 1 });
}

#[test]
fn a_lost_log_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().expect("tempdir");
    drop(open(dir.path()));
    let file = dir.path().join("field.db");
    for lose in [|file: &Path| fs::write(file, ""), |file: &Path| fs::remove_file(file)] {
        lose(&file).expect("lost");
        let error = SqliteLog::open(dir.path(), NO_OPTIONS).err().expect("refused");
        assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn a_log_whose_file_was_taken_away_or_replaced_acknowledges_nothing() {
    let dir = tempfile::tempdir().expect("tempdir");
    let mut log = open(dir.path());
    let rows = |epoch| [Row { epoch, body: format!("{{\"epoch\":{epoch}}}") }];
    log.append(&Batch { rows: &rows(1), reserve: None }).expect("written");
    let (file, aside) = (dir.path().join("field.db"), dir.path().join("aside"));
    fs::rename(&file, &aside).expect("renamed");
    for _ in 0..2 {
        assert!(log.append(&Batch { rows: &rows(2), reserve: None }).is_err());
        assert!(log.reopen().is_err(), "no other log takes its place");
        fs::write(&file, "").expect("write");
    }
    fs::rename(&aside, &file).expect("renamed");
    log.reopen().expect("it is back");
    log.append(&Batch { rows: &rows(2), reserve: None }).expect("written");
}

#[test]
fn a_creation_that_was_cut_off_is_begun_again() {
    let dir = tempfile::tempdir().expect("tempdir");
    fs::write(dir.path().join("field.db"), "").expect("write");
    let mut log = open(dir.path());
    put(&mut log, &[row(1, 10)]).expect("append");
}

#[test]
fn verify_creates_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("tempdir");
    let absent = verify(dir.path());
    assert!(matches!(absent, Err(LogError::Absent(_))), "{absent:?}");
    assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 0);
    let mut log = open(dir.path());
    put(&mut log, &[row(4, 10), row(9, 10)]).expect("append");
    let beside = verify(dir.path()).expect("beside a running hub");
    assert!(beside.is_sound());
    assert_eq!((beside.entries, beside.first_epoch, beside.last_epoch), (2, 4, 9));
    drop(log);
    let file = dir.path().join("field.db");
    let before = fs::read(&file).expect("read");
    assert!(verify(&file).expect("offline").is_sound());
    assert_eq!(fs::read(&file).expect("read"), before);
}

/// Each of these was done to a sound log by hand, and each is found.
#[test]
fn verify_finds_what_is_wrong() {
    for (damage, epoch, word) in [
        ("UPDATE entries SET body = replace(body, 'x', 'y') WHERE epoch = 3", Some(3), "checksum"),
        ("UPDATE entries SET epoch = 9 WHERE epoch = 3", Some(9), "checksum"),
        ("UPDATE meta SET value = 2 WHERE key = 'reserved'", None, "reserved mark"),
        ("UPDATE meta SET value = 5 WHERE key = 'tally_entries'", None, "rows were written"),
    ] {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut log = open(dir.path());
        let rows: Vec<Row> = (1..=5).map(|epoch| row(epoch, 20)).collect();
        put(&mut log, &rows).expect("append");
        drop(log);
        let database = Connection::open(dir.path().join("field.db")).expect("open");
        assert_eq!(database.execute(damage, []), Ok(1));
        drop(database);
        let report = verify(dir.path()).expect("verify");
        let found = |fault: &super::Fault| fault.epoch == epoch && fault.what.contains(word);
        assert!(report.faults.iter().any(found), "{damage}: {report:?}");
    }
}

#[test]
fn verify_finds_bodies_that_say_something_else() {
    let dir = tempfile::tempdir().expect("tempdir");
    let mut log = open(dir.path());
    let bodies = ["{\"epoch\":1}", "{\"epoch\":7}", "{\"epoch\":", "[]", "{}"];
    let rows: Vec<Row> =
        (1..).zip(bodies).map(|(epoch, body)| Row { epoch, body: body.to_owned() }).collect();
    put(&mut log, &rows).expect("append");
    let report = verify(dir.path()).expect("verify");
    let faulty: Vec<_> = report.faults.iter().map(|fault| fault.epoch).collect();
    assert_eq!(faulty, [Some(2), Some(3), Some(4), Some(5)]);
}

#[test]
fn a_garbled_page_is_a_fault_and_no_panic() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let source = tempfile::tempdir().expect("tempdir");
    let mut log = open(source.path());
    let rows: Vec<Row> = (1..=400).map(|epoch| row(epoch, 700)).collect();
    put(&mut log, &rows).expect("append");
    drop(log);
    let sound = fs::read(source.path().join("field.db")).expect("read");
    for _ in 0..30 {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut bytes = sound.clone();
        // Any page but the first, whose garbling may make it another kind of file.
        let start = random.random_range(4096..bytes.len() - 200);
        for byte in &mut bytes[start..start + 200] {
            *byte ^= random.random_range(1..=255_u8);
        }
        fs::write(dir.path().join("field.db"), &bytes).expect("write");
        // Reading may end with an error but never with a wrong row.
        let report = verify(dir.path());
        if let Ok(report) = &report
            && report.is_sound()
        {
            let log = open(dir.path());
            assert_eq!(all(&*log.reader().expect("reader")), rows, "at {start}");
        }
    }
}
