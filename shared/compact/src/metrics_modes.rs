//! Which metrics each column of an output gets, as the table's properties `write.metadata.metrics.*` say it to Iceberg's own writers.

use std::collections::{HashMap, HashSet};

use firn_columnar::{MetricsMode, MetricsModes};
use iceberg::spec::{NestedFieldRef, Schema, SortOrder, Transform, Type};

const DEFAULT: &str = "write.metadata.metrics.default";
const OF_COLUMN: &str = "write.metadata.metrics.column.";
const LIMIT: &str = "write.metadata.metrics.max-inferred-column-defaults";
/// How many columns have metrics when nobody says which.
const COLUMNS: usize = 100;

/// The modes for a table, as Iceberg's `MetricsConfig` reads them: a column's own property, else at least `truncate(16)` for columns
/// of the sort order, else the default, which without a property is `truncate(16)` for the first columns and `none` for the rest.
///
/// A value that is no mode counts as the default, as it does there: metrics are worth no failed merge.
pub(crate) fn metrics_modes(properties: &HashMap<String, String>, schema: &Schema, order: &SortOrder) -> MetricsModes {
    let mut modes = match properties.get(DEFAULT) {
        Some(text) => MetricsModes::from(parse(text, MetricsMode::default())),
        None => inferred(properties, schema),
    };
    let sorted = match modes.default {
        MetricsMode::None | MetricsMode::Counts => MetricsMode::default(),
        other => other,
    };
    for field in order.fields.iter().filter(|field| keeps_order(field.transform)) {
        modes.columns.insert(field.source_id, sorted);
    }
    for (key, text) in properties {
        let Some(id) = key.strip_prefix(OF_COLUMN).and_then(|name| schema.field_id_by_name(name)) else { continue };
        modes.columns.insert(id, parse(text, modes.default));
    }
    modes
}

fn inferred(properties: &HashMap<String, String>, schema: &Schema) -> MetricsModes {
    let limit = properties.get(LIMIT).and_then(|text| text.trim().parse().ok()).unwrap_or(COLUMNS);
    let top = schema.as_struct().fields();
    if count(top) <= limit {
        return MetricsModes::default();
    }
    let mut first = HashSet::new();
    take_first(top, limit, &mut first);
    let columns = first.into_iter().map(|id| (id, MetricsMode::default())).collect();
    MetricsModes { default: MetricsMode::None, columns }
}

/// Fields of every kind, nested ones too.
fn count(fields: &[NestedFieldRef]) -> usize {
    fields.iter().map(|field| 1 + count(&inner(field))).sum()
}

fn inner(field: &NestedFieldRef) -> Vec<NestedFieldRef> {
    match field.field_type.as_ref() {
        Type::Primitive(_) => Vec::new(),
        Type::Struct(inner) => inner.fields().to_vec(),
        Type::List(list) => vec![list.element_field.clone()],
        Type::Map(map) => vec![map.key_field.clone(), map.value_field.clone()],
    }
}

/// The first primitive columns: those of a struct before those of the structs in it.
fn take_first(fields: &[NestedFieldRef], limit: usize, taken: &mut HashSet<i32>) {
    for field in fields {
        if taken.len() >= limit {
            return;
        }
        if field.field_type.is_primitive() {
            taken.insert(field.id);
        }
    }
    for field in fields {
        if taken.len() >= limit {
            return;
        }
        take_first(&inner(field), limit, taken);
    }
}

fn keeps_order(transform: Transform) -> bool {
    matches!(
        transform,
        Transform::Identity
            | Transform::Truncate(_)
            | Transform::Year
            | Transform::Month
            | Transform::Day
            | Transform::Hour
    )
}

/// What is wrong with each of these properties that has no effect.
pub(crate) fn ineffective_metrics(
    properties: &HashMap<String, String>,
    is_column: impl Fn(&str) -> bool,
) -> Vec<String> {
    let problem = |(key, text): (&String, &String)| match key.strip_prefix(OF_COLUMN) {
        Some(column) if !is_column(column) => Some(format!("table property {key}: the table has no column `{column}`")),
        Some(_) => no_mode(key, text),
        None if key == DEFAULT => no_mode(key, text),
        None => None,
    };
    properties.iter().filter_map(problem).collect()
}

fn no_mode(key: &str, text: &str) -> Option<String> {
    let known = "is none of none, counts, truncate(length) and full; the default is used";
    mode(text).is_none().then(|| format!("table property {key}: `{text}` {known}"))
}

