//! Words that make numbers: units of measure, currencies, multipliers, numerals, months and days, and words that
//! make a number a bound.

use super::grammar::{Language, Lexicon, Roles};

/// What a number counts or measures. Only numbers of one measure can be held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// How many of something: the words after it say of what.
    Count,
    Percent,
    /// An amount in the currency of this number.
    Money(u8),
    /// In metres.
    Length,
    /// In grams.
    Mass,
    /// In seconds.
    Duration,
    /// In bytes.
    Data,
    /// In degrees Celsius.
    Celsius,
    /// In degrees Fahrenheit.
    Fahrenheit,
    /// In square metres.
    Area,
    /// In litres.
    Volume,
    /// In metres a second.
    Speed,
    /// In watts.
    Power,
    /// In watt hours.
    Energy,
    /// In hertz.
    Frequency,
    /// Minutes of a day.
    Clock,
    Date,
    /// Of software: its parts, each worth a thousand of the next.
    Version,
    /// Part of a name: "node 3".
    Label,
}

impl Measure {
    /// One bit for each, so that what can be held against each other shares one.
    pub fn bit(self) -> u32 {
        let number = match self {
            Self::Count => 0,
            Self::Percent => 1,
            Self::Length => 2,
            Self::Mass => 3,
            Self::Duration => 4,
            Self::Data => 5,
            Self::Celsius => 6,
            Self::Fahrenheit => 7,
            Self::Area => 8,
            Self::Volume => 9,
            Self::Speed => 10,
            Self::Power => 11,
            Self::Energy => 12,
            Self::Frequency => 13,
            Self::Clock => 14,
            Self::Date => 15,
            Self::Version => 16,
            Self::Label => 17,
            Self::Money(currency) => 18 + u32::from(currency) % 8,
        };
        1 << number
    }
}

/// Whether a quantity may begin with a word: most words need no further look.
pub(super) fn begins_quantity(word: &str, language: Language, lexicon: &Lexicon) -> bool {
    let is_version =
        word.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    matches!(word, "half" | "a" | "one" | "two" | "three")
        || is_version
        || month(word).is_some()
        || weekday(word).is_some()
        || numeral(word, language).is_some()
        // "a dozen"
        || lexicon.roles(word, language).any(Roles::INDEFINITE)
}

