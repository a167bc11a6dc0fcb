//! The words of a need: which of them are looked for, and how much each tells.

use hashbrown::HashMap;

use crate::relevance::lexical::Index;
use crate::relevance::lexicon::Term;
use crate::relevance::tokenize::{MAX_WORD_BYTES, Tokenizer, Word};
use crate::relevance::{weights, words};

/// Terms that are looked up, the most telling ones: bounds the work a long hint makes.
const MAX_TERMS: usize = 64;

/// Distinct words that are read at all, from the start of the need.
const MAX_WORDS: usize = 4_096;

/// The words of a need, ready to be looked for.
pub(super) struct Query {
    /// Most telling first.
    pub terms: Vec<QueryTerm>,
    /// What a document has in all that meets the need as well as can be expected; above 0.
    pub ideal: f32,
    /// What a match is still worth where meaning is weighed too, 0..=1: the fewer of the need's words are known here,
    /// the more those that are met are met by chance, and the meaning says better what is close.
    pub trust: f32,
    some_word: bool,
}

/// A term that some document before the horizon has.
pub(super) struct QueryTerm {
    pub term: u32,
    /// Documents before the horizon that have it: the length of the prefix of its postings.
    pub documents: usize,
    pub weight: f32,
    /// The word as the asker wrote it.
    pub word: String,
    phrase: usize,
}

impl Query {
    /// Makes a query of the phrases that say a need. A document with all words of the richest phrase is ideal: of
    /// several interests one is enough.
    pub fn new<'a>(index: &Index, phrases: impl IntoIterator<Item = &'a str>, horizon: u32) -> Self {
        let mut words = Words::default();
        let mut tokenizer = Tokenizer::default();
        for (phrase, text) in phrases.into_iter().enumerate() {
            tokenizer.each(text, &mut |word| words.add(word, phrase, index));
        }
        let asked = words.telling();
        let some_word = !asked.is_empty();
        let mut terms = Vec::with_capacity(asked.len());
        let mut unknown = 0usize;
        for word in asked {
            let (term, documents) = match word.term {
                Term::Known(term) => (term, index.documents_with(term, horizon)),
                Term::Unknown(_) => (0, 0),
            };
            if documents == 0 {
                unknown += 1;
            } else {
                let weight = weights::rarity(documents, horizon) * weights::repeated(word.count);
                terms.push(QueryTerm { term, documents, weight, word: word.shown, phrase: word.phrase });
            }
        }
        // Of equally telling words the longer first, so that an identifier comes before its parts; else, the sort
        // being stable, as asked.
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.word.len().cmp(&a.word.len())));
        terms.truncate(MAX_TERMS);
        // Words that nearly every document has cost the most and tell the least.
        let least = terms.first().map_or(0.0, |term| term.weight * weights::LEAST_SHARE);
        terms.retain(|term| term.weight >= least);
        let alone = ideal(&terms, unknown, horizon, weights::UNKNOWN_WORD);
        let beside_meaning = ideal(&terms, unknown, horizon, weights::UNKNOWN_WORD_BESIDE_MEANING);
        Self { terms, ideal: alone, trust: alone / beside_meaning, some_word }
    }

    /// What a term counts in a document that has it as often as counts.
    pub fn weight(&self, term: &QueryTerm) -> f32 {
        term.weight * (weights::K1 + 1.0) / self.ideal
    }

    /// Whether the need has no word at all, known or not.
    pub fn is_empty(&self) -> bool {
        !self.some_word
    }

    /// The words that the document has, as the asker wrote them, the most telling first, at most `most`.
    pub fn shared(&self, index: &Index, document: u32, most: usize) -> Vec<&str> {
        let mut shared: Vec<&str> = Vec::new();
        for term in self.terms.iter().filter(|term| index.has(document, term)) {
            if shared.len() == most {
                break;
            }
            if !shared.iter().any(|word| says_the_same(word, &term.word)) {
                shared.push(&term.word);
            }
        }
        shared
    }
}

/// Whether one word is a part of the other, an identifier: beside "market_researcher", "market" says nothing new.
fn says_the_same(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    long.contains(short) && long.chars().skip(1).any(|c| !c.is_lowercase())
}

fn ideal(terms: &[QueryTerm], unknown: usize, horizon: u32, of_unknown: weights::Unknown) -> f32 {
    let phrases = terms.iter().map(|term| term.phrase).max().map_or(0, |last| last + 1);
    let mut sums = vec![0.0f32; phrases];
    for term in terms {
        sums[term.phrase] += term.weight;
    }
    let known = sums.into_iter().fold(0.0, f32::max);
    let rarest = weights::rarity(1, horizon);
    // A need that speaks of things unknown here is met less by what happens to share its other words.
    let missed = (unknown as f32 * rarest * of_unknown.each).min(known * of_unknown.most);
    (known + missed).max(rarest * weights::LEAST_IDEAL).max(f32::MIN_POSITIVE)
}

