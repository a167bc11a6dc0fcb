//! Many units named in one event: COMPACT may touch a million.

use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::protocol::UnitId;

/// Ids of units in their order, each once. In the log, those that follow one another in numbers are a range,
/// `mem-7..mem-90`: a whole stretch of a Field in a few bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitIds(Arc<[UnitId]>);

/// Fewest ids that are written as a range.
const RANGE_MIN: usize = 3;
/// What stands between the first and the last of a range.
const TO: &str = "..";

impl UnitIds {
    /// These ids, which stand in order.
    pub fn new(ids: impl IntoIterator<Item = UnitId>) -> Self {
        let ids: Arc<[UnitId]> = ids.into_iter().collect();
        debug_assert!(ids.is_sorted_by(|a, b| a < b), "in order, each once");
        Self(ids)
    }

    /// All of them, in order.
    pub fn as_slice(&self) -> &[UnitId] {
        &self.0
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The place of an id among them.
    pub fn place(&self, id: UnitId) -> Option<usize> {
        self.0.binary_search(&id).ok()
    }
}

/// The id that follows within a range: by epochs, or by numbers within one operation.
fn next_of(id: UnitId, by_epoch: bool) -> UnitId {
    if by_epoch { UnitId::new(id.epoch + 1, 0) } else { UnitId::new(id.epoch, id.number + 1) }
}

/// How many ids at the beginning follow one another.
fn run(ids: &[UnitId]) -> usize {
    let [first, second, ..] = ids else { return ids.len() };
    let by_epoch = second.epoch != first.epoch;
    if by_epoch && first.number != 0 || *second != next_of(*first, by_epoch) {
        return 1;
    }
    1 + ids.windows(2).take_while(|pair| pair[1] == next_of(pair[0], by_epoch)).count()
}

impl Serialize for UnitIds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut ids = &*self.0;
        while !ids.is_empty() {
            let length = run(ids);
            if length < RANGE_MIN {
                ids[..length].iter().try_for_each(|id| list.serialize_element(id))?;
            } else {
                list.serialize_element(&format_args!("{}{TO}{}", ids[0], ids[length - 1]))?;
            }
            ids = &ids[length..];
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for UnitIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let listed = Vec::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let mut ids: Vec<UnitId> = Vec::with_capacity(listed.len());
        let parse = |text: &str| text.parse::<UnitId>().map_err(Error::custom);
        for text in &listed {
            let (first, last) = match text.split_once(TO) {
                None => (parse(text)?, parse(text)?),
                Some((first, last)) => (parse(first)?, parse(last)?),
            };
            let by_epoch = first.epoch != last.epoch;
            let ordered = first <= last && ids.last().is_none_or(|before| *before < first);
            if !ordered || by_epoch && (first.number, last.number) != (0, 0) {
                return Err(Error::custom(format!(
                    "{text:?} is no range of units that follows what is before"
                )));
            }
            let mut id = first;
            ids.push(id);
            while id != last {
                id = next_of(id, by_epoch);
                ids.push(id);
            }
        }
        Ok(Self(ids.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(texts: &[&str]) -> UnitIds {
        UnitIds::new(texts.iter().map(|text| text.parse().unwrap()))
    }

    #[test]
    fn stretches_are_ranges_and_the_rest_stands_alone() {
        let all =
            ids(&["mem-2", "mem-4", "mem-5", "mem-6", "mem-9", "mem-10", "mem-12", "mem-12.1", "mem-12.2"]);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(text, r#"["mem-2","mem-4..mem-6","mem-9","mem-10","mem-12..mem-12.2"]"#);
        assert_eq!(serde_json::from_str::<UnitIds>(&text).unwrap(), all);
    }

    #[test]
    fn what_is_no_list_of_units_in_order_is_refused() {
        for text in
            [r#"["mem-3","mem-2"]"#, r#"["mem-5..mem-3"]"#, r#"["mem-2","mem-2"]"#, r#"["mem-3.1..mem-5"]"#]
        {
            assert!(serde_json::from_str::<UnitIds>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_ids_come_back(pairs in prop::collection::btree_set((1..60u64, 0..4u32), 0..80)) {
            let all = UnitIds::new(pairs.into_iter().map(|(epoch, number)| UnitId::new(epoch, number)));
            let text = serde_json::to_string(&all).unwrap();
            prop_assert_eq!(serde_json::from_str::<UnitIds>(&text).unwrap(), all);
        }
    }
}
