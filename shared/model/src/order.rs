//! The row order of a dataset (design section 5).

/// One column of a row order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderColumn {
    /// Iceberg field id of a top-level column of the table schema.
    pub field_id: i32,
    /// Its current name, for messages.
    pub name: String,
    /// Largest first.
    pub descending: bool,
    /// Nulls before values.
    pub nulls_first: bool,
}

/// The order in which a dataset's rows are written. An empty order means: rows follow in commit order.
///
/// There is one total order of values (floats: -NaN < -Inf < … < -0.0 < 0.0 < … < NaN); `firn-merge` holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RowOrder {
    /// Columns, most significant first.
    pub columns: Vec<OrderColumn>,
    /// With dedup: how many leading columns are the dedup key (series columns and time column).
    /// Nulls are equal to each other, -0.0 and 0.0 are not.
    pub dedup_columns: Option<usize>,
    /// True when commit order must be kept: the dataset has `seriesColumns` or `dedup`.
    pub keeps_commit_order: bool,
    /// With `keeps_commit_order`: how many leading columns are the key whose writes have an order, series columns and time
    /// column. Two files that share no such key may change places; a later column (insertion time) proves nothing, because
    /// rows of one key may differ in it. 0 proves nothing either.
    pub key_columns: usize,
    /// True when the table's own sort order is a prefix of this order, with equal directions and null orders.
    /// Only then may outputs carry `sort_order_id`.
    pub table_sort_order_id: Option<i32>,
}

impl RowOrder {
    /// No order at all: rows follow in commit order.
    pub fn is_unordered(&self) -> bool {
        self.columns.is_empty()
    }

    /// A stable text of the order, part of output hashes and of the sortedness claim in a file's footer,
    /// for example `3 asc nulls-first,1 desc nulls-last`. Field ids, not names: a rename changes no order.
    pub fn canonical(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                format!(
                    "{} {} {}",
                    column.field_id,
                    if column.descending { "desc" } else { "asc" },
                    if column.nulls_first { "nulls-first" } else { "nulls-last" }
                )
            })
            .collect();
        columns.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_names_ids_directions_and_null_orders() {
        let order = RowOrder {
            columns: vec![
                OrderColumn { field_id: 3, name: "name".into(), descending: false, nulls_first: true },
                OrderColumn { field_id: 1, name: "time".into(), descending: true, nulls_first: false },
            ],
            ..RowOrder::default()
        };
        assert_eq!(order.canonical(), "3 asc nulls-first,1 desc nulls-last");
        assert!(RowOrder::default().is_unordered());
    }
}
