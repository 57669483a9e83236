//! A way around one fault of apache-avro 0.21: it reads a `fixed(16)` with logical type `uuid`, the form that Iceberg
//! prescribes for UUIDs, as if it had a length in front, and everything after it wrong. Taking the logical type out of the
//! schema in the file's header leaves a plain `fixed(16)`, which it reads right.

use std::io::{Cursor, Read};

use serde_json::Value;

const MAGIC: &[u8] = b"Obj\x01";
const MARKER: usize = 16;

/// The same Avro file (Avro spec, "Object Container Files") with plain fixed fields where its schema had UUIDs.
///
/// # Errors
/// A sentence, when the header is none.
pub(crate) fn without_uuids(file: &[u8]) -> Result<impl Read, String> {
    let mut rest = file.strip_prefix(MAGIC).ok_or("is no Avro file")?;
    let mut header = MAGIC.to_vec();
    let entries = header_entries(&mut rest).ok_or("has no whole Avro header")?;
    put_long(&mut header, entries.len() as i64);
    for (key, value) in entries {
        put_bytes(&mut header, key);
        match key {
            b"avro.schema" => {
                let mut schema: Value = serde_json::from_slice(value).map_err(|error| error.to_string())?;
                forget_uuids(&mut schema);
                put_bytes(&mut header, schema.to_string().as_bytes());
            }
            _ => put_bytes(&mut header, value),
        }
    }
    put_long(&mut header, 0);
    let marker = rest.get(..MARKER).ok_or("has no whole Avro header")?;
    header.extend(marker);
    Ok(Cursor::new(header).chain(Cursor::new(&rest[MARKER..])))
}

/// Removes the logical type of every `fixed` that has `uuid`.
fn forget_uuids(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("logicalType").is_some_and(|logical| logical == "uuid")
                && map.get("type") == Some(&"fixed".into())
            {
                map.remove("logicalType");
            }
            map.values_mut().for_each(forget_uuids);
        }
        Value::Array(parts) => parts.iter_mut().for_each(forget_uuids),
        _ => {}
    }
}

/// The metadata map of the header, which `rest` is moved past.
fn header_entries<'a>(rest: &mut &'a [u8]) -> Option<Vec<(&'a [u8], &'a [u8])>> {
    let mut entries = Vec::new();
    loop {
        let count = take_long(rest)?;
        if count == 0 {
            return Some(entries);
        }
        if count < 0 {
            // A negative count is followed by the size of the block in bytes.
            take_long(rest)?;
        }
        for _ in 0..count.unsigned_abs() {
            entries.push((take_bytes(rest)?, take_bytes(rest)?));
        }
    }
}

/// A zigzag varint.
fn take_long(rest: &mut &[u8]) -> Option<i64> {
    let mut bits = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        bits |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((bits >> 1) as i64 ^ -((bits & 1) as i64));
        }
    }
    None
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_long(rest)?).ok()?;
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(bytes)
}

fn put_long(out: &mut Vec<u8>, value: i64) {
    let mut bits = ((value << 1) ^ (value >> 63)) as u64;
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_long(out, bytes.len() as i64);
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn only_fixed_uuids_are_forgotten() {
        let mut schema = json!({"fields": [
            {"name": "uuid", "type": ["null", {"type": "fixed", "size": 16, "logicalType": "uuid", "name": "uuid_fixed"}]},
            {"name": "s", "type": {"type": "string", "logicalType": "uuid"}},
        ]});
        forget_uuids(&mut schema);
        let expected = json!({"fields": [
            {"name": "uuid", "type": ["null", {"type": "fixed", "size": 16, "name": "uuid_fixed"}]},
            {"name": "s", "type": {"type": "string", "logicalType": "uuid"}},
        ]});
        assert_eq!(schema, expected);
    }

    #[test]
    fn a_file_without_uuids_stays_as_it_is_and_a_cut_header_is_an_error() {
        let schema =
            apache_avro::Schema::parse_str(r#"{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}"#);
        let schema = schema.unwrap();
        let mut writer = apache_avro::Writer::new(&schema, Vec::new());
        writer.add_user_metadata("k".to_owned(), "v").unwrap();
        for a in [5, -1] {
            writer
                .append(apache_avro::types::Value::Record(vec![("a".to_owned(), apache_avro::types::Value::Int(a))]))
                .unwrap();
        }
        let file = writer.into_inner().unwrap();
        let read = |reader: &mut dyn Read| {
            let reader = apache_avro::Reader::new(reader).unwrap();
            (reader.user_metadata().clone(), reader.map(Result::unwrap).collect::<Vec<_>>())
        };
        assert_eq!(read(&mut without_uuids(&file).unwrap()), read(&mut file.as_slice()));
        let marker_ends = file.len() - 16 - 2 - 2 - 16;
        for length in [0, 3, 4, 5, 20, marker_ends] {
            assert!(without_uuids(&file[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn longs_survive(value in any::<i64>()) {
            let mut bytes = Vec::new();
            put_long(&mut bytes, value);
            prop_assert_eq!(take_long(&mut bytes.as_slice()), Some(value));
        }
    }
}
