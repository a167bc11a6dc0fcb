//! Noticing contradictions in text, without a language model.
//!
//! Nearness in meaning cannot tell a contradiction: a text and its denial are nearer to each other than two
//! paraphrases. So the two texts are taken apart into claims, each two claims are laid side by side, and the one
//! opposed element is looked for: a negation on one side, words that exclude one another, values or names that
//! cannot both be right. It counts only if enough of the rest is the same and nothing else explains the difference:
//! another subject, time, place or case, a range that contains the number, the same number written otherwise.
//!
//! The way of a text, in reading order:
//!
//! - `scan`: a text to words, numbers and ends of sentences;
//! - `grammar`, with `grammar.txt` and `opposites.txt`: what words do in a sentence, and which exclude one another;
//! - `units`, `numbers`, `dates`, `quantities`: numbers, dates and versions as what they mean;
//! - `claims`: what a text claims, made once for each text ([`Claims::of`]);
//! - `align`: two claims side by side;
//! - `judge`: the verdict on two texts ([`clash`]), and every chosen number;
//! - `tell`: the verdict in words.
//!
//! To use it: make [`Claims`] of each unit once, compare a new unit's with those of its nearest by meaning and words,
//! and take each [`Clash`] for a conflict detected by `semantic`. The verdict's words go into its description.
//! `clash` knows neither authors, sessions nor times: units that supersede one another, or that somebody has said
//! support one another, are the caller's to leave out. English, German, Spanish and French have their grammar; in
//! other languages only figures are compared, where what is around them is the same.
//!
//! # Measured
//!
//! `akashik bench contradictions --pairs FILE --half even|odd` on SICK 2014 (5,000 pairs of sentences; the rules were
//! tuned on the even lines), the test `pairs_are_judged_rightly` on `pairs.tsv`, `akashik bench contradictions --units
//! FILE` on true texts, each against the nearest older ones by meaning and words.
//!
//! | | pairs | precision | recall | F1 | entailed flagged |
//! |---|---|---|---|---|---|
//! | SICK, even lines (tuned on) | 2,500 | .943 | .827 | .881 | 0.1 % |
//! | SICK, odd lines | 2,500 | .905 | .832 | .867 | 0 % |
//! | `pairs.tsv`, `tune` | 208 | 1.00 | .96 | .98 | |
//! | `pairs.tsv`, `held` | 206 | 1.00 | .93 | .96 | |
//! | `pairs.tsv`, `last`, when first judged | 80 | .97 | .85 | .91 | |
//! | `pairs.tsv`, `last`, now | 80 | 1.00 | .98 | .99 | |
//! | `pairs.tsv`, `subject` (tuned on) | 58 | 1.00 | 1.00 | 1.00 | |
//!
//! | true texts | texts | compared with | flagged |
//! |---|---|---|---|
//! | turns of conversations (LoCoMo) | 1,451 | 16 nearest | 0 |
//! | the same | 1,451 | 24 nearest | 1 |
//! | documentation of some 270 libraries, paragraph by paragraph | 6,288 | 24 nearest | 121 |
//!
//! The last is the hard case and marks the limit: sentences of one pattern about different things that none of them
//! names ("the minimum supported version is 1.61", "returns an error if"). Optimised, making claims of a text takes
//! 30 to 80 µs, and comparing two 1 to 3 µs.
//!
//! The documentation was counted before the last rules (`subject`); the rest is of now. Words that are only near in
//! meaning and begin what is measured count as another subject, so that two figures of one thing under two names that no
//! list holds together are missed. What a verdict quotes is quoted from the folded text, without accents.
//!
//! What it cannot do: know the world ("returns null" and "throws" exclude one another, "is in Paris" and "is in
//! France" do not), follow "it" and "the latter" to another sentence, or see that two agents measured the same thing
//! under other conditions that neither wrote down.

mod align;
mod claims;
mod dates;
mod grammar;
mod judge;
#[cfg(test)]
mod judge_tests;
mod numbers;
mod quantities;
mod scan;
mod tell;
mod units;

/// Whether a folded lower-case word is one of grammar in any known language, or one that carries little.
pub(super) fn is_grammar(word: &str) -> bool {
    grammar::lexicon().is_grammar(word)
}

pub use claims::Claims;
pub use judge::{Clash, Grounds, clash};
