//! The row order of a dataset, from column names to field ids (design section 5, "Row order of a dataset").

use firn_config::Dataset;
use firn_model::{OrderColumn, RowOrder};
use iceberg::spec::{NullOrder, Schema, SortDirection, SortField, SortOrder, TableMetadata, Transform};

/// The columns of a dataset that order its rows, as the configuration names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderColumns {
    /// `seriesColumns`.
    pub series: Vec<String>,
    /// `timeColumn`.
    pub time: Option<String>,
    /// `insertionTimeColumn`.
    pub insertion_time: Option<String>,
    /// `sortColumns`.
    pub sort: Vec<String>,
    /// `dedup`.
    pub dedup: bool,
}

impl From<&Dataset> for OrderColumns {
    fn from(dataset: &Dataset) -> Self {
        Self {
            series: dataset.series_columns.clone(),
            time: dataset.time_column.clone(),
            insertion_time: dataset.insertion_time_column.clone(),
            sort: dataset.sort_columns.clone(),
            dedup: dataset.dedup,
        }
    }
}

/// Why a dataset's columns give no row order. Each is wrong configuration, seen only once the table is loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// No top-level column has this name.
    #[error("{key}: the table has no column `{column}`{}; its columns are {}", did_you_mean(.nearest), list(.known))]
    Unknown {
        /// Configuration key.
        key: &'static str,
        /// The name in the configuration.
        column: String,
        /// The known name with the fewest edits, when it is near.
        nearest: Option<String>,
        /// Every top-level column.
        known: Vec<String>,
    },
    /// The name is that of a field inside a struct, list or map.
    #[error("{key}: `{column}` is a nested field; rows are ordered by top-level columns only")]
    Nested {
        /// Configuration key.
        key: &'static str,
        /// The name in the configuration.
        column: String,
    },
    /// The name is that of a top-level column and of a nested field.
    #[error("{key}: `{column}` names a top-level column and a nested field; rename one of them")]
    Ambiguous {
        /// Configuration key.
        key: &'static str,
        /// The name in the configuration.
        column: String,
    },
    /// The column has a type without an order.
    #[error("{key}: column `{column}` has type {column_type}, which has no order")]
    NoOrder {
        /// Configuration key.
        key: &'static str,
        /// The name in the configuration.
        column: String,
        /// Its type.
        column_type: String,
    },
    /// A column stands twice in the order.
    #[error("{key}: column `{column}` stands twice in the row order")]
    Twice {
        /// Configuration key of the second mention.
        key: &'static str,
        /// The name in the configuration.
        column: String,
    },
    /// `dedup` or `seriesColumns` without `timeColumn`.
    #[error("{key} needs timeColumn")]
    NoTime {
        /// Configuration key that needs it.
        key: &'static str,
    },
    /// `sortColumns` and the order of series and time cannot both hold.
    #[error(
        "sortColumns ({}) contradict the order of seriesColumns, timeColumn and insertionTimeColumn ({}); remove \
         sortColumns or let one begin with the other",
        list(.sort),
        list(.order)
    )]
    Contradiction {
        /// `sortColumns`.
        sort: Vec<String>,
        /// Series, time and insertion time columns.
        order: Vec<String>,
    },
}

impl OrderError {
    /// The configuration key that is wrong.
    pub fn key(&self) -> &'static str {
        match self {
            OrderError::Unknown { key, .. }
            | OrderError::Nested { key, .. }
            | OrderError::Ambiguous { key, .. }
            | OrderError::NoOrder { key, .. }
            | OrderError::Twice { key, .. }
            | OrderError::NoTime { key } => key,
            OrderError::Contradiction { .. } => "sortColumns",
        }
    }
}

/// The row order of a dataset on a table: `seriesColumns`, `timeColumn`, `insertionTimeColumn` where set; else `sortColumns`;
/// else the leading identity fields of the table's default sort order; else none. Directions and null orders are the
/// table's where its sort order has the column, else ascending with nulls first.
///
/// `sortColumns` that say the same as series and time, or say more without dedup, are followed; a dataset whose only column
/// of the first kind is `timeColumn` is ordered by its `sortColumns`.
///
/// # Errors
/// [`OrderError`], which names the configuration key.
pub fn row_order(metadata: &TableMetadata, columns: &OrderColumns) -> Result<RowOrder, OrderError> {
    let schema = metadata.current_schema();
    let table_order = metadata.default_sort_order();
    let names = column_names(columns)?;
    let mut order = RowOrder {
        dedup_columns: columns.dedup.then_some(columns.series.len() + 1),
        keeps_commit_order: columns.dedup || !columns.series.is_empty(),
        key_columns: if columns.dedup || !columns.series.is_empty() { columns.series.len() + 1 } else { 0 },
        ..RowOrder::default()
    };
    for (key, column) in &names {
        let field_id = resolve(schema, key, column)?;
        if order.columns.iter().any(|known| known.field_id == field_id) {
            return Err(OrderError::Twice { key, column: column.clone() });
        }
        order.columns.push(order_column(field_id, column, table_order));
    }
    if names.is_empty() {
        order.columns = table_columns(schema, table_order);
    }
    order.table_sort_order_id = claimed_order(table_order, &order.columns);
    Ok(order)
}

