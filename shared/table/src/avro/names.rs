//! Partition fields whose names Avro does not allow: `my-col`, `1st`, `größe`.
//!
//! A partition field may have any name, an Avro field only ASCII letters, digits and `_`. Iceberg's Java library writes such a name with
//! escapes (`my_x2Dcol`) and finds the field by its id; PyIceberg does the same but lets letters and digits of every script stand, which
//! apache-avro refuses; and the iceberg crate looks fields up by the name in the spec. So what the crate reads gets names that are plain
//! and the same in the spec and in the schema of the manifest, and what it writes gets the spec's own names back.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Read;

use iceberg::spec::PartitionSpec;
use serde_json::Value;

use super::{SCHEMA, header};

/// The metadata key of the partition fields (Iceberg spec, "Manifests").
const SPEC: &[u8] = b"partition-spec";
/// Ids of partition fields that version 1 does not write down count from here (Iceberg spec, "Partition Evolution").
const FIRST_ID: i64 = 1000;

/// Whether Avro allows the name (Avro spec, "Names").
fn is_plain(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
}

/// The name as Iceberg's Java library writes it into Avro schemas, for ASCII.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for (at, character) in name.chars().enumerate() {
        match character {
            '_' => plain.push('_'),
            'a'..='z' | 'A'..='Z' => plain.push(character),
            '0'..='9' if at > 0 => plain.push(character),
            '0'..='9' => plain.extend(['_', character]),
            // Writing to a string cannot fail.
            _ => drop(write!(plain, "_x{:X}", u32::from(character))),
        }
    }
    match plain.is_empty() {
        true => "_".to_owned(),
        false => plain,
    }
}

/// Gives every record field of a schema a name that Avro allows. Where fields have ids they are told apart by them.
pub(super) fn make_plain(schema: &mut Value) {
    each_field(schema, &mut |field| {
        let Some(name) = field.get("name").and_then(Value::as_str).filter(|name| !is_plain(name)) else { return };
        let name = match field.get("field-id").and_then(Value::as_i64) {
            Some(id) => by_id(id),
            None => plain(name),
        };
        field["name"] = name.into();
    });
}

fn each_field(schema: &mut Value, change: &mut impl FnMut(&mut Value)) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(fields)) = map.get_mut("fields") {
                fields.iter_mut().for_each(&mut *change);
            }
            map.values_mut().for_each(|value| each_field(value, change));
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| each_field(part, change)),
        _ => {}
    }
}

fn by_id(id: i64) -> String {
    format!("_{id}")
}

/// A manifest as the iceberg crate can read it: each field of its partition spec has one plain name, in the spec and in the schema. The
/// file itself when its names are plain.
///
/// # Errors
/// A sentence, when the file is no Avro file with a partition spec.
pub(crate) fn with_plain_names(file: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let unreadable = |error: serde_json::Error| format!("has no readable partition spec: {error}");
    let Some(spec) = header::value(file, "partition-spec")? else { return Ok(Cow::Borrowed(file)) };
    let mut spec: Value = serde_json::from_slice(spec).map_err(unreadable)?;
    let mut renamed = HashSet::new();
    for (field, at) in spec.as_array_mut().into_iter().flatten().zip(FIRST_ID..) {
        let id = field.get("field-id").and_then(Value::as_i64).unwrap_or(at);
        if field.get("name").and_then(Value::as_str).is_some_and(|name| !is_plain(name)) {
            field["name"] = by_id(id).into();
            renamed.insert(id);
        }
    }
    if renamed.is_empty() {
        return Ok(Cow::Borrowed(file));
    }
    let changed = header::with_metadata(file, |key, value| {
        if key == SPEC {
            return Ok(Some(spec.to_string().into_bytes()));
        }
        if key != SCHEMA {
            return Ok(None);
        }
        let mut schema: Value = serde_json::from_slice(value).map_err(unreadable)?;
        let partition = member(&mut schema, "data_file").and_then(|file| member(file, "partition"));
        for field in partition.and_then(|partition| partition.get_mut("fields")?.as_array_mut()).into_iter().flatten() {
            if let Some(id) = field.get("field-id").and_then(Value::as_i64).filter(|id| renamed.contains(id)) {
                field["name"] = by_id(id).into();
            }
        }
        Ok(Some(schema.to_string().into_bytes()))
    })?;
    whole(changed).map(Cow::Owned)
}

/// The type of a record's field.
fn member<'a>(record: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let fields = record.get_mut("fields")?.as_array_mut()?;
    fields.iter_mut().find(|field| field.get("name").is_some_and(|found| found == name))?.get_mut("type")
}

