//! Several texts made into one paragraph (specification, section 7, COMPACT): their most central sentences, none that
//! says the same again, with who said them.
//!
//! Sentence after sentence is taken that tells the most words not yet told, for its length; a word counts the more, the
//! more of the texts have it. So what is common to them comes first and what is said once follows while there is room.
//! What the texts are found by and no sentence has room for is named at the end: of that only what says something alone
//! (`telling`). Room that is left then goes to sentences again.

use std::collections::{BTreeMap, HashMap};

use unicode_segmentation::UnicodeSegmentation;

use super::summarize::cut;
use super::telling::Telling;
use super::tokenize::Tokenizer;
use super::words::{Stems, is_empty_word};

/// A text to be quoted.
#[derive(Debug, Clone, Copy)]
pub struct Quote<'a> {
    /// Who said it.
    pub author: &'a str,
    /// What was said.
    pub content: &'a str,
}

/// Of one text no more than this is read, bytes: what matters about a unit stands at its beginning.
const READ_MAX_BYTES: usize = 16 * 1024;
/// And no more sentences than these.
const SENTENCES_MAX: usize = 48;
/// The longest piece of a sentence that is quoted, characters.
const SENTENCE_CHARS: usize = 240;
/// The longest piece of an author's id, characters.
const AUTHOR_CHARS: usize = 40;
/// The part of the room that is kept for the words at the end: one in so many.
const WORDS_SHARE: usize = 11;
/// What stands before those words.
const ALSO: &str = "Also about: ";

/// What a word with a figure counts more: numbers and dates are what is looked for later.
const FIGURE: f32 = 1.5;
/// What a word counts when it was told already.
const AGAIN: f32 = 0.05;
/// What a further sentence of a text that is quoted already counts against the first of another.
const SAME_TEXT: f32 = 0.7;

/// Makes paragraphs; keeps its buffers between them.
pub struct Condenser {
    tokenizer: Tokenizer,
    stems: Stems,
    telling: Telling,
}

impl Default for Condenser {
    fn default() -> Self {
        let stems = Stems::new();
        Self { tokenizer: Tokenizer::default(), telling: Telling::new(&stems), stems }
    }
}

struct Sentence {
    /// Which text it is of.
    text: usize,
    said: String,
    chars: usize,
    /// Its words, as numbers, each once.
    words: Vec<u32>,
}

/// The words of some texts.
#[derive(Default)]
struct Vocabulary {
    numbers: HashMap<String, u32>,
    /// By number: the word as it was first written, and in how many texts it stands.
    written: Vec<(String, u32)>,
    /// By number: whether it says something alone.
    tells: Vec<bool>,
    last_text: Vec<usize>,
}

impl Condenser {
    /// A paragraph of at most `most` characters made of these texts, which are given in order of time. Empty if they
    /// are.
    pub fn condense(&mut self, quotes: &[Quote<'_>], most: usize) -> String {
        let mut vocabulary = Vocabulary::default();
        let sentences = self.sentences(quotes, &mut vocabulary);
        let weights: Vec<f32> = vocabulary.written.iter().map(|(word, texts)| weight(word, *texts)).collect();
        let all: usize = sentences.iter().map(|sentence| sentence.chars + 1).sum();
        let room = if all + quotes.len() * 8 <= most { most } else { most - most / WORDS_SHARE };
        let mut choice = Choice::of(&sentences, quotes, &weights);
        let left = most - room + choice.take(room);
        let words = untold(&sentences, &choice, &vocabulary, &weights, left);
        let listed = list(&words, &vocabulary).chars().count() + 1;
        words.iter().for_each(|word| choice.told[*word as usize] = true);
        let before = choice.chosen.len();
        choice.take(left.saturating_sub(if words.is_empty() { 0 } else { listed }));
        let words: Vec<u32> = words
            .into_iter()
            .filter(|word| !choice.chosen[before..].iter().any(|at| sentences[*at].words.contains(word)))
            .collect();
        choice.chosen.sort_unstable();
        let mut text = written(&sentences, quotes, &choice.chosen);
        if !words.is_empty() {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&list(&words, &vocabulary));
        }
        text
    }

