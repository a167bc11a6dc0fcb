//! One suite that every implementation of the log must pass, run over both.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::log::{Batch, Log, LogError, LogReader, MemoryLog, Row, SqliteLog, SqliteOptions, verify};

/// A log under test and the way to open it again after it was dropped.
type Opener = Box<dyn Fn() -> Box<dyn Log>>;

fn rows(epochs: impl IntoIterator<Item = u64>) -> Vec<Row> {
    let row = |epoch| Row { epoch, body: format!("{{\"epoch\":{epoch},\"events\":[]}}") };
    epochs.into_iter().map(row).collect()
}

fn put(log: &mut dyn Log, rows: &[Row], reserve: Option<u64>) -> Result<(), LogError> {
    log.append(&Batch { rows, reserve })
}

fn all(reader: &dyn LogReader, after: u64) -> Vec<Row> {
    let mut found = Vec::new();
    reader
        .scan(after, &mut |epoch, body| {
            let body = body.to_owned();
            found.push(Row { epoch, body });
            ControlFlow::Continue(())
        })
        .expect("scan");
    found
}

fn empty(open: &Opener) {
    let mut log = open();
    let reader = log.reader().expect("reader");
    assert!(all(&*reader, 0).is_empty());
    assert_eq!(reader.get(1), Ok(None));
    assert_eq!((reader.last_epoch(), reader.reserved()), (Ok(0), Ok(0)));
    put(&mut *log, &[], None).expect("an empty batch is no fault");
    let stat = reader.stat().expect("stat");
    assert_eq!((stat.entries, stat.first_epoch, stat.last_epoch), (0, 0, 0));
    log.rest().expect("rest");
    log.probe().expect("probe");
    log.reopen().expect("reopen");
    assert!(all(&*log.reader().expect("reader"), 0).is_empty());
}

fn order_and_cursors(open: &Opener) {
    let mut log = open();
    let reader = log.reader().expect("reader");
    let written = rows([1, 2, 5, 900, 901]);
    put(&mut *log, &written[..2], None).expect("append");
    put(&mut *log, &written[2..], None).expect("append");
    assert_eq!(all(&*reader, 0), written);
    assert_eq!(all(&*reader, 2), written[2..]);
    assert_eq!(all(&*reader, 3), written[2..]);
    assert!(all(&*reader, 901).is_empty());
    assert!(all(&*reader, u64::MAX).is_empty());
    assert_eq!(reader.get(5), Ok(Some(written[2].clone())));
    assert_eq!((reader.get(4), reader.get(u64::MAX)), (Ok(None), Ok(None)));
    let mut seen = 0;
    let stop = &mut |_, _: &str| {
        seen += 1;
        ControlFlow::Break(())
    };
    reader.scan(0, stop).expect("scan");
    assert_eq!(seen, 1);
    let stat = reader.stat().expect("stat");
    assert_eq!((stat.entries, stat.first_epoch, stat.last_epoch), (5, 1, 901));
}

fn disorder_leaves_nothing(open: &Opener) {
    let mut log = open();
    let reader = log.reader().expect("reader");
    put(&mut *log, &rows([10]), Some(20)).expect("append");
    for (wrong, epoch, after) in
        [(rows([10]), 10, 10), (rows([9]), 9, 10), (rows([11, 12, 12]), 12, 12), (rows([11, 13, 12]), 12, 13)]
    {
        let refused = put(&mut *log, &wrong, Some(99));
        assert_eq!(refused, Err(LogError::Disorder { epoch, after }));
    }
    let large = u64::MAX;
    assert!(matches!(put(&mut *log, &rows([11, large]), None), Err(LogError::Range { .. })));
    assert!(matches!(put(&mut *log, &[], Some(large)), Err(LogError::Range { .. })));
    assert_eq!(all(&*reader, 0), rows([10]));
    assert_eq!(reader.reserved(), Ok(20));
    put(&mut *log, &rows([11]), None).expect("a refusal breaks nothing");
    let mut new = open_again(log, open);
    let refused = put(&mut *new, &rows([0]), None);
    assert!(matches!(refused, Err(LogError::Disorder { after: 11, .. })));
}

