//! What is right, written without any clever code.

use std::cmp::Ordering;

use firn_model::{OrderColumn, RowOrder};

use super::{Row, TestFile};

pub(crate) fn compare_option<T>(
    column: &OrderColumn,
    left: Option<&T>,
    right: Option<&T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Ordering {
    match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) if column.nulls_first => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => compare_option(column, right, left, compare).reverse(),
        (Some(left), Some(right)) if column.descending => compare(right, left),
        (Some(left), Some(right)) => compare(left, right),
    }
}

pub(crate) fn compare_column(column: &OrderColumn, left: &Row, right: &Row) -> Ordering {
    match column.field_id {
        1 => compare_option(column, left.name.as_ref(), right.name.as_ref(), String::cmp),
        // The test has one NaN of each sign, so IEEE's total order is the row order.
        2 => compare_option(column, left.x.as_ref(), right.x.as_ref(), f64::total_cmp),
        _ => compare_option(column, left.inserted.as_ref(), right.inserted.as_ref(), i64::cmp),
    }
}

pub(crate) fn compare_keys(columns: &[OrderColumn], left: &Row, right: &Row) -> Ordering {
    columns.iter().fold(Ordering::Equal, |order, column| order.then_with(|| compare_column(column, left, right)))
}

/// (file, row) of the expected output rows.
pub(crate) fn oracle(files: &[TestFile], order: &RowOrder) -> Vec<(usize, usize)> {
    let mut rows: Vec<(usize, usize)> = Vec::new();
    for (at, file) in files.iter().enumerate() {
        rows.extend((0..file.rows.len()).map(|row| (at, row)));
    }
    let row = |place: &(usize, usize)| &files[place.0].rows[place.1];
    let sequence = |place: &(usize, usize)| files[place.0].sequence;
    let place = |place: &(usize, usize)| (sequence(place), place.0, place.1);
    rows.sort_by(|a, b| compare_keys(&order.columns, row(a), row(b)).then_with(|| place(a).cmp(&place(b))));
    let Some(dedup) = order.dedup_columns else { return rows };
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for next in rows {
        match kept.last_mut() {
            Some(last) if compare_keys(&order.columns[..dedup], row(last), row(&next)) == Ordering::Equal => {
                let age = |at: &(usize, usize)| {
                    let inserted = if order.columns.len() > dedup { row(at).inserted } else { None };
                    (sequence(at), inserted, at.0, at.1)
                };
                if age(last) < age(&next) {
                    *last = next;
                }
            }
            _ => kept.push(next),
        }
    }
    kept
}