    fn sentences(&mut self, quotes: &[Quote<'_>], vocabulary: &mut Vocabulary) -> Vec<Sentence> {
        let mut all = Vec::new();
        for (text, quote) in quotes.iter().enumerate() {
            let content = &quote.content[..quote.content.floor_char_boundary(READ_MAX_BYTES)];
            let said = content.unicode_sentences().flat_map(str::lines).map(str::trim);
            for said in said.filter(|said| !said.is_empty()).take(SENTENCES_MAX) {
                let said = one_line(said);
                let words = self.words(&said, text, vocabulary);
                all.push(Sentence { text, chars: said.chars().count(), said, words });
            }
        }
        all
    }

    fn words(&mut self, sentence: &str, text: usize, vocabulary: &mut Vocabulary) -> Vec<u32> {
        let mut words = Vec::new();
        let (stems, telling) = (&self.stems, &self.telling);
        self.tokenizer.each(sentence, &mut |word| {
            if !is_empty_word(word.text) {
                words.push(vocabulary.number(&stems.stem(word.text), word.written, text, telling));
            }
        });
        words.sort_unstable();
        words.dedup();
        words
    }
}

impl Vocabulary {
    fn number(&mut self, stem: &str, written: &str, text: usize, telling: &Telling) -> u32 {
        if let Some(number) = self.numbers.get(stem) {
            let at = *number as usize;
            if self.last_text[at] != text {
                (self.written[at].1, self.last_text[at]) = (self.written[at].1 + 1, text);
            }
            return *number;
        }
        let number = self.written.len() as u32;
        self.numbers.insert(stem.to_owned(), number);
        self.written.push((written.to_owned(), 1));
        self.tells.push(telling.tells(stem, written));
        self.last_text.push(text);
        number
    }
}

fn weight(word: &str, texts: u32) -> f32 {
    let figure = if word.contains(|c: char| c.is_ascii_digit()) { FIGURE } else { 1.0 };
    (1.0 + (texts as f32).ln()) * figure
}

/// On one line, not longer than is quoted, with an end.
fn one_line(said: &str) -> String {
    let mut line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > SENTENCE_CHARS {
        line = cut(&line, SENTENCE_CHARS);
    }
    if !line.ends_with(['.', '!', '?', '…', ':', ';', '。', '！', '？']) {
        line.push('.');
    }
    line
}

fn author(quote: &Quote<'_>) -> String {
    quote.author.chars().take(AUTHOR_CHARS).collect()
}

/// Which sentences are told.
struct Choice<'a> {
    sentences: &'a [Sentence],
    weights: &'a [f32],
    /// By text: characters of the name that stands before it.
    labels: Vec<usize>,
    /// By text: whether a sentence of it is told.
    quoted: Vec<bool>,
    /// By word: whether it is told.
    told: Vec<bool>,
    /// The sentences that are not told.
    open: Vec<usize>,
    chosen: Vec<usize>,
}

impl<'a> Choice<'a> {
    fn of(sentences: &'a [Sentence], quotes: &[Quote<'_>], weights: &'a [f32]) -> Self {
        Self {
            sentences,
            weights,
            labels: quotes.iter().map(|quote| author(quote).chars().count() + 3).collect(),
            quoted: vec![false; quotes.len()],
            told: vec![false; weights.len()],
            open: (0..sentences.len()).collect(),
            chosen: Vec::new(),
        }
    }

    /// Characters that a sentence takes.
    fn cost(&self, at: usize) -> usize {
        let Sentence { text, chars, .. } = self.sentences[at];
        chars + 1 + if self.quoted[text] { 0 } else { self.labels[text] }
    }

    /// What a sentence tells that is not told yet, for its length.
    fn worth(&self, at: usize) -> f32 {
        let Sentence { text, words, .. } = &self.sentences[at];
        let counts = |word: &u32| {
            let again = if self.told[*word as usize] { AGAIN } else { 1.0 };
            self.weights[*word as usize] * again
        };
        let gain: f32 = words.iter().map(counts).sum();
        let new = words.iter().any(|word| !self.told[*word as usize]);
        let gain = if self.quoted[*text] { gain * SAME_TEXT } else { gain };
        if new { gain / (self.cost(at) as f32).sqrt() } else { 0.0 }
    }

    /// Takes sentences while there is room; what is left of it.
    fn take(&mut self, mut room: usize) -> usize {
        loop {
            let mut open = std::mem::take(&mut self.open);
            let fits = open.iter().copied().filter(|at| self.cost(*at) <= room);
            let best = fits.map(|at| (self.worth(at), at)).filter(|(worth, _)| *worth > 0.0);
            let best = best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
            open.retain(|at| best.is_none_or(|(_, best)| *at != best));
            self.open = open;
            let Some((_, at)) = best else { return room };
            room -= self.cost(at);
            let Sentence { text, words, .. } = &self.sentences[at];
            self.quoted[*text] = true;
            words.iter().for_each(|word| self.told[*word as usize] = true);
            self.chosen.push(at);
        }
    }
}

