//! Identifiers that the Field hands out: units, conflicts, cursors.
//!
//! All of them are made of the epoch of the operation that made them (section 3, "ids"), so they sort
//! by time, need no randomness and cost a language model few tokens.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is no identifier of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedId;

impl fmt::Display for MalformedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an identifier of this kind")
    }
}

/// Reads a number as it is printed: digits only, no sign, no leading zero, so that one number has one text.
fn canonical(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// Defines an identifier `<prefix>-<epoch>` or `<prefix>-<epoch>.<n>`.
macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            /// Epoch of the operation that made it.
            pub epoch: u64,
            /// 0 for the first one of its operation, then 1, 2, …
            pub number: u32,
        }

        impl $name {
            /// The identifier of the `number`-th (from 0) thing of its kind made by the operation at `epoch`.
            pub const fn new(epoch: u64, number: u32) -> Self {
                Self { epoch, number }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "-{}"), self.epoch)?;
                if self.number > 0 {
                    write!(f, ".{}", self.number)?;
                }
                Ok(())
            }
        }

        impl FromStr for $name {
            type Err = MalformedId;

            fn from_str(text: &str) -> Result<Self, MalformedId> {
                let rest = text.strip_prefix(concat!($prefix, "-")).ok_or(MalformedId)?;
                let (epoch, number) = match rest.split_once('.') {
                    None => (rest, Some(0)),
                    Some((epoch, n)) => (epoch, canonical(n).filter(|n| *n > 0)),
                };
                Ok(Self {
                    epoch: canonical(epoch).ok_or(MalformedId)?,
                    number: number.and_then(|n| u32::try_from(n).ok()).ok_or(MalformedId)?,
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, r"-(0|[1-9][0-9]*)(\.[1-9][0-9]*)?$"),
                })
            }
        }
    };
}

identifier!(
    /// Names a memory unit: `mem-42`, or `mem-42.1` for the second unit of one operation.
    UnitId,
    "mem"
);
identifier!(
    /// Names a conflict: `conflict-42`, or `conflict-42.1` for the second conflict of one operation.
    ConflictId,
    "conflict"
);

/// Addresses one event inside the log: `"<epoch>.<index>"` (section 2, clock). Ordered as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor {
    /// Epoch of the operation.
    pub epoch: u64,
    /// Place of the event inside the operation, from 0.
    pub index: u32,
}

impl Cursor {
    /// The place of the `index`-th event of the operation at `epoch`.
    pub const fn new(epoch: u64, index: u32) -> Self {
        Self { epoch, index }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.index)
    }
}

impl FromStr for Cursor {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let (epoch, index) = text.split_once('.').ok_or(MalformedId)?;
        let index = canonical(index).and_then(|n| u32::try_from(n).ok());
        Ok(Self { epoch: canonical(epoch).ok_or(MalformedId)?, index: index.ok_or(MalformedId)? })
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Cursor {
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_identifier_has_one_text() {
        for text in ["mem-0", "mem-42", "mem-42.1", "mem-9007199254740991.4294967295"] {
            assert_eq!(text.parse::<UnitId>().unwrap().to_string(), text);
        }
        for text in [
            "mem-",
            "mem-042",
            "mem-+4",
            "mem-4.0",
            "mem-4.01",
            "mem-4.",
            "MEM-4",
            "mem-4 ",
            "4",
            "conflict-4",
            "",
        ] {
            assert!(text.parse::<UnitId>().is_err(), "{text:?}");
        }
        assert_eq!("conflict-11".parse(), Ok(ConflictId::new(11, 0)));
    }

    #[test]
    fn cursors_order_as_numbers() {
        let cursor = |t: &str| t.parse::<Cursor>().unwrap();
        assert!(cursor("9.10") < cursor("10.2"));
        assert!(cursor("10.2") < cursor("10.10"));
        for text in ["", "1", "1.", ".1", "1.-1", "1.0.0", "01.0", "1e3.0"] {
            assert!(text.parse::<Cursor>().is_err(), "{text:?}");
        }
    }
}
