//! Which words say something when they stand alone: names, figures, words that are not everybody's. "Pottery" tells what
//! a talk was about; "awesome", "getting" and "yeah" do not.
//!
//! How rare a word is among a few texts says little. So it is asked of what the built-in model has learned: the row of a
//! word that changes what a sentence means weighs much, that of a word that stands everywhere little. What the model
//! cannot know, how people talk to one another, is a list.

use std::collections::BTreeSet;

use super::contradict::is_grammar;
use super::embed;
use super::words::{Stems, is_empty_word};

/// Weight of a word's row below which it says nothing alone, against that of the word in the middle. Chosen on conversations:
/// below are "definitely", "getting", "good", "really"; above "contract", "decision", "market", "price".
const LEAST: f32 = 0.7;

/// Which words tell; keeps the stems of those that do not.
pub(super) struct Telling {
    chatter: BTreeSet<String>,
}

impl Telling {
    pub fn new(stems: &Stems) -> Self {
        Self { chatter: CHATTER.iter().map(|word| stems.stem(word).into_owned()).collect() }
    }

    /// Whether a word tells something alone. `stem` is that of the folded lower-case word, `written` the word as it
    /// stands in the text.
    pub fn tells(&self, stem: &str, written: &str) -> bool {
        let lower = written.to_lowercase();
        // A short word says little alone, and so does the day of a month.
        let short = lower.chars().count() <= 2;
        if !short && lower.bytes().any(|byte| byte.is_ascii_digit()) {
            return true;
        }
        let drawn_out =
            |word: &str| word.as_bytes().windows(3).any(|three| three[0] == three[1] && three[1] == three[2]);
        if short
            || drawn_out(&lower)
            || is_empty_word(&lower)
            || is_grammar(&lower)
            || self.chatter.contains(stem)
        {
            return false;
        }
        embed::weight(&lower).is_none_or(|weight| weight >= LEAST)
    }
}

/// What people say to one another whatever they talk about: calls, thanks, praise, feelings, and what everybody does.
#[rustfmt::skip]
static CHATTER: &[&str] = &[
    // Calls and answers.
    "aha", "alright", "anyhow", "anyway", "aww", "bet", "bummer", "bye", "cheers", "congrats", "congratulations", "cos", "cuz",
    "dang", "duh", "gonna", "gosh", "gotcha", "gotta", "haha", "hello", "hey", "hmm", "huh", "indeed", "kinda", "kudos", "lol",
    "nah", "nope", "oof", "ooh", "oops", "ouch", "phew", "prob", "shure", "sorry", "thanks", "ugh", "wanna", "whew", "whoa",
    "woah", "woo", "woohoo", "wow", "yay", "yeah", "yep", "yikes", "yo", "yup", "yum",
    // Praise and complaint.
    "amaze", "authentic", "awe", "awesome", "awestruck", "awful", "badass", "beautiful", "bold", "brave", "breathtaking",
    "brilliant", "captivating", "cathartic", "charming", "cheer", "cheerful", "chill", "comfy", "cool", "cozy",
    "creative", "cute", "deep", "deserve", "epic", "exciting", "fab", "fabulous", "fair", "fantastic", "fascinating", "fave",
    "favorite", "favourite", "fulfilling", "fun", "funny", "gorgeous", "graceful", "greatness", "heartfelt", "heartwarming",
    "huge", "impactful", "impress", "impressive", "incredible", "inspire", "interesting", "joyful", "lovely", "magical",
    "memorable", "moving", "neat", "needy", "passion", "passionate", "peaceful", "perfect", "positive", "powerful", "priceless",
    "rad", "resilient", "rewarding", "special", "stunning", "super", "superb", "supportive", "sweet", "talented", "terrible",
    "thoughtful", "tough", "unforgettable", "uplifting", "valuable", "vibe", "weird", "wild", "wonderful", "worthwhile",
    // Feelings.
    "admire", "anxious", "appreciate", "bonkers", "bored", "bother", "busy", "calm", "cherish", "confidence", "confident",
    "curious", "determined", "doubt", "emotion", "enjoy", "enthusiastic", "excited", "frustrate", "glad",
    "grateful", "gratitude", "happiness", "happy", "hopeful", "humbled", "joy", "lucky", "mood", "motivate", "nervous",
    "obsessed", "optimism", "overwhelm", "pleased", "proud", "pumped", "reassure", "relax", "sad", "scared", "scary", "stoked",
    "stressful", "struggle", "stumped", "surprised", "thankful", "thrill", "touching", "upset", "worry",
    // What everybody does.
    "achieve", "agree", "appear", "ask", "become", "begin", "believe", "boost", "bring", "change", "chat", "cheering", "choose",
    "continue", "cope", "decide", "discover", "dive", "embrace", "empower", "encourage", "expand",
    "explore", "face", "feel", "finish", "focus", "follow", "forget", "grow", "happen", "hear", "help", "hold", "hope",
    "idea", "imagine", "improve", "inspired", "invite", "join", "learn", "leave", "lose", "love", "luck", "manage", "matter",
    "meet", "miss", "move", "offer", "pass", "persue", "promise", "pursue", "reach", "realize",
    "remember", "remind", "respond", "rush", "send", "serve", "share", "sound", "speak", "spend", "stand", "start",
    "stay", "step", "stick", "stretch", "strive", "talk", "thank", "think", "throw", "touch", "try",
    "understand", "wait", "want", "wanted", "watch", "welcome", "wish", "wonder", "work",
    // When and how much.
    "awhile", "bunch", "future", "lately", "later", "loads", "minute", "moment", "soon", "sometime", "tomorrow", "tonight",
    "yesterday",
    // And also.
    "accept", "affect", "alone", "big", "check", "connect", "create", "crucial", "discuss", "essential", "express", "find", "give",
    "hard", "key", "knowing", "lead", "look", "mean", "never", "nice", "old", "okay", "open", "physically", "post",
    "run", "seriously", "show", "spot", "tell", "together", "try", "word", "worth", "year",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_figures_and_rare_words_tell_and_talk_does_not() {
        let stems = Stems::new();
        let telling = Telling::new(&stems);
        let tells = |word: &str| telling.tells(&stems.stem(&word.to_lowercase()), word);
        for word in [
            "Zurich",
            "inspection",
            "pottery",
            "Kubernetes",
            "permit",
            "price",
            "decision",
            "market",
            "v2.3",
            "23%",
            "2022",
            "clarinet",
            "Luna",
            "Veranstaltung",
            "договор",
        ] {
            assert!(tells(word), "{word}");
        }
        for word in [
            "awesome",
            "Yeah",
            "Thanks",
            "definitely",
            "getting",
            "something",
            "really",
            "hear",
            "appreciating",
            "motivated",
            "Wow",
            "loooong",
            "nicht",
            "avec",
            "lot",
            "good",
            "ok",
        ] {
            assert!(!tells(word), "{word}");
        }
    }
}
