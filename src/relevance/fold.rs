//! Folding of Unicode text, so that the same word written in another way is the same word.
//!
//! Compatibility forms are unified (full-width letters, ligatures), accents and vowel points are dropped, and what
//! is left is recomposed, so that Hangul syllables and voiced kana stay one character each. Letter case is kept:
//! the tokenizer still needs it to find the humps of `camelCase`. ASCII text needs no folding.

use unicode_normalization::UnicodeNormalization;

/// Appends the folded form of `text` to `out`.
pub(super) fn fold(text: &str, out: &mut String) {
    let mut base = '\0';
    let kept = text.nfkd().filter(move |&c| {
        // Й is no accented И to a reader of Russian, and the Russian stemmer needs it.
        let keep = !is_dropped(c) || (c == '\u{306}' && matches!(base, 'и' | 'И'));
        base = c;
        keep
    });
    for c in kept.nfc() {
        match replacement(c) {
            Some(text) => out.push_str(text),
            None => out.push(c),
        }
    }
}

/// Whether `c` is written without spaces between words (or, as Korean, with too much glued to each word), so that
/// pairs of characters serve as its words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}'     // Thai, Lao
        | '\u{1000}'..='\u{109F}'   // Myanmar
        | '\u{1100}'..='\u{11FF}'   // Hangul letters
        | '\u{1780}'..='\u{17FF}'   // Khmer
        | '\u{3005}'..='\u{3007}'   // iteration mark, closing mark, zero
        | '\u{3041}'..='\u{312F}'   // kana, bopomofo
        | '\u{31A0}'..='\u{31FF}'   // more of them
        | '\u{3400}'..='\u{9FFF}'   // Han
        | '\u{AC00}'..='\u{D7FF}'   // Hangul syllables
        | '\u{F900}'..='\u{FAFF}'   // Han, compatibility
        | '\u{1AFF0}'..='\u{1B16F}' // more kana
        | '\u{20000}'..='\u{3FFFF}' // Han, extensions
    ) && !matches!(
        c,
        '\u{30A0}' | '\u{30FB}' | '\u{0E2F}' | '\u{0E5A}' | '\u{0E5B}' | '\u{17D4}'..='\u{17DA}'
    )
}

/// Whether `c` is a pictograph that somebody may look for.
pub(super) fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27BF}' | '\u{1F1E6}'..='\u{1F1FF}' | '\u{1F300}'..='\u{1F3FA}' | '\u{1F400}'..='\u{1FAFF}')
}

/// Marks that carry an accent, a vowel point or nothing visible. Vowel signs of Indic scripts are not among them:
/// there they are letters.
fn is_dropped(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}'
        | '\u{FE20}'..='\u{FE2F}'                                                     // accents
        | '\u{0591}'..='\u{05BD}' | '\u{05BF}' | '\u{05C1}' | '\u{05C2}' | '\u{05C4}' | '\u{05C5}' | '\u{05C7}' // Hebrew points
        | '\u{0610}'..='\u{061A}' | '\u{0640}' | '\u{064B}'..='\u{065F}' | '\u{0670}' | '\u{06D6}'..='\u{06DC}'
        | '\u{06DF}'..='\u{06E8}' | '\u{06EA}'..='\u{06ED}'                           // Arabic points, elongation
        | '\u{00AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{1F3FB}'..='\u{1F3FF}'            // invisible, variation, skin tone
    )
}

/// Letters that decomposition leaves alone although people write them in two ways.
fn replacement(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' | 'ẞ' => "ss",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'ø' => "o",
        'Ø' => "O",
        'ł' => "l",
        'Ł' => "L",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'þ' => "th",
        'Þ' => "Th",
        'ı' => "i",
        'ς' => "σ",
        'ى' => "ي",
        'ة' => "ه",
        '’' | '‘' | 'ʼ' => "'",
        '‐' => "-",
        '٠' | '۰' => "0",
        '١' | '۱' => "1",
        '٢' | '۲' => "2",
        '٣' | '۳' => "3",
        '٤' | '۴' => "4",
        '٥' | '۵' => "5",
        '٦' | '۶' => "6",
        '٧' | '۷' => "7",
        '٨' | '۸' => "8",
        '٩' | '۹' => "9",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut out = String::new();
        fold(text, &mut out);
        out
    }

    #[test]
    fn accents_and_compatibility_forms_are_unified() {
        assert_eq!(folded("Café"), "Cafe");
        assert_eq!(folded("Cafe\u{301}"), "Cafe");
        assert_eq!(folded("Straße Ærø Łódź"), "Strasse AEro Lodz");
        assert_eq!(folded("ＡＢＣ１２３ ﬁn"), "ABC123 fin");
        assert_eq!(folded("الْعَرَبِيَّة"), "العربيه");
        assert_eq!(folded("ёлка Чайка"), "елка Чайка");
    }

    #[test]
    fn syllables_stay_whole() {
        assert_eq!(folded("한국어"), "한국어");
        assert_eq!(folded("ガラス が ｶﾞ"), "ガラス が ガ");
        assert_eq!(folded("हिन्दी"), "हिन्दी");
    }
}
