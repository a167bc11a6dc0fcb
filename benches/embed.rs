//! Texts that the built-in model embeds in a second on one core: plain English, the same with accents, and with words that it does not know.
//!
//! `cargo bench --bench embed -- [texts] [words]`

use std::hint::black_box;

use akashik_hub::relevance::embedding::Embedder;
use cpu_time::ThreadTime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Words as prose has them: some common, some rare, some that the model must cut into pieces.
const WORDS: &str = "the of and to in a is that for it was on with as be at by this we not have from or which team \
    market growth European pricing decision database PostgreSQL invoice latency cache deployment Kubernetes rollout \
    researcher analyst strategy finding observation constraint assumption because therefore however customer churn \
    quarter revenue budget forecast schema migration endpoint authentication tokenizer observability p99 regression \
    refactoring idempotent websocket backpressure throughput benchmark Figma onboarding retention SaaS compliance GDPR \
    audit, review. meeting; design: (draft) \"final\" 2026 14% v1.2 mem-42 don't it's end-to-end user_id camelCase";

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let texts: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let words: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(60);
    let plain = corpus(words, |word| word.to_owned());
    let accented = corpus(words, |word| word.replace('e', "é"));
    let strange = corpus(words, |word| word.chars().rev().collect());
    for (name, corpus) in [("plain", plain), ("accented", accented), ("strange", strange)] {
        let bytes = corpus.iter().map(String::len).sum::<usize>() / corpus.len();
        let mut embedder = Embedder::default();
        let began = ThreadTime::now();
        let known = (0..texts)
            .filter(|at| black_box(embedder.embed([(corpus[at % corpus.len()].as_str(), 1.0)])).is_some())
            .count();
        let spent = began.elapsed().as_secs_f64();
        assert_eq!(known, texts, "every text has known words");
        println!(
            "{name:>8}: {:>8.0} texts/s of {words} words ({bytes} bytes), {:.2} µs of CPU each",
            texts as f64 / spent,
            spent / texts as f64 * 1e6
        );
    }
}

/// More texts than fit into the processor's nearest memory.
fn corpus(words: usize, spelled: impl Fn(&str) -> String) -> Vec<String> {
    let known: Vec<String> = WORDS.split_whitespace().map(spelled).collect();
    let mut rng = SmallRng::seed_from_u64(7);
    let mut text = || {
        let picked = (0..words).map(|_| {
            // The square prefers the first, as language does.
            let at = (rng.random::<f64>().powi(2) * known.len() as f64) as usize;
            known[at.min(known.len() - 1)].as_str()
        });
        picked.collect::<Vec<_>>().join(" ")
    };
    (0..4_096).map(|_| text()).collect()
}
