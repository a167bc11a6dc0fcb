//! Token budgets: how many tokens a text is for a language model, counted with a real vocabulary.
//!
//! The vocabulary is cl100k, a byte-pair encoding of 100,000 tokens. Others count a little more or less: on English
//! units written as JSON o200k counts 1.5 % less. cl100k is half as large, in the binary and in memory.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, PoisonError};

use bpe_openai::cl100k_base;

/// Longest token of the vocabulary, bytes: a text has at least one token for each so many.
const LONGEST_TOKEN_BYTES: u64 = 128;

/// Counts in one generation of the memory: two of them come to 2 MB, and hold what a busy team reads over and over.
const GENERATION: usize = 32 * 1024;

/// The first half of a text's digest: nobody can make two texts share it.
type Key = [u8; 16];

/// Counts tokens, and remembers what it counted: the same units are shown again and again, and counting one takes
/// fifty times as long as looking it up.
///
/// It remembers by the text itself, so whatever changes about a unit is counted anew.
#[derive(Debug, Default)]
pub struct Tokens {
    known: Mutex<Known>,
}

/// Counts by text, in two generations: when the young one is full it becomes the old one, which is forgotten.
#[derive(Debug, Default)]
struct Known {
    young: HashMap<Key, u32>,
    old: HashMap<Key, u32>,
}

impl Known {
    fn get(&mut self, key: &Key) -> Option<u32> {
        if let Some(count) = self.young.get(key) {
            return Some(*count);
        }
        let count = self.old.get(key).copied()?;
        self.insert(*key, count);
        Some(count)
    }

    fn insert(&mut self, key: Key, count: u32) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, count);
    }
}

impl Tokens {
    /// How many tokens a text has, if they are at most `most`. Takes time linear in the text, or in `most` where the
    /// text is far beyond it.
    #[must_use]
    pub fn count_up_to(&self, text: &str, most: u64) -> Option<u64> {
        if text.len() as u64 > most.saturating_mul(LONGEST_TOKEN_BYTES) {
            return None;
        }
        let digest = blake3::hash(text.as_bytes());
        let key = *digest.as_bytes().first_chunk().expect("a digest of 32 bytes");
        // Counting is done without holding the lock: two who count the same text at once find the same.
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key);
        let count = match known {
            Some(count) => u64::from(count),
            None => {
                let count = counted(text, most)?;
                if let Ok(count) = u32::try_from(count) {
                    self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, count);
                }
                count
            }
        };
        (count <= most).then_some(count)
    }
}

fn counted(text: &str, most: u64) -> Option<u64> {
    let encoder = cl100k_base();
    encoder.split(text).try_fold(0u64, |sum, piece| {
        let sum = sum + encoder.bpe.count(piece.as_bytes()) as u64;
        (sum <= most).then_some(sum)
    })
}

/// A budget that is spent text by text.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    most: u64,
    used: u64,
}

impl Budget {
    /// Nothing spent yet of so many tokens.
    #[must_use]
    pub fn of(most: u64) -> Self {
        Self { most, used: 0 }
    }

    /// Spends what a text costs, if so much is left, and tells it; else spends nothing.
    pub fn spend(&mut self, tokens: &Tokens, text: &str) -> Option<u64> {
        let cost = tokens.count_up_to(text, self.most - self.used)?;
        self.used += cost;
        Some(cost)
    }

    /// Takes back what was spent.
    pub fn give_back(&mut self, cost: u64) {
        self.used = self.used.saturating_sub(cost);
    }

    /// Tokens spent.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Tokens in all.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(text: &str) -> u64 {
        Tokens::default().count_up_to(text, u64::MAX).expect("no bound")
    }

    #[test]
    fn counts_are_those_of_the_vocabulary() {
        // As the reference implementation of cl100k counts them.
        for (text, tokens) in [
            ("", 0),
            ("hello world", 2),
            ("tiktoken is great!", 6),
            ("antidisestablishmentarianism", 6),
            ("2 + 2 = 4", 7),
            ("お誕生日おめでとう", 9),
        ] {
            assert_eq!(count(text), tokens, "{text}");
        }
    }

    #[test]
    fn no_token_is_longer_than_the_longest() {
        let encoder = &cl100k_base().bpe;
        let longest = (0..encoder.num_tokens() as u32).map(|token| encoder.token_len(token)).max();
        assert_eq!(longest, Some(LONGEST_TOKEN_BYTES as usize));
    }

    #[test]
    fn a_hostile_text_is_counted_in_time() {
        for text in ["x", " ", "ab", "市场增长", "🎉", "\n", "a1", "e\u{301}", "\u{e000}"] {
            let long = text.repeat(256 * 1024 / text.len());
            assert!(count(&long) >= long.len() as u64 / LONGEST_TOKEN_BYTES, "{text}");
        }
    }

    #[test]
    fn memory_is_bounded_and_forgets_the_oldest() {
        let mut known = Known::default();
        let key = |n: usize| blake3::hash(&n.to_le_bytes()).as_bytes()[..16].try_into().expect("16 bytes");
        for n in 0..3 * GENERATION {
            known.insert(key(n), n as u32);
            // Asked for again and again, it stays.
            assert_eq!(known.get(&key(0)), Some(0));
        }
        assert!(known.young.len() + known.old.len() <= 2 * GENERATION + 1);
        assert_eq!(known.get(&key(1)), None);
        assert_eq!(known.get(&key(3 * GENERATION - 1)), Some(3 * GENERATION as u32 - 1));
    }

    proptest! {
        #[test]
        fn a_bound_is_exact_and_what_is_remembered_changes_nothing(text in "(?s).{0,200}", near in -2i64..=2) {
            let all = count(&text);
            let tokens = Tokens::default();
            let most = all.saturating_add_signed(near);
            for _ in 0..2 {
                prop_assert_eq!(tokens.count_up_to(&text, most), (all <= most).then_some(all));
                prop_assert_eq!(tokens.count_up_to(&text, all), Some(all));
            }
        }

        #[test]
        fn a_budget_is_never_overspent(texts in prop::collection::vec(".{0,40}", 0..20), most in 0u64..60) {
            let tokens = Tokens::default();
            let mut budget = Budget::of(most);
            let mut used = 0;
            for text in texts {
                let cost = count(&text);
                let fits = used + cost <= most;
                prop_assert_eq!(budget.spend(&tokens, &text).is_some(), fits);
                used += if fits { cost } else { 0 };
                prop_assert_eq!(budget.used(), used);
            }
        }
    }
}
