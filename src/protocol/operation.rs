//! The operations of the protocol (section 7).

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What a message asks for. The name on the wire is the upper-case one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum Operation {
    Register,
    Deregister,
    Record,
    Attune,
    Detect,
    Merge,
    Subscribe,
    Replay,
    Compact,
    Coordinate,
    Handoff,
    Session,
    /// Extension.
    Retract,
    /// Extension.
    Commit,
    /// Extension.
    Discard,
}

impl Operation {
    /// Every operation that the protocol names, served here or not.
    pub const ALL: [Self; 15] = [
        Self::Register,
        Self::Deregister,
        Self::Record,
        Self::Attune,
        Self::Detect,
        Self::Merge,
        Self::Subscribe,
        Self::Replay,
        Self::Compact,
        Self::Coordinate,
        Self::Handoff,
        Self::Session,
        Self::Retract,
        Self::Commit,
        Self::Discard,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Register => "REGISTER",
            Self::Deregister => "DEREGISTER",
            Self::Record => "RECORD",
            Self::Attune => "ATTUNE",
            Self::Detect => "DETECT",
            Self::Merge => "MERGE",
            Self::Subscribe => "SUBSCRIBE",
            Self::Replay => "REPLAY",
            Self::Compact => "COMPACT",
            Self::Coordinate => "COORDINATE",
            Self::Handoff => "HANDOFF",
            Self::Session => "SESSION",
            Self::Retract => "RETRACT",
            Self::Commit => "COMMIT",
            Self::Discard => "DISCARD",
        }
    }

    /// The operation of this exact name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Whether it only looks. Reads are stamped and ordered like everything else, but are neither
    /// remembered nor logged. (Of SUBSCRIBE, only `list` does, of COMPACT only a preview: see [`super::Request::is_read`].)
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Attune | Self::Detect | Self::Replay)
    }

    /// The conformance level from which a Field serves it (section 10), or nothing while this hub
    /// does not serve it at any level. This table is the one source of `supported_operations`.
    pub const fn served_from_level(self) -> Option<u8> {
        match self {
            Self::Register | Self::Record | Self::Attune => Some(0),
            // Extension operations are served at every level (section 12, order of rules).
            Self::Retract | Self::Commit | Self::Discard => Some(0),
            Self::Deregister | Self::Detect | Self::Replay => Some(1),
            Self::Merge | Self::Subscribe | Self::Compact => Some(2),
            Self::Coordinate | Self::Handoff | Self::Session => None,
        }
    }
}

impl Operation {
    /// Whether a Field of this configured level serves it.
    pub fn is_served_at(self, level: u8) -> bool {
        self.served_from_level().is_some_and(|from| from <= level)
    }
}

impl JsonSchema for Operation {
    fn schema_name() -> Cow<'static, str> {
        "Operation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::name) })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_agree_with_json() {
        for op in Operation::ALL {
            assert_eq!(Operation::from_name(op.name()), Some(op));
            assert_eq!(serde_json::to_string(&op).unwrap(), format!("\"{}\"", op.name()));
        }
        assert_eq!(Operation::from_name("record"), None);
    }
}
