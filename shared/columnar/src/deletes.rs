//! What delete files say (Iceberg spec, "Delete Formats"): positions of rows in data files, and keys of rows.
//!
//! Delete files in Parquet are opened as any other file, with [`position_schema`] or with the table's schema.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::chosen::{read_run, runs};
use crate::cursor::ColumnCursor;
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::limits::BatchLimit;
use crate::side_by_side::SideBySide;

/// Rows looked at at once.
const ROWS: usize = 8192;
/// Field ids of a position delete file (Iceberg spec, "Reserved Field IDs").
const FILE_PATH: i32 = 2_147_483_546;
const POSITION: i32 = 2_147_483_545;
/// Memory of a key beside its bytes: its place in the table and what an allocation takes.
const KEY_BYTES: u64 = 48;

/// The columns of a position delete file.
pub fn position_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let field = |name: &str, data_type, id: i32| {
            let metadata = HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())]);
            Field::new(name, data_type, true).with_metadata(metadata)
        };
        let fields = vec![field("file_path", DataType::Utf8, FILE_PATH), field("pos", DataType::Int64, POSITION)];
        Arc::new(Schema::new(fields))
    });
    Arc::clone(&SCHEMA)
}

/// Gives each data file's path and row number of a position delete file, opened with [`position_schema`], to `each`.
///
/// # Errors
/// [`ColumnarError::Corrupt`] for a row without a path or position, what reading says, and what `each` says.
pub fn each_position(
    file: &InputFile,
    mut each: impl FnMut(&str, u64) -> Result<(), ColumnarError>,
) -> Result<(), ColumnarError> {
    let cursors = [0, 1].map(|column| file.cursor(column, BatchLimit::default()));
    let mut columns = SideBySide::new(cursors.into_iter().collect::<Result<_, _>>()?);
    while let Some(arrays) = columns.next(ROWS)? {
        let (paths, positions) = (arrays[0].as_string::<i32>(), arrays[1].as_primitive::<Int64Type>());
        for (path, position) in paths.iter().zip(positions) {
            match (path, position.and_then(|position| u64::try_from(position).ok())) {
                (Some(path), Some(position)) => each(path, position)?,
                _ => return Err(ColumnarError::corrupt_file(file.name(), "a row names no row of a data file")),
            }
        }
    }
    Ok(())
}

/// The keys of an equality delete file: rows of older files that have one of them are deleted. Nulls are equal to nulls.
pub struct EqualityDeletes {
    converter: RowConverter,
    keys: HashSet<Box<[u8]>>,
    bytes: u64,
}

impl EqualityDeletes {
    /// Reads the key columns, by their places in the schema that the file was opened with.
    ///
    /// # Errors
    /// [`ColumnarError::OverBudget`] when the keys take more than `most_bytes`; what reading says.
    pub fn read(file: &InputFile, places: &[usize], most_bytes: u64) -> Result<EqualityDeletes, ColumnarError> {
        let cursors = places.iter().map(|place| file.cursor(*place, BatchLimit::default()));
        let cursors = cursors.collect::<Result<Vec<_>, _>>()?;
        let fields = cursors.iter().map(|cursor| SortField::new(cursor.data_type().clone())).collect();
        let converter = RowConverter::new(fields).map_err(|error| usage(&error))?;
        let mut deletes = EqualityDeletes { converter, keys: HashSet::new(), bytes: 0 };
        let mut columns = SideBySide::new(cursors);
        while let Some(arrays) = columns.next(ROWS)? {
            let rows = deletes.converter.convert_columns(&arrays).map_err(|error| usage(&error))?;
            for row in &rows {
                let key: &[u8] = row.as_ref();
                if deletes.keys.insert(key.into()) {
                    deletes.bytes += key.len() as u64 + KEY_BYTES;
                }
            }
            if deletes.bytes > most_bytes {
                return Err(ColumnarError::OverBudget {
                    what: format!("the keys of delete file `{}`", file.name()),
                    needed_bytes: deletes.bytes,
                    budget_bytes: most_bytes,
                });
            }
        }
        Ok(deletes)
    }

    /// Those of `rows`, ascending, of a data file that are not deleted. `places` are the key columns in the schema of the data file, in the
    /// order of [`EqualityDeletes::read`].
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] for columns of other types; what reading says.
    pub fn surviving(&self, file: &InputFile, places: &[usize], rows: &[u64]) -> Result<Vec<u64>, ColumnarError> {
        let cursors = places.iter().map(|place| file.cursor(*place, BatchLimit::default()));
        let mut cursors = cursors.collect::<Result<Vec<_>, _>>()?;
        let mut surviving = Vec::with_capacity(rows.len());
        for run in runs(rows) {
            let columns = cursors.iter_mut().map(|cursor| rows_of(cursor, &run)).collect::<Result<Vec<_>, _>>()?;
            let keys = self.converter.convert_columns(&columns).map_err(|error| usage(&error))?;
            let kept = run.zip(&keys).filter(|(_, key)| !self.keys.contains(key.as_ref()));
            surviving.extend(kept.map(|(row, _)| row));
        }
        Ok(surviving)
    }

    /// Memory that the keys take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl std::fmt::Debug for EqualityDeletes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EqualityDeletes").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

/// The rows of a run as one array.
fn rows_of(cursor: &mut ColumnCursor, run: &Range<u64>) -> Result<ArrayRef, ColumnarError> {
    let pieces = read_run(cursor, run)?;
    if let [piece] = &pieces[..] {
        return Ok(Arc::clone(piece));
    }
    let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| &**piece).collect();
    arrow_select::concat::concat(&pieces).map_err(|error| usage(&error))
}

fn usage(error: &dyn std::fmt::Display) -> ColumnarError {
    ColumnarError::Usage { detail: error.to_string() }
}
