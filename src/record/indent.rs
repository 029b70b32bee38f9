//! Lays compact JSON out over lines, two spaces a level, as `serde_json` would have, from any level on.
//!
//! Numbers and strings are copied as they stand, so what was encoded once never changes. Linear, one pass.

/// `json`, which must be valid, with its members on lines of their own; the first line is not indented, those
/// that follow stand `level` levels in.
pub(crate) fn indent(json: &str, level: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + json.len() / 2);
    let mut level = level;
    let mut bytes = json.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => copy_string(&mut bytes, &mut out),
            b'{' | b'[' => {
                out.push(byte);
                while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
                if let Some(end) = bytes.next_if(|next| matches!(next, b'}' | b']')) {
                    out.push(end);
                } else {
                    level += 1;
                    new_line(level, &mut out);
                }
            }
            b'}' | b']' => {
                level -= 1;
                new_line(level, &mut out);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(level, &mut out);
            }
            b':' => out.extend_from_slice(b": "),
            _ if byte.is_ascii_whitespace() => {}
            _ => out.push(byte),
        }
    }
    out
}

/// Copies the string whose opening quote was just read.
fn copy_string(bytes: &mut impl Iterator<Item = u8>, out: &mut Vec<u8>) {
    out.push(b'"');
    while let Some(byte) = bytes.next() {
        out.push(byte);
        match byte {
            b'\\' => out.extend(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

fn new_line(level: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 2 * level, b' ');
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            "[ -~é\\\\\"{}\\[\\]:,\n]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::hash_map(".{0,6}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_lays_out_as_serde_json_does(value in any_json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(&indent(&value.to_string(), 0), pretty.as_bytes());
            prop_assert_eq!(&indent(&pretty, 0), pretty.as_bytes());
        }
    }

    #[test]
    fn deeper_levels_move_all_but_the_first_line() {
        let out = indent(r#"{"a":[1,{}],"b":""}"#, 2);
        let wanted = "{\n      \"a\": [\n        1,\n        {}\n      ],\n      \"b\": \"\"\n    }";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
