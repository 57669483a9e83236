//! The rows of the demo's tables: the same at every run, late and repeated in places as streaming writers leave them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{ArrowError, SchemaRef};
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};

/// 2026-11-01, in days since 1970-01-01.
const FIRST_DAY: i32 = 20_758;
const MICROS_PER_DAY: i64 = 86_400_000_000;
const MICROS_PER_STEP: i64 = 10_000_000;

/// Rows for one data file.
#[derive(Debug)]
pub(crate) struct DayRows {
    /// Value of the partition field `day`.
    pub(crate) day: i32,
    /// The rows.
    pub(crate) rows: RecordBatch,
}

/// A table of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DemoTable {
    /// A time series of sensors: a value that is sent twice counts once, the newest wins.
    Readings,
    /// Lines of services: every row stays.
    Logs,
}

impl DemoTable {
    pub(crate) const ALL: [DemoTable; 2] = [DemoTable::Readings, DemoTable::Logs];

    /// Name of the table in the namespace `demo`, and of its dataset.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DemoTable::Readings => "readings",
            DemoTable::Logs => "logs",
        }
    }

    /// The dataset's keys in firn.yaml beside name and table.
    pub(crate) fn dataset_keys(self) -> &'static str {
        match self {
            DemoTable::Readings => "seriesColumns: [name], timeColumn: time, dedup: true",
            DemoTable::Logs => {
                "timeColumn: time, sortColumns: [service, time], tantivy: {indexingColumns: [line]}, \
                 bloomFilterColumns: [service], ndvColumns: [service, line]"
            }
        }
    }

    /// How many of the first columns make a row's key; None: every row stays.
    pub(crate) fn key_columns(self) -> Option<usize> {
        match self {
            DemoTable::Readings => Some(2),
            DemoTable::Logs => None,
        }
    }

    /// Commits that a writer makes; each adds one data file a day.
    pub(crate) fn appends(self) -> i64 {
        match self {
            DemoTable::Readings => 72,
            DemoTable::Logs => 40,
        }
    }

    /// Days, and so partitions.
    fn days(self) -> i32 {
        match self {
            DemoTable::Readings => 3,
            DemoTable::Logs => 2,
        }
    }

    /// Field 2 is the time in both tables: the partition field is its day.
    pub(crate) fn schema(self) -> iceberg::Result<Schema> {
        let column =
            |id: i32, name: &str, kind: PrimitiveType| NestedField::optional(id, name, Type::Primitive(kind)).into();
        let fields = match self {
            DemoTable::Readings => vec![
                column(1, "name", PrimitiveType::String),
                column(2, "time", PrimitiveType::Timestamp),
                column(3, "value", PrimitiveType::Double),
                column(4, "state", PrimitiveType::String),
            ],
            DemoTable::Logs => vec![
                column(1, "service", PrimitiveType::String),
                column(2, "time", PrimitiveType::Timestamp),
                column(3, "level", PrimitiveType::String),
                column(4, "line", PrimitiveType::String),
            ],
        };
        Schema::builder().with_fields(fields).build()
    }

    /// The rows of one commit.
    pub(crate) fn append(self, number: i64, schema: &SchemaRef) -> Result<Vec<DayRows>, ArrowError> {
        (FIRST_DAY..FIRST_DAY + self.days())
            .map(|day| {
                let columns = match self {
                    DemoTable::Readings => readings(day, number),
                    DemoTable::Logs => logs(day, number),
                };
                Ok(DayRows { day, rows: RecordBatch::try_new(schema.clone(), columns)? })
            })
            .collect()
    }
}

const SENSORS: i64 = 60;
const STEPS: i64 = 6;

/// Every sensor over a minute. The last step of the minute before comes again, corrected; every other commit is not in order.
fn readings(day: i32, append: i64) -> Vec<ArrayRef> {
    let mut keys: Vec<(i64, i64)> = Vec::new();
    for sensor in 0..SENSORS {
        let first = append * STEPS - i64::from(append > 0 && sensor % 5 == 0);
        keys.extend((first..(append + 1) * STEPS).map(|step| (sensor, step)));
    }
    if append % 2 == 1 {
        keys.sort_by_key(|key| scatter(&[key.0, key.1, append]));
    }
    let values = keys.iter().map(|(sensor, step)| {
        let noise = scatter(&[*sensor, *step, append]) % 1_000;
        // A broken sensor sends nothing.
        (noise != 0).then(|| 20.0 + *sensor as f64 / 8.0 + noise as f64 / 1_000.0)
    });
    let states = keys.iter().map(|(sensor, step)| match scatter(&[*sensor, *step]) % 50 {
        0 => None,
        1 => Some("check"),
        _ => Some("good"),
    });
    vec![
        Arc::new(StringArray::from_iter_values(keys.iter().map(|(sensor, _)| format!("sensor-{sensor:03}")))),
        times(day, keys.iter().map(|(_, step)| *step)),
        Arc::new(Float64Array::from_iter(values)),
        Arc::new(StringArray::from_iter(states)),
    ]
}

const LINES: i64 = 250;

fn logs(day: i32, append: i64) -> Vec<ArrayRef> {
    const SERVICES: [&str; 5] = ["checkout", "gateway", "identity", "ledger", "search"];
    const LEVELS: [&str; 4] = ["INFO", "INFO", "WARN", "ERROR"];
    let picked =
        |line: i64, salt: i64, count: usize| (scatter(&[i64::from(day), append, line, salt]) % count as u64) as usize;
    let lines = 0..LINES;
    let text = |line: i64| format!("request {} took {} ms", append * LINES + line, picked(line, 3, 900));
    vec![
        Arc::new(StringArray::from_iter_values(lines.clone().map(|line| SERVICES[picked(line, 1, SERVICES.len())]))),
        // Two lines of one service may have the same time.
        times(day, lines.clone().map(|line| append * 12 + line / 25)),
        Arc::new(StringArray::from_iter_values(lines.clone().map(|line| LEVELS[picked(line, 2, LEVELS.len())]))),
        Arc::new(StringArray::from_iter_values(lines.map(text))),
    ]
}

fn times(day: i32, steps: impl Iterator<Item = i64>) -> ArrayRef {
    let start = i64::from(day) * MICROS_PER_DAY;
    Arc::new(TimestampMicrosecondArray::from_iter_values(steps.map(|step| start + step * MICROS_PER_STEP)))
}

/// A number that looks random and is the same at every run.
fn scatter(parts: &[i64]) -> u64 {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |state: u64, part| {
        let mixed = (state ^ part.cast_unsigned()).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (mixed >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_one_file_a_day_within_that_day() {
        for table in DemoTable::ALL {
            let schema: SchemaRef = Arc::new(iceberg::arrow::schema_to_arrow_schema(&table.schema().unwrap()).unwrap());
            let days = i64::from(table.days());
            assert!(table.appends() * days >= 80, "{table:?} has many small files");
            for number in [0, 1, table.appends() - 1] {
                let files = table.append(number, &schema).unwrap();
                assert_eq!(files.len() as i64, days);
                for file in files {
                    let times = file.rows.column(1).as_any().downcast_ref::<TimestampMicrosecondArray>().unwrap();
                    assert!(times.values().iter().all(|time| time / MICROS_PER_DAY == i64::from(file.day)));
                }
            }
        }
        assert!(DemoTable::Readings.appends() * 3 >= 200);
    }
}