fn open_again(log: Box<dyn Log>, open: &Opener) -> Box<dyn Log> {
    drop(log);
    open()
}

fn reserved_mark(open: &Opener) {
    let mut log = open();
    let reader = log.reader().expect("reader");
    put(&mut *log, &[], Some(1000)).expect("a mark alone");
    assert_eq!(reader.reserved(), Ok(1000));
    put(&mut *log, &rows([3]), Some(7)).expect("append");
    assert_eq!(reader.reserved(), Ok(1000), "never lowered by an append");
    put(&mut *log, &rows([1500]), Some(1200)).expect("append");
    assert_eq!(reader.reserved(), Ok(1500), "never below the last row");
    put(&mut *log, &rows([1501]), Some(3000)).expect("append");
    assert!(matches!(log.release(1500), Err(LogError::Disorder { epoch: 1500, after: 1501 })));
    log.release(1700).expect("release");
    assert_eq!(reader.reserved(), Ok(1700));
    drop(reader);
    let log = open_again(log, open);
    let reader = log.reader().expect("reader");
    assert_eq!((reader.reserved(), reader.last_epoch()), (Ok(1700), Ok(1501)));
}

fn any_text(open: &Opener) {
    let mut log = open();
    let bodies = [
        "{\"epoch\":1,\"text\":\"Grüße, 世界, \u{1F980}, e\u{301}\"}".to_owned(),
        "{\"epoch\":2,\"text\":\"a\\u0000b\"}".to_owned(),
        "{\"epoch\":3,\"text\":\"raw\0nul\"}".to_owned(),
        String::new(),
        format!("{{\"epoch\":5,\"text\":\"{}\"}}", "x".repeat(1 << 20)),
        "{\"epoch\":6,\"text\":\"'; DROP TABLE entries; --\"}".to_owned(),
    ];
    let written: Vec<Row> = (1..).zip(bodies).map(|(epoch, body)| Row { epoch, body }).collect();
    put(&mut *log, &written, None).expect("append");
    let log = open_again(log, open);
    let reader = log.reader().expect("reader");
    assert_eq!(all(&*reader, 0), written);
    assert_eq!(reader.get(5), Ok(Some(written[4].clone())));
}

fn reopened_and_opened_again(open: &Opener) {
    let mut log = open();
    put(&mut *log, &rows(1..=10), Some(64)).expect("append");
    let reader = log.reader().expect("reader");
    log.reopen().expect("reopen");
    assert_eq!(all(&*reader, 0), rows(1..=10), "an old reader still reads");
    put(&mut *log, &rows([11]), None).expect("append");
    log.probe().expect("probe");
    log.rest().expect("rest");
    log.rest().expect("rest with nothing to do");
    drop(reader);
    let mut log = open_again(log, open);
    put(&mut *log, &rows([12]), None).expect("append");
    let reader = log.reader().expect("reader");
    assert_eq!(all(&*reader, 0), rows(1..=12));
    assert_eq!(reader.stat().expect("stat").entries, 12);
}

fn many_rows_are_counted(open: &Opener) {
    let mut log = open();
    for start in (1..=9000).step_by(1000) {
        put(&mut *log, &rows(start..start + 1000), Some(20_000)).expect("append");
    }
    let reader = log.reader().expect("reader");
    assert_eq!(reader.stat().expect("stat").entries, 9000);
    let mut log = open_again(log, open);
    put(&mut *log, &rows([9500]), None).expect("append");
    let stat = log.reader().expect("reader").stat().expect("stat");
    assert_eq!((stat.entries, stat.last_epoch), (9001, 9500));
}

