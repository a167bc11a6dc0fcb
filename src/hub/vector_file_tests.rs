//! The file of vectors: what was written comes back, and what is damaged or foreign does not.

use super::*;

const DIMENSIONS: usize = 64;

fn belonging() -> Belonging {
    Belonging { model: "model-1".to_owned(), dimensions: DIMENSIONS, log: identity("first") }
}

fn records(from: u64, count: u64) -> Vec<Record> {
    let vector = |at: u64| Vector::new(&vec![at as f32 + 1.0; DIMENSIONS]).expect("a direction");
    let record =
        |at: u64| Record { unit: UnitId::new(at, (at % 3) as u32), text: at as u32 * 7, vector: vector(at) };
    (from..from + count).map(record).collect()
}

fn write(path: &Path, belonging: &Belonging, keep: u64, batches: &[Vec<Record>]) {
    let (jobs, thread) = spawn_writer("test", path.to_owned()).expect("a thread");
    jobs.send(Job::Begin { belonging: belonging.clone(), keep }).expect("a writer");
    for batch in batches {
        jobs.send(Job::Append(batch.clone())).expect("a writer");
    }
    drop(jobs);
    thread.join().expect("no panic");
}

/// Everything that can be read, and where it ends.
fn read(path: &Path, belonging: &Belonging) -> Option<(Vec<Record>, u64)> {
    let mut reader = VectorReader::open(path, belonging)?;
    let mut all = Vec::new();
    while let Some(records) = reader.next_block() {
        all.extend(records);
    }
    Some((all, reader.good()))
}

#[test]
fn what_was_written_comes_back_in_order() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(FILE_NAME);
    assert!(read(&path, &belonging()).is_none());
    write(&path, &belonging(), 0, &[records(0, 3), records(3, VECTOR_BLOCK_RECORDS_MAX as u64 + 5)]);
    let (all, good) = read(&path, &belonging()).expect("it belongs here");
    assert_eq!(all, records(0, VECTOR_BLOCK_RECORDS_MAX as u64 + 8));
    assert_eq!(good, std::fs::metadata(&path).unwrap().len());
    write(&path, &belonging(), good, &[records(9_000, 1)]);
    assert_eq!(read(&path, &belonging()).unwrap().0.last(), records(9_000, 1).last());
}

#[test]
fn another_models_or_logs_file_is_not_taken() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(FILE_NAME);
    write(&path, &belonging(), 0, &[records(0, 3)]);
    let others = [
        Belonging { model: "model-2".to_owned(), ..belonging() },
        Belonging { dimensions: 65, ..belonging() },
        Belonging { log: identity("other"), ..belonging() },
    ];
    for other in others {
        assert!(read(&path, &other).is_none(), "{other:?}");
        // Made anew, it holds nothing of before.
        write(&path, &other, 0, &[]);
        assert_eq!(read(&path, &other).unwrap().0, []);
        write(&path, &belonging(), 0, &[records(0, 3)]);
    }
}

#[test]
fn any_damage_ends_the_file_and_never_shows_a_wrong_record() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(FILE_NAME);
    let batches = [records(0, 2), records(2, 2), records(4, 2)];
    write(&path, &belonging(), 0, &batches);
    let whole = std::fs::read(&path).unwrap();
    let all: Vec<Record> = batches.concat();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        if let Some((found, good)) = read(&path, &belonging()) {
            assert!(all.starts_with(&found) && good <= length as u64 && found.len() % 2 == 0);
            assert!(found.len() < all.len(), "{length}");
        }
    }
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        std::fs::write(&path, &damaged).unwrap();
        if let Some((found, good)) = read(&path, &belonging()) {
            assert!(all.starts_with(&found) && found.len() < all.len(), "{at}");
            // Written on behind what is whole, the damage is gone.
            write(&path, &belonging(), good, &[records(70, 1)]);
            let again = read(&path, &belonging()).unwrap().0;
            assert_eq!(again, [found, records(70, 1)].concat());
        }
    }
}

#[test]
fn a_text_has_its_own_checksum() {
    let doc = |content, question, purpose| Document {
        content,
        purpose,
        question,
        author: "a",
        role: "r",
        session: None,
    };
    let texts =
        [doc("ab", None, "c"), doc("a", None, "bc"), doc("a", Some("b"), "c"), doc("ab", Some("c"), "")];
    let checksums: std::collections::BTreeSet<u32> = texts.iter().map(text_checksum).collect();
    assert_eq!(checksums.len(), texts.len());
    assert_eq!(text_checksum(&texts[0]), text_checksum(&Document { author: "b", ..texts[0] }));
}
