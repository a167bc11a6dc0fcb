//! Relevance: text and numbers in, scores out.
//!
//! This room knows nothing of agents, connections or operations. It is pure: the same documents, need and
//! candidates give the same answer, bit for bit. It has no clock (the need says what is now), no randomness that
//! shows, no I/O; only its long walks call back now and then whoever owns their thread (`pace`), which changes nothing. A unit's confidence is not even an input: the protocol forbids it to count.
//!
//! The way of a text, in reading order:
//!
//! - `tokenize`, with `fold` for Unicode and `words` for stems and empty words: text to words;
//! - `lexicon`: words to numbers;
//! - `reading`: a document read, which many threads do at once, ready to be entered;
//! - `lexical`: the inverted index, made of `postings`, with the `standings` of its documents, and how well documents meet a need (BM25), whose words `query` chooses;
//! - `wordpiece`, `embed`: text to a direction, by the built-in model; `vectors`: how near directions are to another;
//! - `sessions`: what was said next to what; `ties`: what declared relations bring near;
//! - `closeness`: words, meaning and neighbours together;
//! - `score`: the factors of a candidate and their weighted sum; `weights` holds every chosen number;
//! - `shortlist`: the best of very many documents without a close look at each;
//! - `pace`: pauses in walks over many documents;
//! - `diversity`: damping by author, and the best of all;
//! - `reason`: the score in words;
//! - `summarize`: a text's most informative sentences for a need; `budget`: what a text costs in tokens;
//! - `groups`, `condense`: many documents sorted into groups, and the texts of one made into a paragraph;
//! - `rivals`: which documents a text may contradict; `contradict`: whether two texts do, and in what;
//! - `affinity`: how much a unit matters to a listener, judged by the two of them alone, for notifications.
//!
//! Factors (specification, section 8): semantic, lexical and relations, which together are the closeness to the need;
//! role, type, recency, the task where one is named, and diversity, which damps the sum of the others before the sort.
//! Each has a value in 0..=1; the weights sum to 1, so a score is in 0..=1 as it stands. With a hint the closeness
//! decides and the other factors part what is equally close; without one the need is role and interests, and
//! importance and newness weigh as much.
//!
//! Relations are of two kinds: neighbours in a session, which count with the meaning, and those that authors declared
//! ([`Web`]), which are walked from what is close by itself and from the asker's context.
//!
//! To add a factor: give it a field in [`Factors`] and a weight in both tables of `weights`, compute its value in
//! `View::about` from what `View` was given, and give it its phrase in `reason`. In a large Field only a short list is
//! scored: what a factor favours must be in the estimate of `shortlist`, as tasks are ([`Pool::tasks`]), or be looked at
//! beside it, as declared relations are.
//!
//! Text of any length and kind is taken: words are cut at 64 bytes, a document gives at most 8,192 distinct terms,
//! a need at most 64, and the meaning of a text is that of its first 16 KiB.

mod affinity;
mod budget;
mod closeness;
mod condense;
mod contradict;
mod diversity;
mod embed;
mod fold;
mod groups;
mod lexical;
mod lexicon;
mod pace;
mod postings;
mod query;
mod reading;
mod reason;
mod rivals;
mod score;
mod sessions;
mod shortlist;
mod standings;
mod summarize;
mod telling;
mod ties;
mod tokenize;
mod vectors;
mod weights;
mod wordpiece;
mod words;

pub use affinity::{Portrait, Profile};
pub use budget::{Budget, Tokens};
pub use condense::{Condenser, Quote};
pub use contradict::{Claims, Clash, Grounds, clash};
pub use groups::{Grouped, WordDirections, groups, nearest};
pub use lexical::{Document, Index, Meaning};
pub use pace::pause_with;
pub use reading::{Known, Reader, Reading};
pub use rivals::Sought;
pub use score::{Candidate, Factor, Factors, Kind, Need, Ranked, Ranking, Serves, rank};
pub use shortlist::{Pool, choose};
pub use summarize::Summarizer;
pub use ties::Web;
pub use vectors::{DIMENSIONS_MAX, Vector};

/// The embedding model, for those who tell of it.
pub mod embedding {
    pub use super::embed::{DIMENSIONS, Direction, Embedder, NAME};
}
