//! Wall-clock time as the protocol prints it.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, in milliseconds since 1970-01-01 UTC; printed as RFC 3339 with milliseconds.
/// It informs people; order comes from epochs alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Last moment with a four-digit year, the end of what RFC 3339 can print.
    const LAST_MS: u64 = 253_402_300_799_999;

    /// The present moment. Only outer rooms call this: the heart is given its time.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(Self::LAST_MS))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = UNIX_EPOCH + Duration::from_millis(self.0.min(Self::LAST_MS));
        humantime::format_rfc3339_millis(moment).fmt(f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        let moment = humantime::parse_rfc3339(&text).map_err(serde::de::Error::custom)?;
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self(u64::try_from(since.as_millis()).unwrap_or(Self::LAST_MS)))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_the_same_moment() {
        let json = serde_json::to_string(&Timestamp(1_772_361_000_000)).unwrap();
        assert_eq!(json, "\"2026-03-01T10:30:00.000Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), Timestamp(1_772_361_000_000));
    }

    #[test]
    fn an_absurd_moment_still_prints() {
        assert_eq!(Timestamp(u64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    }
}
