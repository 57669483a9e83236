//! A value of an array as JSON: numbers, texts and truth as themselves, anything else as text that people read.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::array_value_to_string;
use arrow_schema::DataType;
use serde_json::{Number, Value};

pub(super) fn to_json(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let float = |value: f64| Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number);
    match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        // By its shortest text: 0.1 stays 0.1.
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            float(value.to_string().parse().unwrap_or(f64::from(value)))
        }
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        _ => array_value_to_string(array, row).map_or(Value::Null, Value::String),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Date32Array, Float32Array, Float64Array, Int64Array, StringArray};
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_what_people_and_programs_expect() {
        let of = |array: ArrayRef| (0..array.len()).map(|row| to_json(&array, row)).collect::<Vec<_>>();
        assert_eq!(of(Arc::new(Int64Array::from(vec![Some(1), None]))), [json!(1), json!(null)]);
        assert_eq!(of(Arc::new(Float32Array::from(vec![0.1]))), [json!(0.1)]);
        assert_eq!(of(Arc::new(Float64Array::from(vec![f64::NAN]))), [json!("NaN")]);
        assert_eq!(of(Arc::new(StringArray::from(vec!["a\u{0}😀"]))), [json!("a\u{0}😀")]);
        assert_eq!(of(Arc::new(Date32Array::from(vec![20_393]))), [json!("2025-11-01")]);
    }
}
