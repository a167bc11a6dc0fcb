//! What is known of single words: which say nothing when asked for, and which forms belong to one stem.
//!
//! English has both lists and the Snowball stemmer, Cyrillic script has the Russian one; words of other languages
//! stay as they are, and document frequencies tell their empty words.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

/// Brings the forms of a word together.
pub(super) struct Stems {
    english: Stemmer,
    russian: Stemmer,
}

impl Clone for Stems {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Stems {
    pub fn new() -> Self {
        Self { english: Stemmer::create(Algorithm::English), russian: Stemmer::create(Algorithm::Russian) }
    }

    /// The stem of a folded lower-case word. Words with a digit are names and stay as they are.
    pub fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if word.len() < 3 {
            Cow::Borrowed(word)
        } else if word.bytes().all(|b| b.is_ascii_lowercase()) {
            self.english.stem(regular(word))
        } else if word.chars().all(|c| matches!(c, 'а'..='я')) {
            self.russian.stem(word)
        } else {
            Cow::Borrowed(word)
        }
    }
}

/// Whether the word, asked for among others, tells nothing of what is wanted.
pub(super) fn is_empty_word(word: &str) -> bool {
    EMPTY.binary_search(&word).is_ok()
}

/// The base form of an irregular English form, else the word itself.
fn regular(word: &str) -> &str {
    IRREGULAR.binary_search_by_key(&word, |&(form, _)| form).map_or(word, |at| IRREGULAR[at].1)
}

/// Sorted. Words that are also names of things ("may", "like") are left out: frequency judges them.
#[rustfmt::skip]
static EMPTY: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "arent", "as", "at", "be",
    "because", "been", "before", "being", "between", "both", "but", "by", "can", "cant", "could", "couldnt",
    "did", "didnt", "do", "does", "doesnt", "doing", "dont", "during", "each", "either", "ever", "few", "for",
    "from", "had", "hadnt", "has", "hasnt", "have", "havent", "having", "he", "her", "here", "hers", "herself",
    "him", "himself", "his", "how", "i", "if", "im", "in", "into", "is", "isnt", "it", "its", "itself", "ive",
    "just", "me", "might", "more", "most", "much", "must", "my", "myself", "no", "nor", "not", "of", "on",
    "once", "only", "or", "other", "our", "ours", "ourselves", "out", "own", "please", "same", "shall", "she",
    "should", "shouldnt", "so", "some", "such", "than", "that", "thats", "the", "their", "theirs", "them",
    "themselves", "then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until",
    "up", "upon", "us", "very", "was", "wasnt", "we", "were", "werent", "what", "whats", "when", "where",
    "whether", "which", "while", "who", "whom", "whose", "why", "will", "with", "within", "without", "wont",
    "would", "wouldnt", "yes", "yet", "you", "your", "yours", "yourself",
];

