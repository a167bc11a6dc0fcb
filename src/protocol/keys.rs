//! Reading a payload key by key, so that each refusal names the key it is about.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::envelope::check_id;
use super::error::Refusal;
use crate::limits;

/// An object of a payload, taken apart key by key. A key that is absent and one that is `null` read the
/// same; unknown keys are ignored (section 12).
pub(super) struct Keys {
    map: Map<String, Value>,
    /// `""` at the top of the payload, else the path with its dot, such as `"scope."`.
    path: String,
}

impl Keys {
    /// The payload itself.
    pub fn top(map: Map<String, Value>) -> Self {
        Self { map, path: String::new() }
    }

    /// The full name of one of the keys, as messages show it.
    pub fn name(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    /// Takes a key out; `None` when absent or `null`.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        #[cfg(test)]
        asked::note(self.name(key));
        self.map.remove(key).filter(|value| !value.is_null())
    }

    /// The full name of a key that nobody took, if there is one; of a long one its beginning.
    pub fn left_over(&self) -> Option<String> {
        self.map.keys().next().map(|key| self.name(&key.chars().take(60).collect::<String>()))
    }

    fn wrong(&self, key: &str, expected: &str) -> Refusal {
        let name = self.name(key);
        Refusal::invalid(&name, format!("{name} is not {expected}."), format!("Send {name} as {expected}."))
    }

    fn missing(&self, key: &str, expected: &str) -> Refusal {
        let name = self.name(key);
        Refusal::invalid(&name, format!("{name} is missing."), format!("Send {name} as {expected}."))
    }

