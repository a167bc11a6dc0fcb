//! The index of words: what is found, and that it comes out the same however it was filled.

use super::*;

fn document(content: &str) -> Document<'_> {
    Document {
        content,
        purpose: "Keep for the team",
        question: None,
        author: "ada",
        role: "engineer",
        session: None,
    }
}

fn matches(contents: &[&str], need: &str) -> Vec<f32> {
    let mut index = Index::new();
    for content in contents {
        index.push(&document(content));
    }
    index.matches(&Query::new(&index, [need], index.len()), 0, index.len())
}

#[test]
fn rare_words_and_more_words_count_more() {
    let found =
        matches(&["the market grows", "the market shrinks", "a market in Lyon", "nothing"], "market in Lyon");
    assert!(found[2] > found[0] && found[0] > 0.0 && found[3] == 0.0);
}

#[test]
fn any_field_is_found() {
    let mut index = Index::new();
    index.push(&document("one"));
    index.push(&Document {
        content: "two",
        purpose: "Validate the pricing",
        question: Some("How large is it?"),
        author: "researcher-01",
        role: "market_analyst",
        session: None,
    });
    for need in ["one", "two", "price", "large", "researcher-01", "markets", "analyst", "market_analyst"] {
        let found = index.matches(&Query::new(&index, [need], 2), 0, 2);
        let own = usize::from(need != "one");
        assert!(found[own] > 0.0 && found[1 - own] == 0.0, "{need} {found:?}");
    }
}

#[test]
fn a_word_that_all_have_tells_nothing() {
    let same: Vec<String> = (0..100).map(|i| format!("tell the {i}")).collect();
    let same: Vec<&str> = same.iter().map(String::as_str).collect();
    assert!(matches(&same, "tell").iter().all(|&found| found < 0.01));
}

#[test]
fn lengths_are_summed_across_blocks() {
    let mut index = Index::new();
    for i in 0..1_000 {
        index.push(&document(&"word ".repeat(i % 7)));
    }
    for horizon in [0, 1, 255, 256, 257, 511, 512, 1_000] {
        let sum: u64 = index.lengths[..horizon as usize].iter().map(|&length| u64::from(length)).sum();
        assert!((index.average_length(horizon) - (sum as f32 / horizon.max(1) as f32).max(1.0)).abs() < 1e-4);
    }
}

#[test]
fn hostile_text_has_a_bounded_cost() {
    let mut index = Index::new();
    let flood: String = (0..50_000).map(|i| format!("w{i}x ")).collect();
    index.push(&document(&flood));
    index.push(&document(&"a".repeat(1 << 20)));
    index.push(&document(&"same ".repeat(200_000)));
    assert!(index.postings.len() <= 2 * MAX_TERMS_A_DOCUMENT);
    assert!(index.memory_bytes() < 3 << 20, "{}", index.memory_bytes());
}

#[test]
fn threads_may_share_it() {
    fn shared<T: Send + Sync>() {}
    shared::<Index>();
}

#[test]
fn what_is_read_while_others_are_entered_comes_out_the_same() {
    let text = |at: u32| format!("fact{at} of market{} that grew by {} in spring{}", at % 7, at % 5, at / 90);
    let author = |at: u32| format!("agent-{}x", at / 50);
    let said = |content, author| Document { author, ..document(content) };
    let (mut plain, mut ahead, mut reader) = (Index::new(), Index::new(), Reader::default());
    let texts: Vec<(String, String)> = (0..400).map(|at| (text(at), author(at))).collect();
    let docs: Vec<Document<'_>> = texts.iter().map(|(text, author)| said(text, author)).collect();
    docs.iter().for_each(|doc| plain.push(doc));
    let mut read = |known: &Known, docs: &[Document<'_>]| -> Vec<Reading> {
        docs.iter().map(|doc| known.read(&mut reader, doc, false)).collect()
    };
    let mut batches = docs.chunks(60).peekable();
    let mut readings = read(&ahead.known(), batches.peek().expect("documents"));
    while let Some(docs) = batches.next() {
        docs.iter().zip(&mut readings).for_each(|(doc, reading)| ahead.take_up(doc, reading));
        let known = ahead.known();
        let next = batches.peek().map(|next| read(&known, next));
        for (doc, reading) in docs.iter().zip(&readings) {
            ahead.enter(doc, Kind::Finding, None, reading);
        }
        assert!(Arc::ptr_eq(&known.lexicon, &ahead.lexicon), "nothing had to be copied");
        readings = next.unwrap_or_default();
    }
    for need in ["fact17 grows", "spring3 market2", "agent-4x", "springs", "nothing of that"] {
        let of = |index: &Index| index.matches(&Query::new(index, [need], 400), 0, 400);
        assert_eq!(of(&plain), of(&ahead), "{need}");
    }
}

#[test]
fn one_match_is_the_same_as_that_among_all() {
    let mut index = Index::new();
    let count = 2 * MATCHED as u32 + 77;
    for at in 0..count {
        let words = "many ".repeat(at as usize % 5) + if at % 3 == 0 { "some" } else { "else" };
        index.push(&document(&format!("{words} of{}", at % 101)));
    }
    for (horizon, warm) in [(count, 0), (MATCHED as u32, 0), (count - 80, MATCHED as u32 + 3), (1, 0), (0, 0)]
    {
        let query = Query::new(&index, ["some of7 many engineers"], horizon);
        let norms = Norms::new(&index, horizon);
        let all = index.matches(&query, warm, horizon);
        assert_eq!(all.len(), horizon as usize);
        for (document, found) in (0..).zip(&all) {
            let own = if document < warm { 0.0 } else { index.match_of(&query, &norms, document) };
            assert_eq!(own.to_bits(), found.to_bits(), "{document} before {horizon}");
        }
    }
}
