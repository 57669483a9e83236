//! Which partitions a person asked for: `--date-range` and `--partition`, resolved against every spec of the table.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use chrono::NaiveDate;
use firn_model::{PartitionKey, Scalar};
use iceberg::spec::{FieldSummary, PrimitiveType, Transform};

use crate::calendar;
use crate::key_bytes::{bounds, memcmp};
use crate::order::{did_you_mean, list, near};
use crate::partition_type::{PartitionField, SpecTypes, scalar_type};

/// The days FROM to TO, both included (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    /// First day.
    pub from: NaiveDate,
    /// Last day.
    pub to: NaiveDate,
}

impl FromStr for DateRange {
    type Err = FilterError;

    /// Reads `FROM:TO`, each YYYY-MM-DD.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |detail| FilterError::DateRange { text: text.to_owned(), detail };
        let form = "write FROM:TO, each as YYYY-MM-DD, for example 2026-11-01:2026-11-03";
        let (from, to) = text.split_once(':').ok_or_else(|| wrong(form.to_owned()))?;
        let date = |part: &str| calendar::parse_date(part).ok_or_else(|| wrong(format!("`{part}` is no date; {form}")));
        let range = DateRange { from: date(from)?, to: date(to)? };
        if range.to < range.from {
            return Err(wrong(format!("it ends before it begins; write {to}:{from}")));
        }
        Ok(range)
    }
}

/// `COL=VALUE`: a partition field or its source column, and the text of a value; `\N` is null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionTerm {
    /// Partition field or source column.
    pub column: String,
    /// Text of the value; None is null.
    pub value: Option<String>,
}

impl FromStr for PartitionTerm {
    type Err = FilterError;

    /// Splits at the first `=`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((column, value)) if !column.is_empty() => {
                Ok(Self { column: column.to_owned(), value: (value != r"\N").then(|| value.to_owned()) })
            }
            _ => Err(FilterError::Term { text: text.to_owned() }),
        }
    }
}

/// Why a filter cannot be used. All are wrong usage (exit code 2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// `--date-range` cannot be read.
    #[error("--date-range `{text}`: {detail}")]
    DateRange {
        /// The argument.
        text: String,
        /// What is wrong.
        detail: String,
    },
    /// `--partition` cannot be read.
    #[error("--partition `{text}`: write COL=VALUE, for example region=eu (`\\N` stands for null)")]
    Term {
        /// The argument.
        text: String,
    },
    /// The table has no partition field on a date or timestamp.
    #[error("--date-range needs a table that is partitioned by a date or time; {}", partitioned_by(.fields))]
    NoDatePartition {
        /// Its partition fields.
        fields: Vec<String>,
    },
    /// The table is partitioned by several dates, and the dataset's `timeColumn` is none of them.
    #[error("--date-range could mean any of the columns {}: set timeColumn, or use --partition", list(.columns))]
    SeveralDates {
        /// Source columns.
        columns: Vec<String>,
    },
    /// No partition field or source column of this name.
    #[error("--partition `{column}`: no partition field{}; {}", did_you_mean(.nearest), partitioned_by(.fields))]
    Unknown {
        /// The column.
        column: String,
        /// The nearest known name.
        nearest: Option<String>,
        /// The table's partition fields.
        fields: Vec<String>,
    },
    /// The source column is partitioned by a transform that a value cannot be put through by hand.
    #[error(
        "--partition `{column}`: the table is partitioned by {transform} of it; name the partition field `{field}` instead"
    )]
    Transform {
        /// The source column.
        column: String,
        /// Its partition field.
        field: String,
        /// That field's transform.
        transform: String,
    },
    /// The value is not of the field's type.
    #[error("--partition `{column}`: {detail}")]
    Value {
        /// The column.
        column: String,
        /// What is wrong, with the value.
        detail: String,
    },
}

/// Partitions asked for. A spec that lacks one of the columns asked for matches nothing: its files may hold any value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionFilter {
    /// None: every partition. Else the tests of each spec that has all columns asked for.
    specs: Option<HashMap<i32, Vec<FieldTest>>>,
}

/// A test of one field of a tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTest {
    index: usize,
    wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Null,
    /// Encoded first and last value, both included.
    Between(Vec<u8>, Vec<u8>),
}

impl PartitionFilter {
    /// Every partition.
    pub fn all() -> Self {
        Self::default()
    }

