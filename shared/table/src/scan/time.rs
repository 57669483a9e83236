//! Where a partition ends in time, and how far the whole table is (design section 3, rule cold).

use std::cmp::Reverse;
use std::sync::Arc;

use chrono::NaiveDate;
use firn_model::{Moment, PartitionKey, Scalar};
use iceberg::spec::{ManifestFile, PrimitiveType, Transform};

use super::entry::{Content, Entry};
use super::manifests::{Selected, holds_deletes, reduce, select};
use super::{SpecTypes, head};
use crate::error::TableError;
use crate::key_bytes::scalar_from_bytes;
use crate::loaded::LoadedTable;
use crate::partition_type::PartitionField;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
/// Manifests read before it is asked again whether more can be higher.
const AT_ONCE: usize = 16;

/// The time column of a dataset on a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeColumn {
    field_id: i32,
    primitive: PrimitiveType,
}

impl TimeColumn {
    /// The column of this name in the current schema; None unless it is a date or timestamp by which a partition spec partitions.
    ///
    /// # Errors
    /// What is wrong with the table's partition specs.
    pub fn of_partitions(table: &LoadedTable, name: &str) -> Result<Option<Self>, TableError> {
        let Some(field) = table.metadata.current_schema().field_by_name(name) else { return Ok(None) };
        let Some(primitive) = field.field_type.as_primitive_type().cloned() else { return Ok(None) };
        let column = Self { field_id: field.id, primitive };
        let partitions = table.spec_types()?.values().any(|spec| spec.fields.iter().any(|f| column.partitions(f)));
        Ok(partitions.then_some(column))
    }

    fn partitions(&self, field: &PartitionField) -> bool {
        let timed = matches!(field.transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour)
            || field.transform == Transform::Identity && is_time(&self.primitive);
        field.source_id == self.field_id && timed
    }

    /// Where a partition ends: no row of it is at this time or later. None when it is no partition of this column.
    pub fn end(&self, spec: &SpecTypes, key: &PartitionKey) -> Option<Moment> {
        self.values(spec, key).filter_map(|(transform, value)| span(value, transform)).map(|(_, end)| Moment(end)).min()
    }

    /// A time that some row of the partition is not before.
    fn start(&self, spec: &SpecTypes, values: &[Option<Scalar>]) -> Option<Moment> {
        let fields = spec.fields.iter().zip(values).filter(|(field, _)| self.partitions(field));
        let starts = fields.filter_map(|(field, value)| span(value.as_ref()?, &field.transform));
        starts.map(|(start, _)| Moment(start)).max()
    }

    fn values<'k>(
        &'k self,
        spec: &'k SpecTypes,
        key: &'k PartitionKey,
    ) -> impl Iterator<Item = (&'k Transform, &'k Scalar)> {
        let fields = spec.fields.iter().zip(&key.values).filter(|(field, _)| self.partitions(field));
        fields.filter_map(|(field, value)| Some((&field.transform, value.value.as_ref()?)))
    }

    /// The highest time of a file, by its metrics, else by where its partition begins.
    fn highest_of(&self, entry: &Entry, spec: &SpecTypes) -> Option<Moment> {
        let by_metrics = entry.bounds(self.field_id).and_then(|(_, upper)| {
            let value = scalar_from_bytes(upper, &self.primitive)?;
            Some(Moment(span(&value, &Transform::Identity)?.0))
        });
        by_metrics.or_else(|| self.start(spec, &entry.partition))
    }

    /// The time before which every row of a manifest's files lies, by its summaries; None when they do not say.
    fn reach(&self, manifest: &ManifestFile, spec: &SpecTypes) -> Option<Moment> {
        let fields = spec.fields.iter().zip(manifest.partitions.as_ref()?).filter(|(field, _)| self.partitions(field));
        let ends = fields.filter_map(|(field, summary)| {
            let upper = scalar_from_bytes(summary.upper_bound.as_ref()?, field.result_type.as_ref()?)?;
            Some(Moment(span(&upper, &field.transform)?.1))
        });
        ends.min()
    }
}

