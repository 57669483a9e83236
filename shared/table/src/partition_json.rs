//! The partition that a message names (design section 4, "Message"): partition field names to values in Iceberg's JSON
//! single-value form, or in the form that a person types.

use firn_model::{PartitionKey, Scalar};
use serde_json::{Map, Value};

use crate::filter::field_value;
use crate::loaded::LoadedTable;
use crate::partition_type::{PartitionField, SpecTypes};

/// Reads the partition of a spec from a message.
///
/// Every field of the spec must be named, with its value after the transform: as Iceberg's JSON single-value form has it, null
/// as JSON null, or for a time transform as a text typed by hand (day 2026-11-01, month 2026-11, year 2026, hour 2026-11-01-05).
/// Void fields may be left out. `{}` is the only partition of an unpartitioned spec.
///
/// # Errors
/// A sentence for whoever sent the message; it quotes the value or names the fields of the spec.
pub fn partition_from_json(spec: &SpecTypes, json: &Map<String, Value>) -> Result<PartitionKey, String> {
    if let Some(unknown) = json.keys().find(|name| !spec.fields.iter().any(|field| field.name == **name)) {
        return Err(format!("\"{unknown}\" is no partition field; {}", fields_of(spec)));
    }
    let mut values = Vec::with_capacity(spec.fields.len());
    for field in &spec.fields {
        let value = match json.get(&field.name) {
            None if field.is_void() => None,
            None => return Err(format!("partition field \"{}\" is missing; {}", field.name, fields_of(spec))),
            Some(Value::Null) => None,
            Some(value) => {
                Some(scalar(field, value).map_err(|detail| format!("partition field \"{}\": {detail}", field.name))?)
            }
        };
        values.push(value);
    }
    Ok(spec.key(values))
}

/// A text may be in either form; a number, true and false only in the single-value form: the year 56 is not the year 2026.
fn scalar(field: &PartitionField, value: &Value) -> Result<Scalar, String> {
    if field.is_void() {
        return Err("it is void, its only value is null".to_owned());
    }
    match value {
        Value::String(text) => field_value(field, text),
        Value::Number(_) | Value::Bool(_) => match field.scalar_type() {
            Some(scalar_type) => Scalar::from_json(value, scalar_type),
            None => Err("its type is not known any more, its only value is null".to_owned()),
        },
        other => Err(format!("`{other}` is no single value")),
    }
}

fn fields_of(spec: &SpecTypes) -> String {
    if spec.is_unpartitioned() {
        return format!("spec {} has none, write \"partition\":{{}}", spec.spec_id);
    }
    let names: Vec<String> = spec.fields.iter().map(|field| format!("{} ({})", field.name, field.transform)).collect();
    format!("spec {} has {}", spec.spec_id, names.join(", "))
}