/// Distinct words of a need, in the order of their first sight.
#[derive(Default)]
struct Words {
    found: Vec<Asked>,
    places: HashMap<Term, usize>,
}

struct Asked {
    term: Term,
    shown: String,
    phrase: usize,
    count: u32,
    empty: bool,
}

impl Words {
    fn add(&mut self, word: Word<'_>, phrase: usize, index: &Index) {
        if self.found.len() >= MAX_WORDS {
            return;
        }
        let term = index.term(word.text);
        if let Some(&at) = self.places.get(&term) {
            self.found[at].count += 1;
            return;
        }
        // "US" and "IT" are no pronouns.
        let capitals = word.written.len() > 1 && word.written.bytes().all(|b| b.is_ascii_uppercase());
        let empty = !capitals && words::is_empty_word(word.text);
        self.places.insert(term.clone(), self.found.len());
        self.found.push(Asked { term, shown: shown(word), phrase, count: 1, empty });
    }

    /// Without the empty words, unless there are no others.
    fn telling(mut self) -> Vec<Asked> {
        if self.found.iter().any(|word| !word.empty) {
            self.found.retain(|word| !word.empty);
        }
        self.found
    }
}

/// The word as its writer knows it: with its accents, where it stands alone in its piece.
fn shown(word: Word<'_>) -> String {
    // Pieces without a space can be as long as the text, and are looked at for each of their words.
    let single =
        word.piece.len() <= 2 * MAX_WORD_BYTES && !word.piece.is_ascii() && word.text.chars().count() > 2;
    let alone = if single { word.piece.trim_matches(|c: char| !c.is_alphanumeric()) } else { "" };
    let own = !alone.is_empty() && alone.chars().all(char::is_alphabetic);
    let text = if own { alone } else { word.written };
    text.chars().take(MAX_WORD_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relevance::lexical::Document;

    fn index(contents: &[&str]) -> Index {
        let mut index = Index::new();
        for content in contents {
            index.push(&Document {
                content,
                purpose: "",
                question: None,
                author: "",
                role: "",
                session: None,
            });
        }
        index
    }

    fn shared(content: &str, need: &str) -> Vec<String> {
        let index = index(&[content, "something else", "and a third"]);
        let query = Query::new(&index, [need], 3);
        query.shared(&index, 0, 4).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn empty_words_count_only_among_themselves() {
        assert_eq!(shared("what is the plan to be", "What is the plan?"), ["plan"]);
        assert_eq!(shared("what is the plan to be", "what is to be?"), ["what", "is", "to", "be"]);
        assert_eq!(shared("us offices", "US offices"), ["offices", "US"]);
        assert!(shared("us offices", "about us and plans").is_empty());
    }

    #[test]
    fn words_are_shown_as_asked() {
        assert_eq!(
            shared("the markets grew in a cafe", "Growing market, Cafés"),
            ["Growing", "market", "Cafés"]
        );
        assert_eq!(shared("see market_researcher", "ask the market_researcher!"), ["market_researcher"]);
        assert_eq!(shared("a party of art", "art party"), ["party", "art"]);
    }

    #[test]
    fn a_huge_need_keeps_the_rarest_words() {
        let mut contents: Vec<String> = (0..500).map(|i| format!("common filler word{i}")).collect();
        contents.push("common needle".to_owned());
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        let index = index(&contents);
        let need = "common filler needle ".to_owned() + &contents.join(" ");
        let query = Query::new(&index, [&*need], index.len());
        assert_eq!(query.terms.len(), MAX_TERMS);
        assert!(query.terms.is_sorted_by(|a, b| a.weight >= b.weight));
        assert!(!query.shared(&index, 500, 4).is_empty());
        assert!(query.ideal.is_finite() && query.ideal > 0.0);
    }

    #[test]
    fn a_need_in_unknown_words_trusts_the_known_less() {
        let index = index(&["market growth", "other", "third"]);
        let trust = |need: &str| Query::new(&index, [need], 3).trust;
        assert_eq!(trust("market growth"), 1.0);
        assert!(trust("market growth zyxx") < 1.0);
        assert!(trust("market zyxx zyxy zyxz") < trust("market growth zyxx"));
        let flood: String = (0..1_000).map(|i| format!(" zyx{i}a")).collect();
        assert!(trust(&format!("market growth{flood}")) > 0.2);
        assert!(trust("zyxx").is_finite() && trust("").is_finite());
    }

    #[test]
    fn unknown_words_make_the_rest_tell_less() {
        let index = index(&["market growth", "other", "third"]);
        let plain = Query::new(&index, ["market growth"], 3);
        let strange = Query::new(&index, ["market growth zyxx zyxy"], 3);
        assert!(index.matches(&strange, 0, 3)[0] < index.matches(&plain, 0, 3)[0]);
        assert!(Query::new(&index, ["...", ""], 3).is_empty());
        assert!(!Query::new(&index, ["zyxx"], 3).is_empty());
    }
}
