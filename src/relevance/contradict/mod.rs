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
//! - `judge`: the verdict on two texts ([`clash`]), and every chosen number.
//!
//! To use it: make [`Claims`] of each unit once, compare a new unit's with those of its nearest by meaning and words,
//! and take each [`Clash`] for a conflict detected by `semantic`. The verdict's words go into its description.
//! `clash` knows neither authors, sessions nor times: units that supersede one another, or that somebody has said
//! support one another, are the caller's to leave out. English, German, Spanish and French have their grammar; in
//! other languages only figures are compared, where what is around them is the same.
//!
//! # Measured
//!
//! FIGURES
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
mod units;

pub use claims::Claims;
pub use judge::{Clash, Grounds, clash};