    /// An optional string, kept exactly.
    pub fn text(&mut self, key: &str) -> Result<Option<String>, Refusal> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a string")),
        }
    }

    /// An optional string of at most [`limits::TEXT_MAX_BYTES`].
    pub fn short_text(&mut self, key: &str) -> Result<Option<Box<str>>, Refusal> {
        self.text_up_to(key, limits::TEXT_MAX_BYTES)
    }

    /// An optional string of at most so many bytes.
    pub fn text_up_to(&mut self, key: &str, most: usize) -> Result<Option<Box<str>>, Refusal> {
        let text = self.text(key)?;
        text.map(|text| self.bounded(key, text, most)).transpose()
    }

    fn short(&self, key: &str, text: String) -> Result<Box<str>, Refusal> {
        self.bounded(key, text, limits::TEXT_MAX_BYTES)
    }

    fn bounded(&self, key: &str, text: String, most: usize) -> Result<Box<str>, Refusal> {
        if text.len() <= most {
            return Ok(text.into_boxed_str());
        }
        let name = self.name(key);
        Err(Refusal::invalid(
            &name,
            format!("{name} has {} bytes; at most {most} are allowed.", text.len()),
            format!("Send a shorter {name}."),
        )
        .with("limit", json!(most)))
    }

    /// A string that is present, not blank, and of at most [`limits::TEXT_MAX_BYTES`].
    pub fn required_short_text(&mut self, key: &str) -> Result<Box<str>, Refusal> {
        self.required_text_up_to(key, limits::TEXT_MAX_BYTES)
    }

    /// A string that is present, not blank, and of at most so many bytes.
    pub fn required_text_up_to(&mut self, key: &str, most: usize) -> Result<Box<str>, Refusal> {
        let text = self.required_text(key)?;
        self.bounded(key, text, most)
    }

    /// A string that is present and not blank, kept exactly.
    pub fn required_text(&mut self, key: &str) -> Result<String, Refusal> {
        let text = self.text(key)?.ok_or_else(|| self.missing(key, "a non-empty string"))?;
        if text.trim().is_empty() {
            let name = self.name(key);
            return Err(Refusal::invalid(
                &name,
                format!("{name} is empty."),
                format!("Send {name} as a non-empty string."),
            ));
        }
        Ok(text)
    }

    /// An optional identifier chosen by a client.
    pub fn id(&mut self, key: &str) -> Result<Option<Arc<str>>, Refusal> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        check_id(&self.name(key), &text)?;
        Ok(Some(text.into()))
    }

    /// An identifier chosen by a client that must be present.
    pub fn required_id(&mut self, key: &str) -> Result<Arc<str>, Refusal> {
        self.id(key)?.ok_or_else(|| self.missing(key, "a non-empty string"))
    }

    /// An optional integer of at least 0; `5.0` is one too, as some clients write it.
    pub fn count(&mut self, key: &str) -> Result<Option<u64>, Refusal> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => integer(&value)
                .map(Some)
                .ok_or_else(|| self.wrong(key, "an integer of at least 0, below 2^53")),
        }
    }

    /// An optional true or false; absent means false.
    pub fn flag(&mut self, key: &str) -> Result<bool, Refusal> {
        Ok(self.optional_flag(key)?.unwrap_or(false))
    }

    /// An optional true or false that may be absent.
    pub fn optional_flag(&mut self, key: &str) -> Result<Option<bool>, Refusal> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    /// One key that was taken out, to be read by itself under its full name.
    pub fn alone(&self, key: &str, value: Value) -> Self {
        Self { map: Map::from_iter([(key.to_owned(), value)]), path: self.path.clone() }
    }

    /// An optional object.
    pub fn object(&mut self, key: &str) -> Result<Option<Self>, Refusal> {
        let path = format!("{}.", self.name(key));
        match self.take(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { map, path })),
            Some(_) => Err(self.wrong(key, "an object")),
        }
    }

    /// An object that must be present.
    pub fn required_object(&mut self, key: &str) -> Result<Self, Refusal> {
        self.object(key)?.ok_or_else(|| self.missing(key, "an object"))
    }

    /// An optional list of at most `limit` values; absent means empty.
    pub fn list(&mut self, key: &str, limit: usize) -> Result<Vec<Value>, Refusal> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) if values.len() > limit => {
                let name = self.name(key);
                Err(Refusal::invalid(
                    &name,
                    format!("{name} has {} items; at most {limit} are allowed.", values.len()),
                    format!("Send at most {limit} items in {name}."),
                )
                .with("limit", json!(limit)))
            }
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(self.wrong(key, "a list")),
        }
    }

    /// An optional list of strings, each of at most [`limits::TEXT_MAX_BYTES`].
    pub fn texts(&mut self, key: &str, limit: usize) -> Result<Vec<Box<str>>, Refusal> {
        let values = self.list(key, limit)?;
        values
            .into_iter()
            .map(|value| match value {
                Value::String(text) => self.short(key, text),
                _ => Err(self.wrong(key, "a list of strings")),
            })
            .collect()
    }

    /// An optional list of strings, each no longer than an id.
    pub fn id_length_texts(&mut self, key: &str, limit: usize) -> Result<Vec<Box<str>>, Refusal> {
        let texts = self.texts(key, limit)?;
        let Some(long) = texts.iter().find(|text| text.len() > limits::ID_MAX_BYTES) else {
            return Ok(texts);
        };
        let name = self.name(key);
        Err(Refusal::invalid(
            &name,
            format!(
                "An item of {name} has {} bytes; at most {} are allowed.",
                long.len(),
                limits::ID_MAX_BYTES
            ),
            format!("Send shorter items in {name}: a few words each."),
        )
        .with("limit", json!(limits::ID_MAX_BYTES)))
    }

    /// An optional number from 0 to 1.
    pub fn fraction(&mut self, key: &str) -> Result<Option<f64>, Refusal> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) if (0.0..=1.0).contains(&number) => Ok(Some(number)),
                Some(_) => {
                    let name = self.name(key);
                    Err(Refusal::invalid(
                        &name,
                        format!("{name} is {}.", excerpt(&value)),
                        format!("Send {name} as a number from 0 to 1."),
                    ))
                }
                None => Err(self.wrong(key, "a number from 0 to 1")),
            },
        }
    }

    /// An optional list of names that `read` knows; `known` lists them for the refusal.
    pub fn names<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str) -> Option<T>,
        known: impl Fn() -> String,
    ) -> Result<Vec<T>, Refusal> {
        let values = self.list(key, 64)?;
        let read_one = |value: Value| value.as_str().and_then(&read).ok_or(value);
        values.into_iter().map(read_one).collect::<Result<_, _>>().map_err(|value| {
            let name = self.name(key);
            Refusal::invalid(
                &name,
                format!("{name} contains {}, which is unknown.", excerpt(&value)),
                format!("Send in {name} only values out of: {}.", known()),
            )
        })
    }

    /// A name that must be present and that `read` knows.
    pub fn required_name<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str) -> Option<T>,
        known: impl Fn() -> String,
    ) -> Result<T, Refusal> {
        let expected = || format!("one of {}", known());
        let value = self.take(key).ok_or_else(|| self.missing(key, &expected()))?;
        value.as_str().and_then(&read).ok_or_else(|| self.unknown(key, &value, &expected()))
    }

    /// A name that `read` knows, or `default` when absent.
    pub fn name_or<T>(
        &mut self,
        key: &str,
        default: T,
        read: impl Fn(&str) -> Option<T>,
        known: impl Fn() -> String,
    ) -> Result<T, Refusal> {
        let Some(value) = self.take(key) else { return Ok(default) };
        value
            .as_str()
            .and_then(&read)
            .ok_or_else(|| self.unknown(key, &value, &format!("one of {}", known())))
    }

    fn unknown(&self, key: &str, value: &Value, expected: &str) -> Refusal {
        let name = self.name(key);
        Refusal::invalid(
            &name,
            format!("{name} is {}, which is unknown.", excerpt(value)),
            format!("Send {name} as {expected}."),
        )
    }
}

/// The integer that a number is, where it is one that every JSON reader keeps exactly.
fn integer(value: &Value) -> Option<u64> {
    let whole = |number: f64| {
        (number.fract() == 0.0 && (0.0..limits::EPOCH_CEILING as f64).contains(&number))
            .then_some(number as u64)
    };
    let exact = |number: &u64| *number < limits::EPOCH_CEILING;
    value.as_u64().filter(exact).or_else(|| value.as_f64().and_then(whole))
}

/// A refused value, short enough for a message.
pub(super) fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 {
        return text;
    }
    let mut short: String = text.chars().take(59).collect();
    short.push('…');
    short
}

/// Which keys a reader asks for: the schemas are held against it.
#[cfg(test)]
pub(super) mod asked {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static KEYS: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub fn note(key: String) {
        KEYS.with_borrow_mut(|keys| keys.insert(key));
    }

    /// Every key that this thread asked for since the last time.
    pub fn taken() -> BTreeSet<String> {
        KEYS.take()
    }
}