    /// Resolves what was asked for against the specs of a table (see [`crate::partition_type::spec_types`]). With several
    /// date columns `time_column`, the dataset's, says which one a date range means.
    ///
    /// # Errors
    /// [`FilterError`], for a column, value or date that no spec of the table knows.
    pub fn new(
        specs: &HashMap<i32, Arc<SpecTypes>>,
        date_range: Option<DateRange>,
        terms: &[PartitionTerm],
        time_column: Option<&str>,
    ) -> Result<Self, FilterError> {
        if date_range.is_none() && terms.is_empty() {
            return Ok(Self::all());
        }
        let mut ordered: Vec<&SpecTypes> = specs.values().map(AsRef::as_ref).collect();
        ordered.sort_by_key(|spec| spec.spec_id);
        let mut tests: HashMap<i32, Vec<FieldTest>> = ordered.iter().map(|spec| (spec.spec_id, Vec::new())).collect();
        let mut add = |found: HashMap<i32, Vec<FieldTest>>| {
            tests.retain(|spec_id, _| found.contains_key(spec_id));
            for (spec_id, more) in found {
                if let Some(known) = tests.get_mut(&spec_id) {
                    known.extend(more);
                }
            }
        };
        if let Some(range) = date_range {
            add(date_tests(&ordered, range, time_column)?);
        }
        for term in terms {
            add(term_tests(&ordered, term)?);
        }
        Ok(Self { specs: Some(tests) })
    }

    /// Whether the partition was asked for.
    pub fn matches(&self, key: &PartitionKey) -> bool {
        let Some(specs) = &self.specs else { return true };
        let Some(tests) = specs.get(&key.spec_id) else { return false };
        tests.iter().all(|test| {
            let value = key.values.get(test.index).and_then(|value| value.value.as_ref());
            match (&test.wanted, value) {
                (Wanted::Null, value) => value.is_none(),
                (Wanted::Between(_, _), None) => false,
                (Wanted::Between(first, last), Some(value)) => {
                    let value = memcmp(value);
                    *first <= value && value <= *last
                }
            }
        })
    }

    /// Whether a manifest of this spec can hold a partition that was asked for, by the summaries of its fields. What is not
    /// known counts as yes.
    pub(crate) fn may_match(&self, spec: &SpecTypes, summaries: Option<&[FieldSummary]>) -> bool {
        let Some(specs) = &self.specs else { return true };
        let Some(tests) = specs.get(&spec.spec_id) else { return false };
        let Some(summaries) = summaries else { return true };
        tests.iter().all(|test| match (spec.fields.get(test.index), summaries.get(test.index)) {
            (Some(field), Some(summary)) => match &test.wanted {
                Wanted::Null => summary.contains_null,
                Wanted::Between(first, last) => may_hold(field, summary, first, last),
            },
            _ => true,
        })
    }
}

/// Whether a manifest with this field summary may hold a value between two encoded ones. What is not known counts as yes.
pub(crate) fn may_hold(field: &PartitionField, summary: &FieldSummary, first: &[u8], last: &[u8]) -> bool {
    // A NaN lies outside the bounds.
    let is_float = matches!(field.result_type, Some(PrimitiveType::Float | PrimitiveType::Double));
    if is_float && summary.contains_nan != Some(false) {
        return true;
    }
    match (&field.result_type, &summary.lower_bound, &summary.upper_bound) {
        (Some(primitive), Some(lower), Some(upper)) => match bounds(lower, upper, primitive) {
            Some(bounds) => last >= bounds.lower.as_slice() && first <= bounds.upper.as_slice(),
            None => true,
        },
        // Bounds are left out when every value is null (spec, "Manifest Lists", field summaries).
        (_, None, None) => !summary.contains_null,
        _ => true,
    }
}

fn date_tests(
    specs: &[&SpecTypes],
    range: DateRange,
    time_column: Option<&str>,
) -> Result<HashMap<i32, Vec<FieldTest>>, FilterError> {
    let mut found: HashMap<i32, Vec<(i32, String, FieldTest)>> = HashMap::new();
    for spec in specs {
        for (index, field) in spec.fields.iter().enumerate() {
            let Some(source) = &field.source_type else { continue };
            // A text is a date only where the dataset says so.
            let is_time = time_column.is_some() && field.source_name.as_deref() == time_column;
            let covering = match source {
                PrimitiveType::String if is_time => calendar::covering_text(range.from, range.to, &field.transform),
                _ => calendar::covering(range.from, range.to, &field.transform, source),
            };
            if let Some((first, last)) = covering {
                let test = FieldTest { index, wanted: Wanted::Between(memcmp(&first), memcmp(&last)) };
                let name = field.source_name.clone().unwrap_or_else(|| field.name.clone());
                found.entry(spec.spec_id).or_default().push((field.source_id, name, test));
            }
        }
    }
    let mut columns: Vec<(i32, String)> =
        found.values().flatten().map(|(source, name, _)| (*source, name.clone())).collect();
    columns.sort();
    columns.dedup();
    let meant: Vec<i32> = match columns.as_slice() {
        [] => return Err(FilterError::NoDatePartition { fields: field_names(specs) }),
        [(only, _)] => vec![*only],
        several => {
            let named =
                several.iter().filter(|(_, name)| Some(name.as_str()) == time_column).map(|(source, _)| *source);
            named.collect()
        }
    };
    if meant.is_empty() {
        return Err(FilterError::SeveralDates { columns: columns.into_iter().map(|(_, name)| name).collect() });
    }
    let mut tests = HashMap::new();
    for (spec_id, fields) in found {
        let fields: Vec<FieldTest> =
            fields.into_iter().filter(|(source, _, _)| meant.contains(source)).map(|(_, _, test)| test).collect();
        if !fields.is_empty() {
            tests.insert(spec_id, fields);
        }
    }
    Ok(tests)
}