/// The measure of a unit and how many base units it is, by the unit's folded lower-case word.
pub(super) fn unit(word: &str) -> Option<(Measure, f64)> {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 3_600.0;
    const DAY: f64 = 86_400.0;
    Some(match word {
        "%" | "percent" | "pct" | "prozent" => (Measure::Percent, 1.0),
        "$" | "usd" | "dollar" | "dollars" | "dolares" => (Measure::Money(0), 1.0),
        "€" | "eur" | "euro" | "euros" => (Measure::Money(1), 1.0),
        "£" | "gbp" | "pound sterling" | "quid" => (Measure::Money(2), 1.0),
        "¥" | "yen" | "jpy" => (Measure::Money(3), 1.0),
        "chf" | "franken" | "francs" => (Measure::Money(4), 1.0),
        "cent" | "cents" => (Measure::Money(0), 0.01),
        "mm" | "millimetre" | "millimetres" | "millimeter" | "millimeters" => (Measure::Length, 0.001),
        "cm" | "centimetre" | "centimetres" | "centimeter" | "centimeters" | "zentimeter" => {
            (Measure::Length, 0.01)
        }
        "m" | "metre" | "metres" | "meter" | "meters" | "metern" | "metro" | "metros" => {
            (Measure::Length, 1.0)
        }
        "km" | "kilometre" | "kilometres" | "kilometer" | "kilometers" | "kilometro" | "kilometros" => {
            (Measure::Length, 1_000.0)
        }
        "mile" | "miles" | "mi" => (Measure::Length, 1_609.344),
        "foot" | "feet" | "ft" => (Measure::Length, 0.3048),
        "inch" | "inches" => (Measure::Length, 0.0254),
        "mg" => (Measure::Mass, 0.001),
        "g" | "gram" | "grams" | "gramm" | "gramo" | "gramos" | "gramme" | "grammes" => (Measure::Mass, 1.0),
        "kg" | "kilo" | "kilos" | "kilogram" | "kilograms" | "kilogramm" => (Measure::Mass, 1_000.0),
        "t" | "ton" | "tons" | "tonne" | "tonnes" | "tonnen" | "toneladas" => (Measure::Mass, 1e6),
        "lb" | "lbs" | "pound" | "pounds" => (Measure::Mass, 453.592),
        "ns" | "nanosecond" | "nanoseconds" => (Measure::Duration, 1e-9),
        "us" | "µs" | "μs" | "microsecond" | "microseconds" => (Measure::Duration, 1e-6),
        "ms" | "millisecond" | "milliseconds" | "millisekunden" | "milisegundos" | "millisecondes" => {
            (Measure::Duration, 0.001)
        }
        "s" | "sec" | "secs" | "second" | "seconds" | "sekunde" | "sekunden" | "segundo" | "segundos"
        | "seconde" | "secondes" => (Measure::Duration, 1.0),
        "min" | "mins" | "minute" | "minutes" | "minuten" | "minuto" | "minutos" => {
            (Measure::Duration, MINUTE)
        }
        "h" | "hr" | "hrs" | "hour" | "hours" | "stunde" | "stunden" | "hora" | "horas" | "heure"
        | "heures" => (Measure::Duration, HOUR),
        "day" | "days" | "tag" | "tage" | "tagen" | "dia" | "dias" | "jour" | "jours" => {
            (Measure::Duration, DAY)
        }
        "week" | "weeks" | "woche" | "wochen" | "semana" | "semanas" | "semaine" | "semaines" => {
            (Measure::Duration, 7.0 * DAY)
        }
        "month" | "months" | "monat" | "monate" | "monaten" | "mes" | "meses" | "mois" => {
            (Measure::Duration, 30.4375 * DAY)
        }
        "year" | "years" | "jahr" | "jahre" | "jahren" | "ano" | "anos" | "an" | "ans" | "annee"
        | "annees" => (Measure::Duration, 365.25 * DAY),
        "bit" | "bits" => (Measure::Data, 0.125),
        "b" | "byte" | "bytes" | "octets" => (Measure::Data, 1.0),
        "kb" | "kib" | "kilobyte" | "kilobytes" | "ko" => (Measure::Data, 1e3),
        "mb" | "mib" | "megabyte" | "megabytes" | "mo" => (Measure::Data, 1e6),
        "gb" | "gib" | "gigabyte" | "gigabytes" | "go" => (Measure::Data, 1e9),
        "tb" | "tib" | "terabyte" | "terabytes" | "to" => (Measure::Data, 1e12),
        "°" | "°c" | "celsius" | "degrees" | "degree" | "grad" | "grados" | "degres" => {
            (Measure::Celsius, 1.0)
        }
        "°f" | "fahrenheit" => (Measure::Fahrenheit, 1.0),
        "m2" | "sqm" | "quadratmeter" => (Measure::Area, 1.0),
        "km2" => (Measure::Area, 1e6),
        "hectare" | "hectares" | "hektar" | "ha" => (Measure::Area, 1e4),
        "ml" => (Measure::Volume, 0.001),
        "l" | "litre" | "litres" | "liter" | "liters" | "litro" | "litros" => (Measure::Volume, 1.0),
        "m3" => (Measure::Volume, 1_000.0),
        "gallon" | "gallons" => (Measure::Volume, 3.78541),
        "mph" => (Measure::Speed, 0.44704),
        "kmh" | "km/h" | "kph" => (Measure::Speed, 1.0 / 3.6),
        "m/s" => (Measure::Speed, 1.0),
        "w" | "watt" | "watts" => (Measure::Power, 1.0),
        "kw" | "kilowatt" | "kilowatts" => (Measure::Power, 1e3),
        "mw" | "megawatt" | "megawatts" => (Measure::Power, 1e6),
        "wh" => (Measure::Energy, 1.0),
        "kwh" => (Measure::Energy, 1e3),
        "mwh" => (Measure::Energy, 1e6),
        "hz" => (Measure::Frequency, 1.0),
        "khz" => (Measure::Frequency, 1e3),
        "mhz" => (Measure::Frequency, 1e6),
        "ghz" => (Measure::Frequency, 1e9),
        _ => return None,
    })
}

/// What a word after a number multiplies it with.
pub(super) fn multiplier(word: &str) -> Option<f64> {
    Some(match word {
        "k" | "thousand" | "thousands" | "tausend" | "mil" | "mille" => 1e3,
        "mn" | "mio" | "million" | "millions" | "millionen" | "millon" | "millones" => 1e6,
        "bn" | "billion" | "billions" | "mrd" | "milliarde" | "milliarden" | "milliard" | "milliards" => 1e9,
        "trillion" | "trillions" | "billionen" => 1e12,
        _ => return None,
    })
}