/// The highest time of a table on a branch, by the metrics of its live files. Manifests are read from the highest partition down, and
/// only as long as one can hold a higher time. None when no file says.
///
/// # Errors
/// [`TableError::BranchAbsent`], or what is wrong with a manifest.
pub async fn highest_time(
    table: &LoadedTable,
    branch: &str,
    column: &TimeColumn,
) -> Result<Option<Moment>, TableError> {
    let Some(snapshot) = head(table, branch)? else { return Ok(None) };
    let specs = table.spec_types()?;
    let manifests = table.manifests(snapshot).await?;
    let selected = select(table, &specs, manifests, |manifest, _| !holds_deletes(manifest))?;
    let unknown = Moment(i64::MAX);
    let reach = |selected: &Selected| column.reach(&selected.manifest, &selected.spec).unwrap_or(unknown);
    let mut waiting: Vec<(Moment, Selected)> = selected.into_iter().map(|one| (reach(&one), one)).collect();
    waiting.sort_by_key(|(reach, _)| Reverse(*reach));
    let mut waiting = waiting.into_iter().peekable();
    let mut highest: Option<Moment> = None;
    let column = Arc::new(column.clone());
    loop {
        let mut batch = Vec::with_capacity(AT_ONCE);
        while batch.len() < AT_ONCE
            && let Some((_, one)) = waiting.next_if(|(reach, _)| highest.is_none_or(|highest| *reach > highest))
        {
            batch.push(one);
        }
        if batch.is_empty() {
            return Ok(highest);
        }
        let column = Arc::clone(&column);
        let each = move |found: &mut Option<Moment>, entry: Entry, spec: &SpecTypes| {
            if entry.content == Content::Data {
                *found = (*found).max(column.highest_of(&entry, spec));
            }
            Ok(())
        };
        reduce(table, batch, || None, each, |of_manifest| highest = highest.max(of_manifest)).await?;
    }
}

fn is_time(primitive: &PrimitiveType) -> bool {
    matches!(
        primitive,
        PrimitiveType::Date
            | PrimitiveType::Timestamp
            | PrimitiveType::Timestamptz
            | PrimitiveType::TimestampNs
            | PrimitiveType::TimestamptzNs
    )
}

/// Begin and end (not included) of the time that a partition value stands for, in microseconds from 1970 UTC.
fn span(value: &Scalar, transform: &Transform) -> Option<(i64, i64)> {
    let steps = |at: i32, length: i64| {
        let start = i64::from(at).checked_mul(length)?;
        Some((start, start.checked_add(length)?))
    };
    match (transform, value) {
        (Transform::Day | Transform::Identity, Scalar::Date(days)) | (Transform::Day, Scalar::Int(days)) => {
            steps(*days, DAY)
        }
        (Transform::Hour, Scalar::Int(hours)) => steps(*hours, HOUR),
        (Transform::Month, Scalar::Int(months)) => Some((month(*months)?, month(months.checked_add(1)?)?)),
        (Transform::Year, Scalar::Int(years)) => {
            let first = years.checked_mul(12)?;
            Some((month(first)?, month(first.checked_add(12)?)?))
        }
        (Transform::Identity, Scalar::Timestamp(micros) | Scalar::Timestamptz(micros)) => {
            Some((*micros, micros.checked_add(1)?))
        }
        (Transform::Identity, Scalar::TimestampNs(nanos) | Scalar::TimestamptzNs(nanos)) => {
            let micros = nanos.div_euclid(1000);
            Some((micros, micros + 1))
        }
        _ => None,
    }
}

/// The first moment of a month, counted from January 1970.
fn month(months: i32) -> Option<i64> {
    let (year, month) = (1970 + months.div_euclid(12), months.rem_euclid(12) + 1);
    let first = NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()?, 1)?;
    Some(first.and_hms_opt(0, 0, 0)?.and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: Scalar, transform: Transform) -> Option<(String, String)> {
        span(&value, &transform).map(|(start, end)| (Moment(start).to_string(), Moment(end).to_string()))
    }

    fn times(start: &str, end: &str) -> Option<(String, String)> {
        Some((format!("{start}Z"), format!("{end}Z")))
    }

    #[test]
    fn a_partition_value_spans_its_time() {
        let (first, second) = ("2026-11-01T00:00:00", "2026-11-02T00:00:00");
        assert_eq!(shown(Scalar::Date(20_758), Transform::Day), times(first, second));
        assert_eq!(shown(Scalar::Date(20_758), Transform::Identity), times(first, second));
        assert_eq!(shown(Scalar::Int(682), Transform::Month), times(first, "2026-12-01T00:00:00"));
        assert_eq!(shown(Scalar::Int(-1), Transform::Month), times("1969-12-01T00:00:00", "1970-01-01T00:00:00"));
        assert_eq!(shown(Scalar::Int(56), Transform::Year), times("2026-01-01T00:00:00", "2027-01-01T00:00:00"));
        let hour = shown(Scalar::Int(20_758 * 24 + 5), Transform::Hour);
        assert_eq!(hour, times("2026-11-01T05:00:00", "2026-11-01T06:00:00"));
        assert_eq!(span(&Scalar::Timestamptz(7), &Transform::Identity), Some((7, 8)));
        assert_eq!(span(&Scalar::TimestampNs(-1), &Transform::Identity), Some((-1, 0)));
        for (value, transform) in [
            (Scalar::Int(3), Transform::Bucket(4)),
            (Scalar::String("2026".into()), Transform::Identity),
            (Scalar::Int(i32::MAX), Transform::Year),
        ] {
            assert_eq!(span(&value, &transform), None);
        }
    }
}