/// The chosen sentences, those in a row of one author behind that author's name.
fn written(sentences: &[Sentence], quotes: &[Quote<'_>], chosen: &[usize]) -> String {
    let mut text = String::new();
    let mut speaking = None;
    for at in chosen {
        let Sentence { text: of, said, .. } = &sentences[*at];
        let quote = &quotes[*of];
        if !text.is_empty() {
            text.push(' ');
        }
        if speaking != Some(quote.author) {
            text.push_str(&author(quote));
            text.push_str(": ");
            speaking = Some(quote.author);
        }
        text.push_str(said);
    }
    text
}

/// The weightiest words that no chosen sentence tells and that say something alone, of texts that are not quoted first, as
/// many as there is room for in a list.
fn untold(
    sentences: &[Sentence],
    choice: &Choice<'_>,
    vocabulary: &Vocabulary,
    weights: &[f32],
    room: usize,
) -> Vec<u32> {
    let mut named = choice.told.clone();
    // By text, so that each has its turn.
    let mut left: BTreeMap<(bool, usize), Vec<u32>> = BTreeMap::new();
    for sentence in sentences {
        let of = left.entry((choice.quoted[sentence.text], sentence.text)).or_default();
        let tells = |word: &&u32| !named[**word as usize] && vocabulary.tells[**word as usize];
        of.extend(sentence.words.iter().filter(tells));
    }
    for words in left.values_mut() {
        words.sort_by(|a, b| weights[*b as usize].total_cmp(&weights[*a as usize]).then(a.cmp(b)));
        words.dedup();
        words.reverse();
    }
    let mut found = Vec::new();
    // The list ends with a full stop, and stands behind a blank.
    let Some(mut room) = room.checked_sub(ALSO.len() + 2) else { return found };
    while left.values().any(|words| !words.is_empty()) {
        for words in left.values_mut() {
            let Some(word) = words.pop().filter(|word| !std::mem::replace(&mut named[*word as usize], true))
            else {
                continue;
            };
            if let Some(rest) = room.checked_sub(vocabulary.written[word as usize].0.chars().count() + 2) {
                room = rest;
                found.push(word);
            }
        }
        if room < 4 {
            break;
        }
    }
    found
}

/// Words as they are named at the end.
fn list(words: &[u32], vocabulary: &Vocabulary) -> String {
    let named: Vec<&str> = words.iter().map(|word| &*vocabulary.written[*word as usize].0).collect();
    format!("{ALSO}{}.", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condensed(texts: &[(&str, &str)], most: usize) -> String {
        let quotes: Vec<_> = texts.iter().map(|(author, content)| Quote { author, content }).collect();
        Condenser::default().condense(&quotes, most)
    }

    const TEXTS: &[(&str, &str)] = &[
        ("ann", "The European market grows at 23 % a year."),
        ("ann", "The market in Europe grows fast."),
        ("bob", "Berlin asks for a permit. We filed it on 3 May"),
        ("cho", "The market grows."),
    ];

    #[test]
    fn what_fits_is_told_in_order_with_who_said_it_and_nothing_twice() {
        assert_eq!(
            condensed(TEXTS, 1_200),
            "ann: The European market grows at 23 % a year. The market in Europe grows fast. \
             bob: Berlin asks for a permit. We filed it on 3 May."
        );
    }

    #[test]
    fn what_has_no_room_is_named_by_its_words() {
        let long = "Zurich warehouses need inspection ".repeat(12);
        let told = condensed(&[("ann", "The market grows at 23 % a year."), ("bob", &long)], 200);
        assert!(told.starts_with("ann: The market grows at 23 % a year. Also about: "), "{told}");
        assert!(told.contains("Zurich") && told.contains("inspection"), "{told}");
    }

    #[test]
    fn never_longer_than_its_room_in_any_script() {
        let long_word = "x".repeat(1_000);
        let chinese = "市场增长很快。价格上涨。".repeat(60);
        let author = "a".repeat(250);
        for most in [0, 5, 40, 200, 1_200] {
            let told = condensed(
                &[(&author, &long_word), ("b", &chinese), ("c", "Größe: 5 é\u{301}🙂\nzwei"), ("d", " \n ")],
                most,
            );
            assert!(told.chars().count() <= most, "{most}: {told}");
        }
        assert_eq!(condensed(&[], 100), "");
    }
}