type Named = (&'static str, String);

/// The column names of the order with the keys they come from; empty when the table's own order decides.
fn column_names(columns: &OrderColumns) -> Result<Vec<Named>, OrderError> {
    let needs_time = [("dedup", columns.dedup), ("seriesColumns", !columns.series.is_empty())];
    if let Some((key, _)) = needs_time.into_iter().find(|(_, used)| *used && columns.time.is_none()) {
        return Err(OrderError::NoTime { key });
    }
    let mut base: Vec<Named> = columns.series.iter().map(|name| ("seriesColumns", name.clone())).collect();
    base.extend(columns.time.iter().map(|name| ("timeColumn", name.clone())));
    let dedup_key = base.len();
    base.extend(columns.insertion_time.iter().map(|name| ("insertionTimeColumn", name.clone())));
    let sort: Vec<Named> = columns.sort.iter().map(|name| ("sortColumns", name.clone())).collect();

    let begins_with = |longer: &[Named], shorter: &[Named]| {
        longer.len() >= shorter.len() && longer.iter().zip(shorter).all(|(a, b)| a.1 == b.1)
    };
    if begins_with(&base, &sort) {
        return Ok(base);
    }
    // With dedup no two rows share the key, so rows in key order are in every order that begins with the key.
    if columns.dedup && begins_with(&sort, &base[..dedup_key]) {
        return Ok(base);
    }
    // The time column alone may only serve the rules that look at the clock.
    if !columns.dedup && (columns.series.is_empty() || begins_with(&sort, &base)) {
        return Ok(sort);
    }
    let names = |list: Vec<Named>| list.into_iter().map(|(_, name)| name).collect();
    Err(OrderError::Contradiction { sort: names(sort), order: names(base) })
}

/// The field id of a top-level column with an order.
fn resolve(schema: &Schema, key: &'static str, column: &str) -> Result<i32, OrderError> {
    let fields = schema.as_struct().fields();
    let top_level = fields.iter().find(|field| field.name == column);
    let nested = schema.field_by_name(column).filter(|found| fields.iter().all(|field| field.id != found.id));
    match (top_level, nested) {
        (Some(_), Some(_)) => Err(OrderError::Ambiguous { key, column: column.to_owned() }),
        (None, Some(_)) => Err(OrderError::Nested { key, column: column.to_owned() }),
        (Some(field), None) if !field.field_type.is_primitive() => {
            Err(OrderError::NoOrder { key, column: column.to_owned(), column_type: field.field_type.to_string() })
        }
        (Some(field), None) => Ok(field.id),
        (None, None) => {
            let known: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
            let nearest = near(column, known.iter().map(String::as_str));
            Err(OrderError::Unknown { key, column: column.to_owned(), nearest, known })
        }
    }
}

fn order_column(field_id: i32, name: &str, table_order: &SortOrder) -> OrderColumn {
    let of_table = table_order.fields.iter().find(|field| field.source_id == field_id && is_identity(field));
    OrderColumn {
        field_id,
        name: name.to_owned(),
        descending: of_table.is_some_and(|field| field.direction == SortDirection::Descending),
        nulls_first: of_table.is_none_or(|field| field.null_order == NullOrder::First),
    }
}

/// The leading fields of the table's sort order that Firn can follow: identity of top-level columns.
fn table_columns(schema: &Schema, table_order: &SortOrder) -> Vec<OrderColumn> {
    let fields = schema.as_struct().fields();
    let mut columns: Vec<OrderColumn> = Vec::new();
    for sort in table_order.fields.iter().take_while(|field| is_identity(field)) {
        let Some(field) = fields.iter().find(|field| field.id == sort.source_id) else { break };
        if !field.field_type.is_primitive() {
            break;
        }
        // A second mention of a column orders nothing.
        if columns.iter().all(|known| known.field_id != field.id) {
            columns.push(order_column(field.id, &field.name, table_order));
        }
    }
    columns
}

/// The id of the table's sort order when rows in `columns` order are also in that order.
fn claimed_order(table_order: &SortOrder, columns: &[OrderColumn]) -> Option<i32> {
    let held = |(sort, column): (&SortField, &OrderColumn)| {
        is_identity(sort)
            && sort.source_id == column.field_id
            && (sort.direction == SortDirection::Descending) == column.descending
            && (sort.null_order == NullOrder::First) == column.nulls_first
    };
    let is_prefix = !table_order.fields.is_empty()
        && table_order.fields.len() <= columns.len()
        && table_order.fields.iter().zip(columns).all(held);
    is_prefix.then(|| i32::try_from(table_order.order_id).ok()).flatten()
}

fn is_identity(field: &SortField) -> bool {
    field.transform == Transform::Identity
}

/// The nearest known word, when a typing error may explain the difference.
pub(crate) fn near<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    firn_config::near(word, known).map(str::to_owned)
}