/// The value of a numeral, and of one that multiplies what stands before it.
pub(super) fn numeral(word: &str, language: Language) -> Option<f64> {
    let words: &[&str] = match language {
        Language::English => &[
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ],
        Language::German => &[
            "null", "eins", "zwei", "drei", "vier", "funf", "sechs", "sieben", "acht", "neun", "zehn", "elf",
            "zwolf", "dreizehn", "vierzehn", "funfzehn",
        ],
        Language::Spanish => &[
            "cero", "uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez",
            "once", "doce", "trece", "catorce", "quince",
        ],
        Language::French => &[
            "zero", "-", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze",
            "douze", "treize", "quatorze", "quinze",
        ],
    };
    let tens: &[&str] = match language {
        Language::English => &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        Language::German => {
            &["zwanzig", "dreissig", "vierzig", "funfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
        }
        Language::Spanish => {
            &["veinte", "treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa"]
        }
        Language::French => &["vingt", "trente", "quarante", "cinquante", "soixante"],
    };
    let at = |list: &[&str]| list.iter().position(|&numeral| numeral == word).map(|at| at as f64);
    // "-" stands for "un", which is mostly an article.
    if let Some(value) = at(words).filter(|_| word != "-") {
        return Some(value);
    }
    if let Some(value) = at(tens) {
        return Some((value + 2.0) * 10.0);
    }
    match (word, language) {
        ("dozen", Language::English) => Some(12.0),
        ("dutzend", Language::German) | ("docena", Language::Spanish) | ("douzaine", Language::French) => {
            Some(12.0)
        }
        ("hundred", Language::English) | ("hundert", Language::German) => Some(100.0),
        ("cien" | "ciento", Language::Spanish) | ("cent", Language::French) => Some(100.0),
        ("tausend", Language::German) | ("mil", Language::Spanish) | ("mille", Language::French) => Some(1e3),
        _ => None,
    }
}

/// The month of this name, 1 to 12.
pub(super) fn month(word: &str) -> Option<u8> {
    #[rustfmt::skip]
    const MONTHS: [&[&str]; 12] = [
        &["january", "jan", "januar", "enero", "janvier"],
        &["february", "feb", "februar", "febrero", "fevrier"],
        &["march", "mar", "marz", "maerz", "marzo", "mars"],
        &["april", "apr", "abril", "avril"],
        &["may", "mai", "mayo"],
        &["june", "jun", "juni", "junio", "juin"],
        &["july", "jul", "juli", "julio", "juillet"],
        &["august", "aug", "agosto", "aout"],
        &["september", "sep", "sept", "septiembre", "septembre"],
        &["october", "oct", "oktober", "okt", "octubre", "octobre"],
        &["november", "nov", "noviembre", "novembre"],
        &["december", "dec", "dezember", "dez", "diciembre", "decembre"],
    ];
    named(&MONTHS, word)
}

/// The day of the week of this name, Monday 1.
pub(super) fn weekday(word: &str) -> Option<u8> {
    const DAYS: [&[&str]; 7] = [
        &["monday", "mondays", "montag", "lunes", "lundi"],
        &["tuesday", "tuesdays", "dienstag", "martes", "mardi"],
        &["wednesday", "wednesdays", "mittwoch", "miercoles", "mercredi"],
        &["thursday", "thursdays", "donnerstag", "jueves", "jeudi"],
        &["friday", "fridays", "freitag", "viernes", "vendredi"],
        &["saturday", "saturdays", "samstag", "sonnabend", "sabado", "samedi"],
        &["sunday", "sundays", "sonntag", "domingo", "dimanche"],
    ];
    named(&DAYS, word)
}

fn named(names: &[&[&str]], word: &str) -> Option<u8> {
    names.iter().position(|names| names.contains(&word)).map(|at| at as u8 + 1)
}

/// How a number limits what it speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Bound {
    #[default]
    Exact,
    About,
    /// "at least", "or newer": the limit itself is told.
    AtLeast,
    /// "at most", "up to".
    AtMost,
    /// "more than": somewhere above.
    Over,
    /// "less than": somewhere below.
    Under,
}

/// The bound that the two words before a number make of it.
pub(super) fn bound_before(second: &str, first: &str) -> Option<Bound> {
    Some(match (second, first) {
        ("at" | "al" | "au", "least" | "menos" | "moins") => Bound::AtLeast,
        ("no" | "not" | "nicht", "less" | "fewer" | "weniger") => Bound::AtLeast,
        ("at" | "up", "most" | "to") => Bound::AtMost,
        ("less" | "fewer" | "lower" | "weniger" | "menos" | "moins", "than" | "als" | "de" | "que") => {
            Bound::Under
        }
        ("more" | "greater" | "higher" | "mehr" | "mas" | "plus", "than" | "als" | "de" | "que") => {
            Bound::Over
        }
        (_, "mindestens" | "minimum" | "≥") => Bound::AtLeast,
        (_, "hochstens" | "maximal" | "maximum" | "≤") => Bound::AtMost,
        (_, "over" | "exceeding" | "exceeds" | "above" | ">") => Bound::Over,
        (_, "under" | "below" | "within" | "<") => Bound::Under,
        (
            _,
            "about" | "around" | "roughly" | "approximately" | "nearly" | "almost" | "circa" | "ca" | "~"
            | "some" | "etwa" | "ungefahr" | "rund" | "knapp" | "unos" | "unas" | "aproximadamente" | "casi"
            | "environ" | "presque" | "quelque",
        )
        | ("alrededor", "de") => Bound::About,
        _ => return None,
    })
}

/// The bound that two words after a number make of it.
pub(super) fn bound_after(first: &str, second: &str) -> Option<Bound> {
    Some(match (first, second) {
        ("or" | "and", "more" | "newer" | "later" | "higher" | "above" | "greater" | "over" | "up") => {
            Bound::AtLeast
        }
        ("oder", "mehr" | "neuer" | "hoher") | ("o", "mas" | "superior") | ("ou", "plus") => Bound::AtLeast,
        ("or" | "and", "less" | "fewer" | "older" | "earlier" | "lower" | "below" | "under") => Bound::AtMost,
        ("oder", "weniger") | ("o", "menos") | ("ou", "moins") => Bound::AtMost,
        ("+", _) => Bound::AtLeast,
        _ => return None,
    })
}