fn parse(text: &str, otherwise: MetricsMode) -> MetricsMode {
    mode(text).unwrap_or(otherwise)
}

fn mode(text: &str) -> Option<MetricsMode> {
    let word = text.trim().to_ascii_lowercase();
    match word.as_str() {
        "none" => Some(MetricsMode::None),
        "counts" => Some(MetricsMode::Counts),
        "full" => Some(MetricsMode::Full),
        _ => {
            let inside = word.strip_prefix("truncate(")?.strip_suffix(')')?;
            inside.trim().parse().ok().filter(|length: &usize| *length > 0).map(MetricsMode::Truncate)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{NestedField, NullOrder, PrimitiveType, SortDirection, SortField, StructType};

    use super::*;

    const CUT: MetricsMode = MetricsMode::Truncate(16);

    /// Columns 1 to `count`, texts, and after them a struct `s` with two more.
    fn schema(count: i32) -> Schema {
        let text =
            |id: i32, name: String| Arc::new(NestedField::optional(id, name, Type::Primitive(PrimitiveType::String)));
        let mut fields: Vec<NestedFieldRef> = (1..=count).map(|id| text(id, format!("c{id}"))).collect();
        let inside = StructType::new(vec![text(1001, "a".into()), text(1002, "b".into())]);
        fields.push(Arc::new(NestedField::optional(1000, "s", Type::Struct(inside))));
        Schema::builder().with_fields(fields).build().unwrap()
    }

    fn by(ids: &[i32]) -> SortOrder {
        let field = |id: &i32| {
            let (direction, null_order) = (SortDirection::Ascending, NullOrder::First);
            SortField::builder()
                .source_id(*id)
                .transform(Transform::Identity)
                .direction(direction)
                .null_order(null_order)
                .build()
        };
        SortOrder::builder().with_order_id(1).with_fields(ids.iter().map(field).collect()).build_unbound().unwrap()
    }

    fn modes(pairs: &[(&str, &str)], columns: i32, sorted: &[i32]) -> MetricsModes {
        let properties = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let order = if sorted.is_empty() { SortOrder::unsorted_order() } else { by(sorted) };
        metrics_modes(&properties, &schema(columns), &order)
    }

    #[test]
    fn without_properties_every_column_of_a_narrow_table_has_short_bounds() {
        let found = modes(&[], 97, &[]);
        assert_eq!(found, MetricsModes::default());
        assert_eq!((found.of(1), found.of(1002)), (CUT, CUT));
    }

    #[test]
    fn of_a_wide_table_the_first_columns_have_metrics() {
        // 98 columns, the struct and its two: 101.
        let found = modes(&[], 98, &[]);
        assert_eq!((found.of(98), found.of(1001), found.of(1002)), (CUT, CUT, CUT), "a hundred of them are primitive");
        let found = modes(&[], 99, &[]);
        assert_eq!((found.of(99), found.of(1001), found.of(1002)), (CUT, CUT, MetricsMode::None));
        let found = modes(&[(LIMIT, "2")], 3, &[3]);
        assert_eq!(
            [1, 2, 3, 1001].map(|id| found.of(id)),
            [CUT, CUT, CUT, MetricsMode::None],
            "sorted ones have bounds all the same"
        );
    }

    #[test]
    fn a_column_wins_over_the_default() {
        let pairs = [
            (DEFAULT, "counts"),
            ("write.metadata.metrics.column.c2", "FULL"),
            ("write.metadata.metrics.column.s.a", "none"),
            ("write.metadata.metrics.column.c3", " truncate( 4 ) "),
            ("write.metadata.metrics.column.nothing", "full"),
        ];
        let found = modes(&pairs, 200, &[4]);
        let expected = [
            MetricsMode::Counts,
            MetricsMode::Full,
            MetricsMode::Truncate(4),
            CUT,
            MetricsMode::None,
            MetricsMode::Counts,
        ];
        assert_eq!([1, 2, 3, 4, 1001, 200].map(|id| found.of(id)), expected);
    }

    #[test]
    fn what_is_no_mode_is_the_default() {
        for wrong in ["truncate(0)", "truncate", "everything", ""] {
            assert_eq!(modes(&[(DEFAULT, wrong)], 3, &[]).of(1), CUT, "{wrong}");
            let found = modes(&[(DEFAULT, "none"), ("write.metadata.metrics.column.c1", wrong)], 3, &[]);
            assert_eq!(found.of(1), MetricsMode::None, "{wrong}");
        }
    }
}
