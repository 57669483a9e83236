//! A way around one fault of apache-avro 0.21: it reads a `fixed(16)` with logical type `uuid`, the form that Iceberg
//! prescribes for UUIDs, as if it had a length in front, and everything after it wrong. Taking the logical type out of the
//! schema in the file's header leaves a plain `fixed(16)`, which it reads right.

use serde_json::Value;

/// Removes the logical type of every `fixed` that has `uuid`.
pub(super) fn forget(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("logicalType").is_some_and(|logical| logical == "uuid")
                && map.get("type") == Some(&"fixed".into())
            {
                map.remove("logicalType");
            }
            map.values_mut().for_each(forget);
        }
        Value::Array(parts) => parts.iter_mut().for_each(forget),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_fixed_uuids_are_forgotten() {
        let mut schema = json!({"fields": [
            {"name": "uuid", "type": ["null", {"type": "fixed", "size": 16, "logicalType": "uuid", "name": "uuid_fixed"}]},
            {"name": "s", "type": {"type": "string", "logicalType": "uuid"}},
        ]});
        forget(&mut schema);
        let expected = json!({"fields": [
            {"name": "uuid", "type": ["null", {"type": "fixed", "size": 16, "name": "uuid_fixed"}]},
            {"name": "s", "type": {"type": "string", "logicalType": "uuid"}},
        ]});
        assert_eq!(schema, expected);
    }
}
