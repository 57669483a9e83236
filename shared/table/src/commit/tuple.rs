//! Partition tuples: the model's typed key beside the tuples of manifest entries.
//!
//! A column may have been promoted (int to long, float to double) between two files of one partition, so values are compared
//! in their widest type.

use firn_model::{PartitionKey, Scalar};
use iceberg::spec::{Literal, PrimitiveLiteral, PrimitiveType, Struct, StructType, Type};

/// Whether `tuple` is the tuple of `key`.
pub(crate) fn is_tuple_of(key: &PartitionKey, tuple: &Struct) -> bool {
    if key.is_unpartitioned() {
        return tuple.iter().all(|value| value.is_none());
    }
    tuple.fields().len() == key.values.len()
        && tuple.iter().zip(&key.values).all(|(found, wanted)| match (found, &wanted.value) {
            (None, None) => true,
            (Some(Literal::Primitive(found)), Some(wanted)) => widest(found.clone()) == literal(wanted),
            _ => false,
        })
}

/// The tuple with its values in the types that `types` asks for; None when a value has no such form.
pub(crate) fn fit(tuple: &Struct, types: &StructType) -> Option<Struct> {
    if tuple.fields().len() != types.fields().len() {
        return None;
    }
    tuple
        .iter()
        .zip(types.fields())
        .map(|(value, field)| match (value, field.field_type.as_ref()) {
            (None, _) => Some(None),
            (Some(Literal::Primitive(value)), Type::Primitive(kind)) => {
                fit_literal(value.clone(), kind).map(|value| Some(Literal::Primitive(value)))
            }
            _ => None,
        })
        .collect()
}

fn fit_literal(value: PrimitiveLiteral, kind: &PrimitiveType) -> Option<PrimitiveLiteral> {
    if kind.compatible(&value) {
        return Some(value);
    }
    let wide = widest(value);
    kind.compatible(&wide).then_some(wide)
}

fn widest(value: PrimitiveLiteral) -> PrimitiveLiteral {
    match value {
        PrimitiveLiteral::Int(v) => PrimitiveLiteral::Long(i64::from(v)),
        PrimitiveLiteral::Float(v) => double(f64::from(v.0)),
        other => other,
    }
}

fn double(value: f64) -> PrimitiveLiteral {
    PrimitiveLiteral::Double(value.into())
}

/// The widest literal of a value of the model.
fn literal(value: &Scalar) -> PrimitiveLiteral {
    match value {
        Scalar::Bool(v) => PrimitiveLiteral::Boolean(*v),
        Scalar::Int(v) | Scalar::Date(v) => PrimitiveLiteral::Long(i64::from(*v)),
        Scalar::Long(v)
        | Scalar::Time(v)
        | Scalar::Timestamp(v)
        | Scalar::Timestamptz(v)
        | Scalar::TimestampNs(v)
        | Scalar::TimestamptzNs(v) => PrimitiveLiteral::Long(*v),
        Scalar::Float(v) => double(f64::from(*v)),
        Scalar::Double(v) => double(*v),
        Scalar::Decimal { unscaled, .. } => PrimitiveLiteral::Int128(*unscaled),
        Scalar::String(v) => PrimitiveLiteral::String(v.clone()),
        Scalar::Uuid(v) => PrimitiveLiteral::UInt128(v.as_u128()),
        Scalar::Binary(v) => PrimitiveLiteral::Binary(v.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_model::PartitionValue;
    use iceberg::spec::NestedField;

    use super::*;

    fn key(values: Vec<Option<Scalar>>) -> PartitionKey {
        let named = values.into_iter().enumerate();
        PartitionKey::new(0, named.map(|(n, value)| PartitionValue { name: format!("p{n}"), value }).collect())
    }

    fn tuple(values: Vec<Option<Literal>>) -> Struct {
        values.into_iter().collect()
    }

    #[test]
    fn tuples_match_by_value_also_after_a_promotion() {
        let wanted = key(vec![Some(Scalar::Long(5)), None]);
        assert!(is_tuple_of(&wanted, &tuple(vec![Some(Literal::int(5)), None])));
        assert!(is_tuple_of(&wanted, &tuple(vec![Some(Literal::long(5)), None])));
        assert!(!is_tuple_of(&wanted, &tuple(vec![Some(Literal::long(6)), None])));
        assert!(!is_tuple_of(&wanted, &tuple(vec![Some(Literal::long(5)), Some(Literal::int(0))])));
        assert!(!is_tuple_of(&wanted, &tuple(vec![Some(Literal::long(5))])));
        assert!(is_tuple_of(
            &key(vec![Some(Scalar::String("a/b".into()))]),
            &tuple(vec![Some(Literal::string("a/b"))])
        ));
        assert!(is_tuple_of(&PartitionKey::unpartitioned(0), &Struct::empty()));
        assert!(is_tuple_of(&PartitionKey::all_void(0, ["p".into()]), &tuple(vec![None])));
    }

    #[test]
    fn tuples_are_widened_to_the_type_asked_for_and_never_narrowed() {
        let types = |kind| StructType::new(vec![Arc::new(NestedField::optional(1000, "p", Type::Primitive(kind)))]);
        let fitted = |literal, kind| fit(&tuple(vec![Some(literal)]), &types(kind));
        assert_eq!(fitted(Literal::int(5), PrimitiveType::Long), Some(tuple(vec![Some(Literal::long(5))])));
        assert_eq!(fitted(Literal::int(5), PrimitiveType::Date), Some(tuple(vec![Some(Literal::int(5))])));
        assert_eq!(fitted(Literal::long(5), PrimitiveType::Int), None);
        assert_eq!(fit(&tuple(vec![None]), &types(PrimitiveType::Int)), Some(tuple(vec![None])));
        assert_eq!(fit(&Struct::empty(), &types(PrimitiveType::Int)), None);
    }
}