pub(crate) fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

pub(crate) fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use iceberg::TableCreation;
    use iceberg::spec::{NestedField, PrimitiveType, StructType, TableMetadataBuilder, Type};

    use super::*;

    fn schema() -> Schema {
        let primitive = |id, name: &str, of| Arc::new(NestedField::optional(id, name, Type::Primitive(of)));
        let inner = StructType::new(vec![primitive(8, "x", PrimitiveType::Int)]);
        Schema::builder()
            .with_fields([
                primitive(1, "name", PrimitiveType::String),
                primitive(2, "time", PrimitiveType::Timestamp),
                primitive(3, "a", PrimitiveType::Int),
                primitive(4, "A", PrimitiveType::Int),
                primitive(5, "inserted", PrimitiveType::Timestamp),
                Arc::new(NestedField::optional(6, "s", Type::Struct(inner))),
                primitive(7, "value", PrimitiveType::Double),
            ])
            .build()
            .unwrap()
    }

    fn metadata(sort: &[(i32, Transform, SortDirection, NullOrder)]) -> TableMetadata {
        let fields = sort.iter().map(|(source_id, transform, direction, null_order)| SortField {
            source_id: *source_id,
            transform: *transform,
            direction: *direction,
            null_order: *null_order,
        });
        let order = SortOrder { order_id: i64::from(!sort.is_empty()), fields: fields.collect() };
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .location("file:///wh/t".to_owned())
            .schema(schema())
            .sort_order(order)
            .properties(HashMap::new())
            .build();
        TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    fn columns(series: &[&str], time: Option<&str>, sort: &[&str], dedup: bool) -> OrderColumns {
        OrderColumns {
            series: names(series),
            time: time.map(str::to_owned),
            insertion_time: None,
            sort: names(sort),
            dedup,
        }
    }

    const UNSORTED: &[(i32, Transform, SortDirection, NullOrder)] = &[];
    const NAME_TIME_DESC: &[(i32, Transform, SortDirection, NullOrder)] = &[
        (1, Transform::Identity, SortDirection::Ascending, NullOrder::First),
        (2, Transform::Identity, SortDirection::Descending, NullOrder::Last),
    ];

    fn canonical(sort: &[(i32, Transform, SortDirection, NullOrder)], columns: &OrderColumns) -> String {
        row_order(&metadata(sort), columns).unwrap().canonical()
    }

    #[test]
    fn series_time_and_insertion_time_come_first() {
        let mut wanted = columns(&["name"], Some("time"), &[], true);
        wanted.insertion_time = Some("inserted".into());
        let order = row_order(&metadata(UNSORTED), &wanted).unwrap();
        assert_eq!(order.canonical(), "1 asc nulls-first,2 asc nulls-first,5 asc nulls-first");
        assert_eq!((order.dedup_columns, order.keeps_commit_order, order.table_sort_order_id), (Some(2), true, None));
        assert_eq!(order.columns[1].name, "time");
        assert_eq!(order.key_columns, 2);
    }

    #[test]
    fn directions_are_the_tables_and_the_claim_needs_its_whole_order_as_prefix() {
        let order = row_order(&metadata(NAME_TIME_DESC), &columns(&["name"], Some("time"), &[], false)).unwrap();
        assert_eq!(order.canonical(), "1 asc nulls-first,2 desc nulls-last");
        assert_eq!(order.table_sort_order_id, Some(1));
        assert_eq!((order.dedup_columns, order.keeps_commit_order, order.key_columns), (None, true, 2));
        // The direction is the table's, but its first column is missing.
        let order = row_order(&metadata(NAME_TIME_DESC), &columns(&[], Some("time"), &[], true)).unwrap();
        assert_eq!((order.canonical().as_str(), order.table_sort_order_id), ("2 desc nulls-last", None));
        assert_eq!(order.dedup_columns, Some(1));
    }

    #[test]
    fn without_columns_the_tables_identity_fields_decide() {
        let none = OrderColumns::default();
        assert_eq!(canonical(NAME_TIME_DESC, &none), "1 asc nulls-first,2 desc nulls-last");
        assert_eq!(canonical(UNSORTED, &none), "");
        let mixed =
            [NAME_TIME_DESC[0], (2, Transform::Day, SortDirection::Ascending, NullOrder::First), NAME_TIME_DESC[1]];
        let order = row_order(&metadata(&mixed), &none).unwrap();
        assert_eq!((order.canonical().as_str(), order.table_sort_order_id), ("1 asc nulls-first", None));
        assert_eq!((order.keeps_commit_order, order.key_columns), (false, 0));
        let nested = [(8, Transform::Identity, SortDirection::Ascending, NullOrder::First)];
        assert_eq!(canonical(&nested, &none), "");
    }

    #[test]
    fn sort_columns_beside_series_and_time() {
        let series = ["name"];
        for (wanted, expected) in [
            (columns(&[], None, &["value", "a"], false), "7 asc nulls-first,3 asc nulls-first"),
            (columns(&[], Some("time"), &["value"], false), "7 asc nulls-first"),
            (columns(&[], Some("time"), &[], false), "2 asc nulls-first"),
            (columns(&series, Some("time"), &["name"], false), "1 asc nulls-first,2 asc nulls-first"),
            (columns(&series, Some("time"), &["name", "time"], true), "1 asc nulls-first,2 asc nulls-first"),
            (columns(&series, Some("time"), &["name", "time", "value"], true), "1 asc nulls-first,2 asc nulls-first"),
            (
                columns(&series, Some("time"), &["name", "time", "value"], false),
                "1 asc nulls-first,2 asc nulls-first,7 asc nulls-first",
            ),
        ] {
            assert_eq!(canonical(UNSORTED, &wanted), expected, "{wanted:?}");
        }
        for wanted in [
            columns(&series, Some("time"), &["name", "value"], false),
            columns(&series, Some("time"), &["value"], true),
            columns(&[], Some("time"), &["value"], true),
        ] {
            let error = row_order(&metadata(UNSORTED), &wanted).unwrap_err();
            assert!(matches!(error, OrderError::Contradiction { .. }), "{wanted:?}: {error}");
            assert_eq!(error.key(), "sortColumns");
        }
    }

    #[test]
    fn names_match_exactly_and_wrong_ones_name_the_nearest() {
        assert_eq!(canonical(UNSORTED, &columns(&[], None, &["A"], false)), "4 asc nulls-first");
        let error = row_order(&metadata(UNSORTED), &columns(&["Name"], Some("time"), &[], false)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "seriesColumns: the table has no column `Name` (did you mean `name`?); its columns are `name`, `time`, `a`, \
             `A`, `inserted`, `s`, `value`"
        );
        let error = row_order(&metadata(UNSORTED), &columns(&[], Some("tine"), &[], false)).unwrap_err();
        assert!(error.to_string().contains("did you mean `time`"), "{error}");
        let error = row_order(&metadata(UNSORTED), &columns(&[], None, &["zzzzzzzz"], false)).unwrap_err();
        assert!(!error.to_string().contains("did you mean"), "{error}");
    }

    #[test]
    fn nested_unordered_and_repeated_columns_are_refused() {
        let error = |wanted: &OrderColumns| row_order(&metadata(UNSORTED), wanted).unwrap_err();
        let key = "sortColumns";
        assert_eq!(error(&columns(&[], None, &["s.x"], false)), OrderError::Nested { key, column: "s.x".into() });
        assert!(matches!(error(&columns(&[], None, &["s"], false)), OrderError::NoOrder { .. }));
        assert_eq!(error(&columns(&[], None, &["a", "a"], false)), OrderError::Twice { key, column: "a".into() });
        assert_eq!(error(&columns(&["name"], None, &[], false)), OrderError::NoTime { key: "seriesColumns" });
        assert_eq!(error(&columns(&[], None, &[], true)), OrderError::NoTime { key: "dedup" });
    }
}