fn term_tests(specs: &[&SpecTypes], term: &PartitionTerm) -> Result<HashMap<i32, Vec<FieldTest>>, FilterError> {
    let mut tests = HashMap::new();
    let mut refused = None;
    for spec in specs {
        let by_name = spec.fields.iter().position(|field| !field.is_void() && field.name == term.column);
        let chosen: Vec<(usize, bool)> = match by_name {
            Some(index) => vec![(index, false)],
            None => {
                let of_source = spec.fields.iter().enumerate().filter(|(_, field)| {
                    !field.is_void() && field.source_name.as_deref() == Some(term.column.as_str())
                });
                of_source.map(|(index, _)| (index, true)).collect()
            }
        };
        let mut of_spec = Vec::new();
        for (index, is_source) in chosen {
            match wanted(&spec.fields[index], term, is_source) {
                Ok(wanted) => of_spec.push(FieldTest { index, wanted }),
                Err(error) => refused = Some(error),
            }
        }
        if !of_spec.is_empty() {
            tests.insert(spec.spec_id, of_spec);
        }
    }
    match (tests.is_empty(), refused) {
        (false, _) => Ok(tests),
        (true, Some(error)) => Err(error),
        (true, None) => Err(unknown(specs, &term.column)),
    }
}

/// What a term asks of a partition field, by the field's own name or by that of its source column.
fn wanted(field: &PartitionField, term: &PartitionTerm, is_source: bool) -> Result<Wanted, FilterError> {
    let Some(text) = &term.value else { return Ok(Wanted::Null) };
    let value = if is_source {
        source_value(field, term, text)?
    } else {
        field_value(field, text).map_err(|detail| wrong(term, detail))?
    };
    let bytes = memcmp(&value);
    Ok(Wanted::Between(bytes.clone(), bytes))
}

/// Reads a value of a partition field after its transform: the form typed by hand for a time transform (day 2026-11-01,
/// month 2026-11, year 2026, hour 2026-11-01-05), else Iceberg's single-value form of the field's type.
///
/// # Errors
/// A sentence that quotes the text and names the form expected.
pub fn field_value(field: &PartitionField, text: &str) -> Result<Scalar, String> {
    if let Some(value) = calendar::by_hand(text, &field.transform) {
        return Ok(value);
    }
    let Some(scalar_type) = field.scalar_type() else {
        return Err(format!("partition field `{}` is void: its only value is null", field.name));
    };
    Scalar::parse(text, scalar_type).map_err(|detail| match calendar::by_hand_form(&field.transform) {
        Some(form) => format!("`{text}` is no {} as {form}", field.transform),
        None => detail,
    })
}

fn source_value(field: &PartitionField, term: &PartitionTerm, text: &str) -> Result<Scalar, FilterError> {
    let by_transform = || FilterError::Transform {
        column: term.column.clone(),
        field: field.name.clone(),
        transform: field.transform.to_string(),
    };
    let timed = matches!(field.transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour);
    let Some(source_type) = field.source_type.as_ref().filter(|_| timed || field.transform == Transform::Identity)
    else {
        return Err(by_transform());
    };
    if let Some(value) = calendar::by_hand(text, &field.transform) {
        return Ok(value);
    }
    let value = Scalar::parse(text, scalar_type(source_type)).map_err(|detail| {
        wrong(
            term,
            match calendar::by_hand_form(&field.transform) {
                Some(form) => format!("{detail}, and no {} as {form}", field.transform),
                None => detail,
            },
        )
    })?;
    calendar::apply(&value, &field.transform).ok_or_else(by_transform)
}

fn wrong(term: &PartitionTerm, detail: String) -> FilterError {
    FilterError::Value { column: term.column.clone(), detail }
}

fn unknown(specs: &[&SpecTypes], column: &str) -> FilterError {
    let fields = field_names(specs);
    let sources = specs.iter().flat_map(|spec| &spec.fields).filter_map(|field| field.source_name.as_deref());
    let nearest = near(column, fields.iter().map(String::as_str).chain(sources));
    FilterError::Unknown { column: column.to_owned(), nearest, fields }
}

/// Names of the fields that partition, each once, in the order of the specs.
fn field_names(specs: &[&SpecTypes]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in specs.iter().flat_map(|spec| &spec.fields).filter(|field| !field.is_void()) {
        if !names.contains(&field.name) {
            names.push(field.name.clone());
        }
    }
    names
}

fn partitioned_by(fields: &[String]) -> String {
    if fields.is_empty() {
        "the table is not partitioned".to_owned()
    } else {
        format!("its partition fields are {}", list(fields))
    }
}

#[cfg(test)]
mod tests;