/// Forms that no stemmer brings together, sorted by form.
#[rustfmt::skip]
static IRREGULAR: &[(&str, &str)] = &[
    ("analyses", "analysis"), ("arisen", "arise"), ("arose", "arise"), ("ate", "eat"), ("awoke", "awake"),
    ("beaten", "beat"), ("became", "become"), ("began", "begin"), ("begun", "begin"), ("bent", "bend"),
    ("best", "good"), ("better", "good"), ("bitten", "bite"), ("bled", "bleed"), ("blew", "blow"),
    ("blown", "blow"), ("born", "bear"), ("bought", "buy"), ("bound", "bind"), ("bred", "breed"),
    ("broke", "break"), ("broken", "break"), ("brought", "bring"), ("built", "build"), ("burnt", "burn"),
    ("came", "come"), ("caught", "catch"), ("children", "child"), ("chose", "choose"), ("chosen", "choose"),
    ("clung", "cling"), ("crept", "creep"), ("crises", "crisis"), ("criteria", "criterion"), ("dealt", "deal"),
    ("did", "do"), ("done", "do"), ("drank", "drink"), ("drawn", "draw"), ("dreamt", "dream"),
    ("drew", "draw"), ("driven", "drive"), ("drove", "drive"), ("drunk", "drink"), ("dug", "dig"),
    ("eaten", "eat"), ("fallen", "fall"), ("fed", "feed"), ("feet", "foot"), ("fell", "fall"),
    ("felt", "feel"), ("fled", "flee"), ("flew", "fly"), ("flown", "fly"), ("flung", "fling"),
    ("forbade", "forbid"), ("forbidden", "forbid"), ("forgave", "forgive"), ("forgiven", "forgive"),
    ("forgot", "forget"), ("forgotten", "forget"), ("fought", "fight"), ("found", "find"), ("froze", "freeze"),
    ("frozen", "freeze"), ("gave", "give"), ("geese", "goose"), ("given", "give"), ("gone", "go"),
    ("got", "get"), ("gotten", "get"), ("grew", "grow"), ("grown", "grow"), ("had", "have"), ("has", "have"),
    ("heard", "hear"), ("held", "hold"), ("hid", "hide"), ("hidden", "hide"), ("hung", "hang"),
    ("hypotheses", "hypothesis"), ("indices", "index"), ("kept", "keep"), ("knelt", "kneel"), ("knew", "know"),
    ("knives", "knife"), ("known", "know"), ("laid", "lay"), ("leant", "lean"), ("leapt", "leap"),
    ("learnt", "learn"), ("leaves", "leaf"), ("led", "lead"), ("lent", "lend"), ("lit", "light"),
    ("lives", "life"), ("lost", "lose"), ("made", "make"), ("matrices", "matrix"), ("meant", "mean"),
    ("men", "man"), ("met", "meet"), ("mice", "mouse"), ("mistaken", "mistake"), ("mistook", "mistake"),
    ("overcame", "overcome"), ("paid", "pay"), ("people", "person"), ("phenomena", "phenomenon"),
    ("proven", "prove"), ("ran", "run"), ("rang", "ring"), ("ridden", "ride"), ("risen", "rise"),
    ("rode", "ride"), ("said", "say"), ("sang", "sing"), ("sank", "sink"), ("sat", "sit"), ("saw", "see"),
    ("seen", "see"), ("sent", "send"), ("shaken", "shake"), ("shelves", "shelf"), ("shone", "shine"),
    ("shook", "shake"), ("shot", "shoot"), ("shown", "show"), ("shrank", "shrink"), ("shrunk", "shrink"),
    ("slept", "sleep"), ("slid", "slide"), ("sold", "sell"), ("sought", "seek"), ("spent", "spend"),
    ("spoke", "speak"), ("spoken", "speak"), ("sprang", "spring"), ("spun", "spin"), ("stole", "steal"),
    ("stolen", "steal"), ("stood", "stand"), ("struck", "strike"), ("stuck", "stick"), ("stung", "sting"),
    ("sung", "sing"), ("sunk", "sink"), ("swam", "swim"), ("swept", "sweep"), ("swore", "swear"),
    ("sworn", "swear"), ("swum", "swim"), ("swung", "swing"), ("taken", "take"), ("taught", "teach"),
    ("teeth", "tooth"), ("theses", "thesis"), ("thought", "think"), ("threw", "throw"), ("thrown", "throw"),
    ("told", "tell"), ("took", "take"), ("tore", "tear"), ("torn", "tear"), ("understood", "understand"),
    ("undertook", "undertake"), ("underwent", "undergo"), ("vertices", "vertex"), ("went", "go"),
    ("withdrawn", "withdraw"), ("withdrew", "withdraw"), ("wives", "wife"), ("woke", "wake"),
    ("woken", "wake"), ("women", "woman"), ("won", "win"), ("wore", "wear"), ("worn", "wear"),
    ("worse", "bad"), ("worst", "bad"), ("wove", "weave"), ("woven", "weave"), ("written", "write"),
    ("wrote", "write"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(EMPTY.is_sorted_by(|a, b| a < b));
        assert!(IRREGULAR.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn forms_meet() {
        let stems = Stems::new();
        assert_eq!(stems.stem("growing"), stems.stem("grows"));
        assert_eq!(stems.stem("researcher"), stems.stem("researching"));
        assert_eq!(stems.stem("went"), stems.stem("going"));
        assert_eq!(stems.stem("children"), stems.stem("child"));
        assert_eq!(stems.stem("москва"), stems.stem("москве"));
        assert_eq!(stems.stem("k8s"), "k8s");
        assert_eq!(stems.stem("市场"), "市场");
    }

    proptest::proptest! {
        #[test]
        fn any_word_has_a_stem(latin in "[a-z]{1,30}", cyrillic in "[а-я]{1,30}") {
            let stems = Stems::new();
            assert!(!stems.stem(&latin).is_empty());
            assert!(!stems.stem(&cyrillic).is_empty());
        }
    }
}