/// The spec with names that Avro allows, which differ from each other; None when all its names are plain.
pub(crate) fn plain_spec(spec: &PartitionSpec) -> Result<Option<PartitionSpec>, String> {
    if spec.fields().iter().all(|field| is_plain(&field.name)) {
        return Ok(None);
    }
    let names: Vec<String> = spec.fields().iter().map(|field| plain(&field.name)).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for name in &names {
        *uses.entry(name).or_default() += 1;
    }
    let mut renamed = serde_json::to_value(spec).map_err(|error| error.to_string())?;
    let fields = renamed.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten();
    for ((field, name), id) in fields.zip(&names).zip(spec.fields().iter().map(|field| field.field_id)) {
        field["name"] = match uses.get(name.as_str()) {
            Some(1) => name.clone().into(),
            _ => by_id(i64::from(id)).into(),
        };
    }
    serde_json::from_value(renamed).map(Some).map_err(|error| error.to_string())
}

/// A manifest that was written with [`plain_spec`], with the names of the table's spec in its metadata.
pub(crate) fn with_spec_names(file: &[u8], spec: &PartitionSpec) -> Result<Vec<u8>, String> {
    let fields = serde_json::to_vec(spec.fields()).map_err(|error| error.to_string())?;
    whole(header::with_metadata(file, |key, _| Ok((key == SPEC).then(|| fields.clone())))?)
}

fn whole(mut file: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform, Type};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::avro::testing::{read, two_rows};

    #[test]
    fn names_are_escaped_as_the_java_library_does() {
        for (name, expected) in [
            ("day", "day"),
            ("_x", "_x"),
            ("my-col", "my_x2Dcol"),
            ("a b", "a_x20b"),
            ("1st", "_1st"),
            ("größe", "gr_xF6_xDFe"),
            ("❄", "_x2744"),
            ("", "_"),
        ] {
            assert_eq!(plain(name), expected);
            assert_eq!(is_plain(name), name == expected, "{name}");
        }
    }

    #[test]
    fn fields_of_a_schema_get_names_by_their_ids() {
        let mut schema = json!({"type": "record", "name": "manifest_entry", "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": [
                {"name": "gr\u{f6}\u{df}e", "type": ["null", "int"], "field-id": 1000},
                {"name": "a b", "type": "int"},
            ]}},
        ]});
        make_plain(&mut schema);
        assert_eq!(schema["fields"][0]["name"], "status");
        let inner = &schema["fields"][1]["type"]["fields"];
        assert_eq!((inner[0]["name"].as_str(), inner[1]["name"].as_str()), (Some("_1000"), Some("a_x20b")));
    }

    #[test]
    fn a_file_with_a_name_that_avro_refuses_is_read_as_it_stands() {
        let good =
            two_rows(r#"{"type":"record","name":"r","fields":[{"name":"aaaaaa","type":"int","field-id":1000}]}"#);
        let at = good.windows(6).position(|bytes| bytes == b"aaaaaa").unwrap();
        let mut odd = good.clone();
        odd[at..at + 6].copy_from_slice("größ".as_bytes());
        assert!(apache_avro::Reader::new(odd.as_slice()).is_err());
        let values = |file: Vec<apache_avro::types::Value>| -> Vec<apache_avro::types::Value> {
            let first = |value| match value {
                apache_avro::types::Value::Record(mut fields) => fields.remove(0).1,
                other => other,
            };
            file.into_iter().map(first).collect()
        };
        assert_eq!(values(read(super::super::readable(&odd).unwrap()).1), values(read(good.as_slice()).1));
    }

    fn spec(names: &[&str]) -> PartitionSpec {
        let column = |n: usize| {
            let column = NestedField::optional(n as i32 + 1, format!("c{n}"), Type::Primitive(PrimitiveType::Int));
            Arc::new(column)
        };
        let schema = Schema::builder().with_fields((0..names.len()).map(column)).build().unwrap();
        let mut builder = PartitionSpec::builder(schema);
        for (n, name) in names.iter().enumerate() {
            builder = builder.add_partition_field(format!("c{n}"), *name, Transform::Identity).unwrap();
        }
        builder.build().unwrap()
    }

    fn names(spec: &PartitionSpec) -> Vec<&str> {
        spec.fields().iter().map(|field| field.name.as_str()).collect()
    }

    #[test]
    fn a_spec_is_renamed_only_where_it_must_be_and_no_two_names_become_one() {
        assert_eq!(plain_spec(&spec(&["day", "n_x2D"])).unwrap(), None);
        let renamed = plain_spec(&spec(&["day", "my-col"])).unwrap().unwrap();
        assert_eq!(names(&renamed), ["day", "my_x2Dcol"]);
        let met = plain_spec(&spec(&["a-b", "a_x2Db", "c"])).unwrap().unwrap();
        assert_eq!(names(&met), ["_1000", "_1001", "c"]);
        assert_eq!((met.fields()[0].field_id, met.fields()[0].source_id), (1000, 1));
    }

    proptest! {
        #[test]
        fn every_name_becomes_plain(name in any::<String>()) {
            prop_assert!(is_plain(&plain(&name)), "{:?}", plain(&name));
            if is_plain(&name) {
                prop_assert_eq!(plain(&name), name);
            }
        }
    }
}
