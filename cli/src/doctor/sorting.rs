//! Whether the columns that a dataset orders its rows by are in the table.

use std::fmt;

use firn_config::Dataset;
use firn_model::RowOrder;
use firn_table::{LoadedTable, OrderColumns, OrderError, row_order};

use super::finding::Finding;

#[derive(Debug)]
pub(super) enum Sorting {
    /// The columns in their order.
    By { dataset: String, order: String },
    /// Nothing orders the rows.
    CommitOrder { dataset: String },
    /// The error has key, column and remedy.
    Wrong { dataset: String, error: OrderError },
}

pub(super) fn look(dataset: &Dataset, table: &LoadedTable) -> Sorting {
    let name = dataset.name.clone();
    match row_order(&table.metadata, &OrderColumns::from(dataset)) {
        Err(error) => Sorting::Wrong { dataset: name, error },
        Ok(order) => decide(name, &order),
    }
}

fn decide(dataset: String, order: &RowOrder) -> Sorting {
    match order.columns.is_empty() {
        true => Sorting::CommitOrder { dataset },
        false => Sorting::By { dataset, order: order.canonical() },
    }
}

impl fmt::Display for Sorting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sorting::By { dataset, order } => write!(f, "{dataset}: {order}"),
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
}