/// A reader beside a writer sees whole batches, and within a scan one moment only.
fn reading_beside_writing(open: &Opener) {
    const BATCH: u64 = 7;
    let mut log = open();
    let readers: Vec<_> = (0..2).map(|_| log.reader().expect("reader")).collect();
    let done = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = readers
        .into_iter()
        .map(|reader| {
            let done = Arc::clone(&done);
            thread::spawn(move || {
                let mut before = 0;
                while !done.load(Ordering::Relaxed) {
                    let floor = reader.last_epoch().expect("last");
                    let found = all(&*reader, 0);
                    let last = found.last().map_or(0, |row| row.epoch);
                    assert_eq!(last % BATCH, 0, "half a batch");
                    assert!(last >= floor && floor >= before, "went back");
                    assert_eq!(found, rows(1..=last), "a hole");
                    before = last;
                }
            })
        })
        .collect();
    for batch in 0..60 {
        let first = batch * BATCH + 1;
        put(&mut *log, &rows(first..first + BATCH), None).expect("append");
        if batch % 10 == 0 {
            log.rest().expect("rest never fails because of readers");
        }
    }
    done.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("reader");
    }
}

/// What is committed during a scan does not appear in it.
fn a_scan_is_of_one_moment(open: &Opener) {
    let mut log = open();
    put(&mut *log, &rows(1..=300), None).expect("append");
    let reader = log.reader().expect("reader");
    let mut seen = Vec::new();
    let mut next = 301;
    let mut each = |epoch, _: &str| {
        seen.push(epoch);
        if epoch % 100 == 0 {
            put(&mut *log, &rows([next]), None).expect("append during a scan");
            next += 1;
        }
        ControlFlow::Continue(())
    };
    reader.scan(0, &mut each).expect("scan");
    assert_eq!(seen, (1..=300).collect::<Vec<_>>());
    assert_eq!(reader.last_epoch(), Ok(303));
}

/// A part of the suite, by its name.
type Part = (&'static str, fn(&Opener));

const SUITE: [Part; 9] = [
    ("empty", empty),
    ("order_and_cursors", order_and_cursors),
    ("disorder_leaves_nothing", disorder_leaves_nothing),
    ("reserved_mark", reserved_mark),
    ("any_text", any_text),
    ("reopened_and_opened_again", reopened_and_opened_again),
    ("many_rows_are_counted", many_rows_are_counted),
    ("reading_beside_writing", reading_beside_writing),
    ("a_scan_is_of_one_moment", a_scan_is_of_one_moment),
];

#[test]
fn memory_conforms() {
    for (name, part) in SUITE {
        println!("memory: {name}");
        let log = MemoryLog::new();
        let open = move || -> Box<dyn Log> { Box::new(log.clone()) };
        part(&(Box::new(open) as Opener));
    }
}

#[test]
fn sqlite_conforms() {
    for (name, part) in SUITE {
        println!("sqlite: {name}");
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("a field");
        let open = move || -> Box<dyn Log> {
            Box::new(SqliteLog::open(&path, SqliteOptions::default()).expect("open"))
        };
        part(&(Box::new(open) as Opener));
        let report = verify(&dir.path().join("a field")).expect("verify");
        // Two of the texts in `any_text` are no JSON on purpose.
        assert_eq!(report.is_sound(), name != "any_text", "{:?}", report.faults);
        leaves_no_journal(&dir.path().join("a field"));
    }
}

/// A log that was closed in an orderly way is one file.
fn leaves_no_journal(dir: &Path) {
    let mut log = SqliteLog::open(dir, SqliteOptions::default()).expect("open");
    let clock = log.reader().expect("reader").last_epoch().expect("last");
    log.release(clock).expect("release");
    let wal = std::fs::metadata(dir.join("field.db-wal")).map_or(0, |metadata| metadata.len());
    assert_eq!(wal, 0, "something was left in the journal");
    drop(log);
    assert!(!dir.join("field.db-wal").exists());
}