impl LoadedTable {
    /// Reads the partition of a message, of spec `spec_id` or of the current spec.
    ///
    /// # Errors
    /// A sentence for whoever sent the message.
    pub fn partition_from_json(&self, spec_id: Option<i32>, json: &Map<String, Value>) -> Result<PartitionKey, String> {
        let specs = self.spec_types().map_err(|error| error.to_string())?;
        let id = spec_id.unwrap_or_else(|| self.metadata.default_partition_spec_id());
        match specs.get(&id) {
            Some(spec) => partition_from_json(spec, json),
            None => {
                let mut known: Vec<String> = specs.keys().map(ToString::to_string).collect();
                known.sort();
                Err(format!("table `{}` has no partition spec {id}; it has {}", self.ident, known.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use firn_model::PartitionValue;
    use iceberg::spec::{PrimitiveType, Transform};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::{Lake, Shape};

    fn field(id: i32, name: &str, source: PrimitiveType, transform: Transform) -> PartitionField {
        let result = transform.result_type(&iceberg::spec::Type::Primitive(source.clone())).unwrap();
        PartitionField {
            id,
            name: name.to_owned(),
            source_id: id,
            source_name: Some(format!("{name}_source")),
            result_type: result.as_primitive_type().cloned(),
            source_type: Some(source),
            transform,
        }
    }

    fn spec(fields: Vec<PartitionField>) -> SpecTypes {
        SpecTypes { spec_id: 3, fields }
    }

    fn read(spec: &SpecTypes, json: Value) -> Result<PartitionKey, String> {
        partition_from_json(spec, json.as_object().unwrap())
    }

    fn one(source: PrimitiveType, transform: Transform, json: Value) -> Result<Option<Scalar>, String> {
        let spec = spec(vec![field(1, "f", source, transform)]);
        read(&spec, json!({ "f": json })).map(|key| key.values[0].value.clone())
    }

    #[test]
    fn both_forms_of_each_time_transform() {
        let stamp = PrimitiveType::Timestamp;
        for (transform, json, expected) in [
            (Transform::Day, json!("2026-11-01"), Scalar::Date(20_758)),
            (Transform::Month, json!("2026-11"), Scalar::Int(682)),
            (Transform::Month, json!(682), Scalar::Int(682)),
            (Transform::Year, json!("2026"), Scalar::Int(56)),
            (Transform::Year, json!(56), Scalar::Int(56)),
            (Transform::Hour, json!("2026-11-01-05"), Scalar::Int(498_197)),
            (Transform::Hour, json!(498_197), Scalar::Int(498_197)),
            (Transform::Bucket(16), json!(3), Scalar::Int(3)),
        ] {
            assert_eq!(one(stamp.clone(), transform, json.clone()), Ok(Some(expected)), "{transform} {json}");
        }
        assert_eq!(
            one(stamp.clone(), Transform::Year, json!(2026)),
            Ok(Some(Scalar::Int(2026))),
            "a number is no text"
        );
        assert_eq!(one(stamp.clone(), Transform::Day, json!(null)), Ok(None));
        let wrong = one(stamp, Transform::Day, json!("1st of May")).unwrap_err();
        assert_eq!(wrong, "partition field \"f\": `1st of May` is no day as YYYY-MM-DD");
    }

    #[test]
    fn single_values_of_other_types() {
        let identity = |source, json| one(source, Transform::Identity, json);
        assert_eq!(identity(PrimitiveType::String, json!("null")), Ok(Some(Scalar::String("null".into()))));
        assert_eq!(identity(PrimitiveType::String, json!("")), Ok(Some(Scalar::String(String::new()))));
        assert_eq!(identity(PrimitiveType::Boolean, json!(true)), Ok(Some(Scalar::Bool(true))));
        let decimal = PrimitiveType::Decimal { precision: 9, scale: 2 };
        assert_eq!(identity(decimal, json!("14.20")), Ok(Some(Scalar::Decimal { unscaled: 1420, scale: 2 })));
        assert_eq!(identity(PrimitiveType::Binary, json!("00ff")), Ok(Some(Scalar::Binary(vec![0, 255]))));
        for (source, json) in [
            (PrimitiveType::Int, json!(1.5)),
            (PrimitiveType::Int, json!(["1"])),
            (PrimitiveType::Date, json!(20_758)),
            (PrimitiveType::Uuid, json!("no")),
            (PrimitiveType::Int, json!({})),
        ] {
            let error = identity(source, json.clone()).unwrap_err();
            assert!(error.starts_with("partition field \"f\": `"), "{json}: {error}");
        }
    }

    #[test]
    fn every_field_is_named_and_no_other() {
        let two = spec(vec![
            field(1, "day", PrimitiveType::Timestamp, Transform::Day),
            field(2, "region", PrimitiveType::String, Transform::Identity),
        ]);
        assert_eq!(
            read(&two, json!({ "region": null, "day": "2026-11-01" })),
            Ok(PartitionKey::new(
                3,
                vec![
                    PartitionValue { name: "day".into(), value: Some(Scalar::Date(20_758)) },
                    PartitionValue { name: "region".into(), value: None },
                ]
            ))
        );
        assert_eq!(
            read(&two, json!({ "day": "2026-11-01" })).unwrap_err(),
            "partition field \"region\" is missing; spec 3 has day (day), region (identity)"
        );
        assert_eq!(
            read(&two, json!({ "day": "2026-11-01", "regoin": "eu" })).unwrap_err(),
            "\"regoin\" is no partition field; spec 3 has day (day), region (identity)"
        );
    }

    #[test]
    fn unpartitioned_and_void_specs() {
        let none = spec(vec![]);
        assert_eq!(read(&none, json!({})), Ok(PartitionKey::unpartitioned(3)));
        assert_eq!(
            read(&none, json!({ "day": "2026-11-01" })).unwrap_err(),
            "\"day\" is no partition field; spec 3 has none, write \"partition\":{}"
        );
        let void = spec(vec![field(1, "gone", PrimitiveType::String, Transform::Void)]);
        assert!(read(&void, json!({})).unwrap().is_unpartitioned());
        assert_eq!(read(&void, json!({ "gone": null })), read(&void, json!({})));
        let mixed = spec(vec![
            field(1, "gone", PrimitiveType::String, Transform::Void),
            field(2, "n", PrimitiveType::Int, Transform::Identity),
        ]);
        let key = read(&mixed, json!({ "n": 5 })).unwrap();
        assert_eq!(key.to_json(), json!({ "gone": null, "n": 5 }));
        assert_eq!(read(&mixed, key.to_json()), Ok(key));
        assert!(read(&mixed, json!({ "gone": "x", "n": 5 })).unwrap_err().contains("void"));
    }

    #[tokio::test]
    async fn the_current_spec_is_the_default() {
        let lake = Lake::new().await;
        let table = lake.create("t", Shape::partitioned(&[(2, "day", Transform::Day)])).await;
        let json = json!({ "day": "2026-11-01" });
        let key = table.partition_from_json(None, json.as_object().unwrap()).unwrap();
        assert_eq!((key.spec_id, key.to_json()), (0, json.clone()));
        let error = table.partition_from_json(Some(7), json.as_object().unwrap()).unwrap_err();
        assert_eq!(error, "table `db.t` has no partition spec 7; it has 0");
    }

    proptest! {
        #[test]
        fn what_a_key_says_is_read_back(day in any::<i16>(), n in any::<i64>(), text in ".*", null in any::<bool>()) {
            let spec = spec(vec![
                field(1, "day", PrimitiveType::Date, Transform::Day),
                field(2, "n", PrimitiveType::Long, Transform::Identity),
                field(3, "text", PrimitiveType::String, Transform::Identity),
            ]);
            let values = vec![
                Some(Scalar::Date(i32::from(day))),
                (!null).then_some(Scalar::Long(n)),
                Some(Scalar::String(text)),
            ];
            let key = spec.key(values);
            prop_assert_eq!(read(&spec, key.to_json()), Ok(key));
        }
    }
}
