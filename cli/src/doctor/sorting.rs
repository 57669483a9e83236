//! Whether the columns that a dataset orders its rows by are in the table.

use std::fmt;

use firn_config::Dataset;
use firn_model::RowOrder;
use firn_table::{LoadedTable, OrderColumns, OrderError, row_order};
use iceberg::spec::{PrimitiveType, Schema, Type};

use super::finding::Finding;

#[derive(Debug)]
pub(super) enum Sorting {
    /// The columns in their order.
    By { dataset: String, order: String },
    /// The same, but times are compared as letters.
    TimeIsText { dataset: String, order: String, column: String, dedup: bool },
    /// Nothing orders the rows.
    CommitOrder { dataset: String },
    /// The error has key, column and remedy.
    Wrong { dataset: String, error: OrderError },
}

pub(super) fn look(dataset: &Dataset, table: &LoadedTable) -> Sorting {
    let name = dataset.name.clone();
    match row_order(&table.metadata, &OrderColumns::from(dataset)) {
        Err(error) => Sorting::Wrong { dataset: name, error },
        Ok(order) => decide(name, &order, text_time(dataset, table.metadata.current_schema())),
    }
}

/// The dataset's `timeColumn` where it is a text, and whether `dedup` rests on it.
fn text_time(dataset: &Dataset, schema: &Schema) -> Option<(String, bool)> {
    let column = dataset.time_column.as_deref()?;
    let field = schema.field_by_name(column)?;
    let is_text = matches!(*field.field_type, Type::Primitive(PrimitiveType::String));
    is_text.then(|| (column.to_owned(), dataset.dedup))
}

fn decide(dataset: String, order: &RowOrder, text_time: Option<(String, bool)>) -> Sorting {
    let canonical = order.canonical();
    match (order.columns.is_empty(), text_time) {
        (true, _) => Sorting::CommitOrder { dataset },
        (false, Some((column, dedup))) => Sorting::TimeIsText { dataset, order: canonical, column, dedup },
        (false, None) => Sorting::By { dataset, order: canonical },
    }
}

impl fmt::Display for Sorting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sorting::By { dataset, order } => write!(f, "{dataset}: {order}"),
            Sorting::TimeIsText { dataset, order, column, dedup } => {
                let keys = if *dedup { ", dedup takes two spellings of one time for two keys" } else { "" };
                write!(
                    f,
                    "{dataset}: {order}; timeColumn {column} is a string: its values are compared letter by letter{keys}, and no partition \
                     is ever cold; a column of type timestamp or date, or one form for all times (2026-11-01T05:00:00Z), is right"
                )
            }
            Sorting::CommitOrder { dataset } => write!(
                f,
                "{dataset}: none, rows follow in commit order; seriesColumns with timeColumn, or sortColumns, let readers skip more"
            ),
            Sorting::Wrong { dataset, error } => write!(f, "{dataset}: {error}"),
        }
    }
}

impl Finding for Sorting {
    fn ok(&self) -> bool {
        !matches!(self, Sorting::Wrong { .. })
    }

    fn warns(&self) -> bool {
        matches!(self, Sorting::TimeIsText { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use firn_config::Config;
    use iceberg::spec::NestedField;

    use super::*;

    #[test]
    fn a_time_that_is_a_text_is_named() {
        let text = "catalog: {type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'file:///w'}\n\
                    ingestion: {datasets: [{name: readings, table: a.b, timeColumn: t, dedup: true}]}";
        let config = Config::load(text, &HashMap::new()).unwrap();
        let of = |kind: PrimitiveType| {
            let field = NestedField::optional(1, "t", Type::Primitive(kind));
            let schema = Schema::builder().with_fields([Arc::new(field)]).build().unwrap();
            text_time(&config.datasets[0], &schema)
        };
        assert_eq!(of(PrimitiveType::Timestamp), None);
        assert_eq!(of(PrimitiveType::String), Some(("t".into(), true)));
        let said =
            Sorting::TimeIsText { dataset: "readings".into(), order: "t asc".into(), column: "t".into(), dedup: true };
        assert!(said.ok() && said.warns(), "{said}");
        assert!(
            said.to_string().contains("timeColumn t is a string") && said.to_string().contains("two keys"),
            "{said}"
        );
    }
}
