//! JSON in which no object says a key twice (case C6): of two sayings nobody knows which was meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value that was read strictly.
#[derive(Debug)]
pub(super) struct Strict(pub(super) Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Strict)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, _>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} stands there twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_it_is_to_everybody() {
        for text in [r#"{"a":[1,-2,1.5,"x",null,true],"b":{"a":{}}}"#, "[]", "18446744073709551615", "1e3"] {
            let Strict(read) = serde_json::from_str(text).expect(text);
            assert_eq!(read, serde_json::from_str::<Value>(text).expect(text), "{text}");
        }
    }

    #[test]
    fn c6_a_key_that_stands_twice_is_an_error_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"nodes":[{"x":{"k":[],"k":[]}}]}"#] {
            let error = serde_json::from_str::<Strict>(text).expect_err(text).to_string();
            assert!(error.contains("stands there twice"), "{error}");
        }
    }
}
