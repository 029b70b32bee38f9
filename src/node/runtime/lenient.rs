//! Reading what a CLI prints without being spoilt by it: a field beside the point counts as absent when it has a shape
//! of its own, so that a reply that was paid for is not lost to a newer version's idea of a counter.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

/// For `#[serde(deserialize_with)]`: the value, or the default when it is not understood.
pub(crate) fn if_understood<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: DeserializeOwned + Default,
    D: Deserializer<'de>,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}
