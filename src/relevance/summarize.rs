//! A text shortened to its most informative sentences (section 7, ATTUNE, format `summary`).

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use super::tokenize::Tokenizer;
use super::words::{Stems, is_empty_word};

/// What a sentence gains by being the first: it usually says what the text is about.
const FIRST: f32 = 1.0;
/// What each distinct word of the need is worth, against a word that is merely there.
const NEEDED: f32 = 3.0;
/// What a figure is worth: numbers are what a summary is read for.
const FIGURE: f32 = 0.5;

/// Shortens texts for one need.
pub struct Summarizer {
    words: Words,
    needed: BTreeSet<String>,
}

impl Summarizer {
    /// For this need: a hint, or a role.
    pub fn new(need: &str) -> Self {
        let mut words = Words { tokenizer: Tokenizer::default(), stems: Stems::new() };
        let needed = words.of(need);
        Self { words, needed }
    }

    /// The text itself where it fits into `most` characters; else as many of its sentences as fit, the most
    /// telling for this need first, in the text's own order; where much room is left, the beginning of the next, cut
    /// at a word, with an ellipsis. Never longer than `most` characters.
    pub fn summarize(&mut self, text: &str, most: usize) -> String {
        let text = text.trim();
        if text.chars().count() <= most {
            return text.to_owned();
        }
        let sentences: Vec<&str> =
            text.unicode_sentences().map(str::trim).filter(|s| !s.is_empty()).collect();
        let worth = |(at, sentence): (usize, &&str)| (self.words.worth(sentence, &self.needed, at == 0), at);
        let mut ranked: Vec<(f32, usize)> = sentences.iter().enumerate().map(worth).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut room = most;
        let mut kept = BTreeSet::new();
        for (_, at) in &ranked {
            let length = sentences[*at].chars().count() + 1;
            if length <= room + 1 {
                kept.insert(*at);
                room = room.saturating_sub(length);
            }
        }
        // What is left is worth the beginning of the most telling one that did not fit: a heading alone says little.
        let begun = ranked.iter().map(|(_, at)| *at).find(|at| !kept.contains(at));
        let begun = begun.filter(|_| room >= most / 3).map(|at| (at, cut(sentences[at], room)));
        let mut told: Vec<(usize, &str)> = kept.iter().map(|at| (*at, sentences[*at])).collect();
        told.extend(begun.as_ref().map(|(at, beginning)| (*at, beginning.as_str())));
        told.sort_unstable_by_key(|(at, _)| *at);
        told.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
    }
}

/// The beginning of a text up to a word's end, with an ellipsis, at most `most` characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let whole_words = text[..end].rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", text[..whole_words].trim_end())
}

/// Takes texts apart into stems.
struct Words {
    tokenizer: Tokenizer,
    stems: Stems,
}

impl Words {
    fn of(&mut self, text: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let stems = &self.stems;
        self.tokenizer.each(text, &mut |word| {
            if !is_empty_word(word.text) {
                found.insert(stems.stem(word.text).into_owned());
            }
        });
        found
    }

    /// How much a sentence tells, by its length's root so that long ones do not win by length alone.
    fn worth(&mut self, sentence: &str, needed: &BTreeSet<String>, first: bool) -> f32 {
        let found = self.of(sentence);
        let answers = found.intersection(needed).count() as f32;
        let figures =
            found.iter().filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).count() as f32;
        let plain = (found.len() as f32).sqrt() / 4.0;
        answers * NEEDED + figures.min(2.0) * FIGURE + plain + if first { FIRST } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_not_all_that_is_told() {
        let long = "the vendor agreed to lower the price if the contract runs for three years ".repeat(6);
        let text = format!("Meeting notes\n{long}");
        let told = Summarizer::new("price").summarize(&text, 280);
        assert!(told.starts_with("Meeting notes the vendor agreed") && told.ends_with('…'), "{told}");
        assert!((200..=280).contains(&told.chars().count()), "{told}");
    }

    const TEXT: &str = "We met the vendor on Tuesday. Coffee was served and the room was warm. \
        The European market grows at 23% a year according to three reports. \
        Nobody could say why the projector failed twice. Lunch was late.";

    #[test]
    fn keeps_what_the_need_asks_for_in_the_texts_own_order() {
        let summary = Summarizer::new("market growth").summarize(TEXT, 110);
        assert!(summary.contains("23%"), "{summary}");
        assert!(summary.find("vendor").is_none_or(|at| at < summary.find("23%").unwrap()));
        assert!(summary.chars().count() <= 110);
    }

    #[test]
    fn a_text_that_fits_is_left_as_it_is() {
        assert_eq!(Summarizer::new("x").summarize(" short. ", 280), "short.");
    }

    #[test]
    fn never_exceeds_its_room_in_any_script() {
        let long_word = "x".repeat(1000);
        let chinese = "市场增长很快".repeat(100);
        let mixed = format!("{TEXT} {long_word} {chinese} é\u{301}🙂");
        for text in [TEXT, &long_word, &chinese, &mixed] {
            for most in [1, 2, 10, 50, 280] {
                let summary = Summarizer::new("market 市场").summarize(text, most);
                assert!(summary.chars().count() <= most, "{most}: {summary}");
                assert!(!summary.is_empty());
            }
        }
    }
}
