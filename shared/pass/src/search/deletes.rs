//! Rows that delete files delete: what an index or a scan finds of them is not told.
//!
//! The delete files of a partition are read once, when its first file that they may concern is searched.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use firn_columnar::deletes::{EqualityDeletes, each_position, position_schema};
use firn_columnar::{BlobRange, ColumnarError, InputFile, NameMapping, field_id};
use firn_model::{DeleteFacts, DeleteKind, FileFacts};
use firn_sidecar::RowSet;
use firn_table::{DeleteFile, LoadedTable};
use tokio::runtime::Handle;

use crate::load::pass_error;
use crate::report::PassError;

/// Memory of a position: its number, that of its commit, and what the vector has to spare.
const POSITION_BYTES: u64 = 32;

/// What the delete files of a partition say of its data files.
#[derive(Debug, Default)]
pub(super) struct PartitionDeletes {
    /// By the path of the data file: sequence number of the delete file, and row.
    positions: HashMap<String, Vec<(i64, u64)>>,
    equality: Vec<Equality>,
}

#[derive(Debug)]
struct Equality {
    facts: DeleteFacts,
    keys: Arc<KeyDeletes>,
}

/// The keys of an equality delete file and where their columns stand in the table's schema.
#[derive(Debug)]
struct KeyDeletes {
    places: Vec<usize>,
    keys: EqualityDeletes,
}

/// What concerns one data file.
#[derive(Debug, Default)]
pub(super) struct FileDeletes {
    positions: Vec<u64>,
    keys: Vec<Arc<KeyDeletes>>,
}

impl PartitionDeletes {
    /// What concerns a file.
    pub(super) fn of(&self, file: &FileFacts) -> FileDeletes {
        let positions = self.positions.get(&file.path).into_iter().flatten();
        let applies = |equality: &&Equality| equality.facts.may_apply_to(file);
        FileDeletes {
            positions: positions
                .filter(|(sequence_number, _)| file.data_sequence_number <= *sequence_number)
                .map(|(_, row)| *row)
                .collect(),
            keys: self.equality.iter().filter(applies).map(|equality| Arc::clone(&equality.keys)).collect(),
        }
    }
}

impl FileDeletes {
    pub(super) fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.keys.is_empty()
    }

    /// The rows of `matching` that are not deleted. Blocks.
    pub(super) fn surviving(&self, file: &InputFile, matching: RowSet) -> Result<RowSet, ColumnarError> {
        let mut deleted = RowSet::none(file.rows());
        self.positions.iter().for_each(|row| deleted.insert(*row));
        deleted.invert();
        let mut kept = matching;
        kept.intersect(&deleted);
        for KeyDeletes { places, keys } in self.keys.iter().map(|keys| &**keys) {
            let rows: Vec<u64> = kept.iter().collect();
            let mut surviving = RowSet::none(file.rows());
            keys.surviving(file, places, &rows)?.into_iter().for_each(|row| surviving.insert(row));
            kept = surviving;
        }
        Ok(kept)
    }
}

/// Reads delete files.
pub(super) struct DeleteReader {
    pub(super) table: LoadedTable,
    pub(super) schema: SchemaRef,
    pub(super) mapping: Option<NameMapping>,
    /// The delete files of the snapshot, by path.
    pub(super) files: HashMap<String, DeleteFile>,
    /// Memory for the deletes of one partition.
    pub(super) most_bytes: u64,
}

impl DeleteReader {
    /// Reads those of `deletes` that may concern one of `files`, the live data files of the partition.
    pub(super) async fn read(
        self: &Arc<Self>,
        deletes: Vec<DeleteFacts>,
        files: &[FileFacts],
    ) -> Result<PartitionDeletes, PassError> {
        let concerned = |delete: &DeleteFacts| files.iter().any(|file| delete.may_apply_to(file));
        let deletes: Vec<DeleteFacts> = deletes.into_iter().filter(concerned).collect();
        if deletes.is_empty() {
            return Ok(PartitionDeletes::default());
        }
        let paths: HashSet<String> = files.iter().map(|file| file.path.clone()).collect();
        let (reader, handle) = (Arc::clone(self), Handle::current());
        // Decoding blocks: it must not hold a thread of the runtime that serves its reads.
        let read = tokio::task::spawn_blocking(move || reader.read_all(deletes, &paths, &handle)).await;
        read.map_err(|error| PassError::Unavailable(format!("reading delete files ended early: {error}")))?
    }

    fn read_all(
        &self,
        deletes: Vec<DeleteFacts>,
        paths: &HashSet<String>,
        handle: &Handle,
    ) -> Result<PartitionDeletes, PassError> {
        let mut read = PartitionDeletes::default();
        let mut bytes = 0;
        for facts in deletes {
            let unusable = |detail: &dyn std::fmt::Display| {
                PassError::Unavailable(format!("delete file `{}`: {detail}", facts.path))
            };
            let Some(contents) = self.files.get(&facts.path) else {
                return Err(unusable(&"it is not in the snapshot that was read first: search again"));
            };
            if facts.kind == DeleteKind::Vector || contents.format != "parquet" {
                return Err(unusable(&format!("this version does not read deletes of format {}", contents.format)));
            }
            match facts.kind {
                DeleteKind::Equality => {
                    let places = places(&self.schema, &contents.equality_ids).map_err(|detail| unusable(&detail))?;
                    let file = self.open(&facts, contents, &self.schema, handle)?;
                    let left = self.most_bytes.saturating_sub(bytes);
                    let keys = EqualityDeletes::read(&file, &places, left).map_err(|error| unusable(&error))?;
                    bytes += keys.bytes();
                    read.equality.push(Equality { facts, keys: Arc::new(KeyDeletes { places, keys }) });
                }
                DeleteKind::Position | DeleteKind::Vector => {
                    let file = self.open(&facts, contents, &position_schema(), handle)?;
                    let taken = each_position(&file, |path, row| {
                        if !paths.contains(path) {
                            return Ok(());
                        }
                        bytes += POSITION_BYTES;
                        if bytes > self.most_bytes {
                            return Err(ColumnarError::OverBudget {
                                what: "the deleted rows of a partition".into(),
                                needed_bytes: bytes,
                                budget_bytes: self.most_bytes,
                            });
                        }
                        let of_file = read.positions.entry(path.to_owned()).or_default();
                        of_file.push((facts.data_sequence_number, row));
                        Ok(())
                    });
                    taken.map_err(|error| unusable(&error))?;
                }
            }
        }
        Ok(read)
    }

    fn open(
        &self,
        facts: &DeleteFacts,
        contents: &DeleteFile,
        schema: &SchemaRef,
        handle: &Handle,
    ) -> Result<InputFile, PassError> {
        let id = self.table.blob_id(&facts.path).map_err(pass_error)?;
        let source = BlobRange::new(self.table.blobs().clone(), id, facts.path.as_str(), contents.size, handle.clone());
        InputFile::open(Arc::new(source), schema, self.mapping.as_ref())
            .map_err(|error| PassError::Unavailable(error.to_string()))
    }
}

/// Where the key columns stand in the table's schema.
fn places(schema: &Schema, field_ids: &[i32]) -> Result<Vec<usize>, String> {
    if field_ids.is_empty() {
        return Err("it names no columns of its key".into());
    }
    let place = |id: &i32| schema.fields().iter().position(|field| field_id(field) == Some(*id)).ok_or(*id);
    field_ids
        .iter()
        .map(place)
        .collect::<Result<_, _>>()
        .map_err(|id| format!("its key has column {id}, which is no top-level column of the table as it is now"))
}
