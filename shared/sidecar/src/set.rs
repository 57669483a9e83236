//! All sidecars of one data file, built from the same batches. Each fails on its own: a panic, a full disk or a value that a library does not
//! like ends that sidecar, and neither the others nor the data file.

use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};
use firn_columnar::TempSpace;
use firn_model::BlobId;
use firn_storage::{BlobProperties, BlobStore};

use crate::bloom::BloomBuilder;
use crate::bundle::Bundle;
use crate::contain::contain;
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarColumn, SidecarKind};
use crate::ndv::{NdvBuilder, NdvFile};
use crate::text::TextBuilder;
use crate::values::Form;

/// Which columns have which sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SidecarColumns {
    /// Columns of the full-text index.
    pub text: Vec<SidecarColumn>,
    /// Columns with a bloom filter.
    pub bloom: Vec<SidecarColumn>,
    /// Columns with a sketch.
    pub ndv: Vec<SidecarColumn>,
    /// Columns that were asked for and cannot have a sidecar, with the reason.
    pub left_out: Vec<(SidecarKind, String)>,
}

impl SidecarColumns {
    /// The columns of a table with this schema, by the dataset's `tantivy.indexingColumns`, `bloomFilterColumns` and `ndvColumns`.
    pub fn resolve(schema: &Schema, text: &[String], bloom: &[String], ndv: &[String]) -> SidecarColumns {
        let mut columns = SidecarColumns::default();
        columns.text = columns.of(schema, SidecarKind::Text, text);
        columns.bloom = columns.of(schema, SidecarKind::Bloom, bloom);
        columns.ndv = columns.of(schema, SidecarKind::Ndv, ndv);
        columns
    }

    fn of(&mut self, schema: &Schema, kind: SidecarKind, names: &[String]) -> Vec<SidecarColumn> {
        let mut found: Vec<SidecarColumn> = Vec::with_capacity(names.len());
        for name in names {
            let reason = match SidecarColumn::of(schema, name) {
                None => format!("the table has no column `{name}`"),
                Some(column) if !fits(kind, &column.data_type) => {
                    format!("column `{name}` is of type {}", column.data_type)
                }
                Some(column) if found.contains(&column) => continue,
                Some(column) => {
                    found.push(column);
                    continue;
                }
            };
            self.left_out.push((kind, reason));
        }
        found
    }

    /// True when no sidecar is built.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.bloom.is_empty() && self.ndv.is_empty()
    }

    /// The columns that are needed, each once: what [`SidecarSet::add`] wants, in this order.
    pub fn needed(&self) -> Vec<SidecarColumn> {
        let mut needed: Vec<SidecarColumn> = Vec::new();
        for column in self.text.iter().chain(&self.bloom).chain(&self.ndv) {
            if !needed.contains(column) {
                needed.push(column.clone());
            }
        }
        needed
    }

    /// Memory that the sidecars of a file of `rows` rows take while they are built, with segments of `arena_bytes`, so that the index
    /// ends as one segment.
    pub fn memory(&self, rows: u64, arena_bytes: u64) -> u64 {
        let text = if self.text.is_empty() { 0 } else { TextBuilder::memory(arena_bytes, rows) };
        text + self.small_memory(rows)
    }

    /// Memory without which they are not all built.
    pub fn least_memory(&self, rows: u64, arena_bytes: u64) -> u64 {
        let text = if self.text.is_empty() { 0 } else { TextBuilder::least_memory(arena_bytes) };
        text + self.small_memory(rows)
    }

    /// Memory of filters and sketches.
    fn small_memory(&self, rows: u64) -> u64 {
        BloomBuilder::memory(self.bloom.len(), rows) + NdvBuilder::memory(self.ndv.len())
    }
}

fn fits(kind: SidecarKind, data_type: &DataType) -> bool {
    match kind {
        SidecarKind::Text => matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
        SidecarKind::Bloom => Form::Parquet.supports(data_type),
        SidecarKind::Ndv => Form::Iceberg.supports(data_type),
    }
}

/// What the sidecars of one file may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetLimits {
    /// Rows that the file may get.
    pub rows: u64,
    /// Bytes of a segment of the index in memory.
    pub arena_bytes: u64,
    /// Bytes of all builders.
    pub memory_bytes: u64,
}

/// A sidecar that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// What it is.
    pub kind: SidecarKind,
    /// What is to be written.
    pub content: BuiltContent,
    /// Time that building it took, without waiting for rows.
    pub time: Duration,
}

/// What is to be written.
#[derive(Debug, Clone)]
pub enum BuiltContent {
    /// Index or filters.
    Bundle(Bundle),
    /// Sketches.
    Ndv(NdvFile),
}

impl Built {
    /// Writes the sidecar `id` of `data`.
    ///
    /// # Errors
    /// What the store says, or temporary disk.
    pub async fn write(
        &self,
        store: &dyn BlobStore,
        id: &BlobId,
        data: &DataFile,
    ) -> Result<BlobProperties, SidecarError> {
        match &self.content {
            BuiltContent::Bundle(bundle) => bundle.write(store, id, data.clone()).await,
            BuiltContent::Ndv(file) => file.write(store, id, data).await,
        }
    }
}

/// A sidecar that could not be built, and why.
#[derive(Debug)]
pub struct Dropped {
    /// What it would have been.
    pub kind: SidecarKind,
    /// Why not.
    pub error: SidecarError,
}

enum Builder {
    Text(Box<TextBuilder>),
    Bloom(BloomBuilder),
    Ndv(NdvBuilder),
    /// As a library that does not like a value, or the end.
    #[cfg(test)]
    Panics {
        kind: SidecarKind,
        at_the_end: bool,
    },
}

impl Builder {
    fn kind(&self) -> SidecarKind {
        match self {
            Builder::Text(_) => SidecarKind::Text,
            Builder::Bloom(_) => SidecarKind::Bloom,
            Builder::Ndv(_) => SidecarKind::Ndv,
            #[cfg(test)]
            Builder::Panics { kind, .. } => *kind,
        }
    }

    fn add(&mut self, arrays: &[ArrayRef]) -> Result<(), SidecarError> {
        match self {
            Builder::Text(builder) => builder.add(arrays),
            Builder::Bloom(builder) => builder.add(arrays),
            Builder::Ndv(builder) => builder.add(arrays),
            #[cfg(test)]
            Builder::Panics { at_the_end: true, .. } => Ok(()),
            #[cfg(test)]
            Builder::Panics { .. } => panic!("a value that the library does not like"),
        }
    }

    fn finish(self) -> Result<BuiltContent, SidecarError> {
        match self {
            Builder::Text(builder) => builder.finish().map(BuiltContent::Bundle),
            Builder::Bloom(builder) => builder.finish().map(BuiltContent::Bundle),
            Builder::Ndv(builder) => Ok(BuiltContent::Ndv(builder.finish())),
            #[cfg(test)]
            Builder::Panics { .. } => panic!("an end that the library does not like"),
        }
    }
}

struct Slot {
    builder: Builder,
    /// Places of its columns among those needed.
    places: Vec<usize>,
    time: Duration,
}

/// The sidecars of one data file, in work.
pub struct SidecarSet {
    slots: Vec<Slot>,
    dropped: Vec<Dropped>,
    rows: u64,
}

impl SidecarSet {
    /// Starts the sidecars over `columns`; temporary files go to `space`.
    pub fn start(columns: &SidecarColumns, limits: SetLimits, space: &TempSpace) -> SidecarSet {
        let needed = columns.needed();
        let mut set = SidecarSet { slots: Vec::new(), dropped: Vec::new(), rows: 0 };
        let small = columns.small_memory(limits.rows);
        set.begin(SidecarKind::Ndv, &columns.ndv, &needed, |columns| {
            NdvBuilder::new(columns, limits.memory_bytes).map(Builder::Ndv)
        });
        set.begin(SidecarKind::Bloom, &columns.bloom, &needed, |columns| {
            BloomBuilder::new(columns, limits.rows, limits.memory_bytes).map(Builder::Bloom)
        });
        set.begin(SidecarKind::Text, &columns.text, &needed, |columns| {
            let needed_bytes = TextBuilder::least_memory(limits.arena_bytes) + small;
            if needed_bytes > limits.memory_bytes {
                let what = format!("a full-text index of {} rows", limits.rows);
                return Err(SidecarError::OverBudget { what, needed_bytes, budget_bytes: limits.memory_bytes });
            }
            let builder = TextBuilder::new(columns, limits.arena_bytes, space)?;
            Ok(Builder::Text(Box::new(builder.with_memory(limits.memory_bytes - small))))
        });
        set
    }

    fn begin(
        &mut self,
        kind: SidecarKind,
        columns: &[SidecarColumn],
        needed: &[SidecarColumn],
        make: impl FnOnce(Vec<SidecarColumn>) -> Result<Builder, SidecarError>,
    ) {
        if columns.is_empty() {
            return;
        }
        let places = columns.iter().filter_map(|column| needed.iter().position(|other| other == column)).collect();
        match contain("starting a sidecar", || make(columns.to_vec())) {
            Ok(builder) => self.slots.push(Slot { builder, places, time: Duration::ZERO }),
            Err(error) => self.dropped.push(Dropped { kind, error }),
        }
    }

    /// The next rows of the file: one array for each of [`SidecarColumns::needed`]. What fails is dropped.
    pub fn add(&mut self, arrays: &[ArrayRef]) {
        self.rows += arrays.first().map_or(0, |array| array.len()) as u64;
        let mut kept = Vec::with_capacity(self.slots.len());
        for mut slot in self.slots.drain(..) {
            let started = Instant::now();
            let own: Vec<ArrayRef> = slot.places.iter().filter_map(|place| arrays.get(*place).cloned()).collect();
            let added = contain("building a sidecar", || match own.len() == slot.places.len() {
                true => slot.builder.add(&own),
                false => Err(SidecarError::Failed(format!("{} columns came, not {}", arrays.len(), slot.places.len()))),
            });
            slot.time += started.elapsed();
            match added {
                Ok(()) => kept.push(slot),
                Err(error) => self.dropped.push(Dropped { kind: slot.builder.kind(), error }),
            }
        }
        self.slots = kept;
    }

    /// True when nothing is left to build: the rest of the rows need not come.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Drops what is left, for a reason that concerns all of it.
    pub fn drop_all(&mut self, reason: &str) {
        let left = self.slots.drain(..).map(|slot| slot.builder.kind());
        self.dropped.extend(left.map(|kind| Dropped { kind, error: SidecarError::Failed(reason.to_owned()) }));
    }

    /// The sidecars, and those that could not be built. `rows` is what the data file has: where not all of them came, nothing is built.
    pub fn finish(mut self, rows: u64) -> (Vec<Built>, Vec<Dropped>) {
        if rows != self.rows {
            let reason = format!("{} rows came, the file has {rows}", self.rows);
            self.drop_all(&reason);
        }
        let (mut built, mut dropped) = (Vec::new(), self.dropped);
        for slot in self.slots {
            let (kind, started) = (slot.builder.kind(), Instant::now());
            match contain("finishing a sidecar", || slot.builder.finish()) {
                Ok(content) => built.push(Built { kind, content, time: slot.time + started.elapsed() }),
                Err(error) => dropped.push(Dropped { kind, error }),
            }
        }
        (built, dropped)
    }
}

impl std::fmt::Debug for SidecarSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<_> = self.slots.iter().map(|slot| slot.builder.kind()).collect();
        f.debug_struct("SidecarSet").field("kinds", &kinds).field("rows", &self.rows).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use arrow_schema::Field;

    use super::*;

    fn schema() -> Schema {
        let field = |name: &str, data_type, id: i32| {
            let metadata = HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())]);
            Field::new(name, data_type, true).with_metadata(metadata)
        };
        Schema::new(vec![
            field("id", DataType::Int64, 1),
            field("message", DataType::Utf8, 2),
            field("seen", DataType::Boolean, 3),
        ])
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn limits() -> SetLimits {
        SetLimits { rows: 1000, arena_bytes: 16 << 20, memory_bytes: 64 << 20 }
    }

    fn arrays(rows: i64) -> Vec<ArrayRef> {
        let texts = StringArray::from_iter_values((0..rows).map(|row| format!("row {row}")));
        vec![Arc::new(texts), Arc::new(Int64Array::from_iter_values(0..rows))]
    }

    fn kinds(built: &[Built]) -> Vec<SidecarKind> {
        built.iter().map(|built| built.kind).collect()
    }

    #[test]
    fn columns_are_found_and_those_that_cannot_be_are_left_out_with_a_reason() {
        let columns = SidecarColumns::resolve(
            &schema(),
            &names(&["message", "id", "message"]),
            &names(&["id", "seen", "no"]),
            &names(&["id", "seen"]),
        );
        let found = |columns: &[SidecarColumn]| columns.iter().map(|column| column.field_id).collect::<Vec<_>>();
        assert_eq!((found(&columns.text), found(&columns.bloom), found(&columns.ndv)), (vec![2], vec![1], vec![1, 3]));
        assert_eq!(found(&columns.needed()), [2, 1, 3]);
        let reasons: Vec<&str> = columns.left_out.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(
            reasons,
            ["column `id` is of type Int64", "column `seen` is of type Boolean", "the table has no column `no`"]
        );
    }

    #[test]
    fn one_that_fails_does_not_take_the_others_along() {
        let root = tempfile::tempdir().unwrap();
        let columns = SidecarColumns::resolve(&schema(), &names(&["message"]), &names(&["id"]), &names(&["id"]));
        let full = TempSpace::create(root.path(), 10).unwrap();
        let mut set = SidecarSet::start(&columns, limits(), &full);
        set.add(&arrays(1000));
        let (built, dropped) = set.finish(1000);
        assert_eq!(kinds(&built), [SidecarKind::Ndv, SidecarKind::Bloom]);
        assert_eq!(dropped.len(), 1);
        assert_eq!(dropped[0].kind, SidecarKind::Text);
        assert!(dropped[0].error.to_string().contains("tempDiskMb"), "{}", dropped[0].error);

        // Too little memory for the index alone.
        let little = SetLimits { memory_bytes: 1 << 20, ..limits() };
        let set = SidecarSet::start(&columns, little, &full);
        let (_, dropped) = set.finish(0);
        assert!(matches!(dropped[0].error, SidecarError::OverBudget { .. }), "{dropped:?}");
    }

    /// Each of the three may panic, at a value or at the end: it is dropped with what the library said, and the other two are built.
    #[test]
    fn a_panic_of_a_library_drops_that_sidecar_alone() {
        let root = tempfile::tempdir().unwrap();
        let space = TempSpace::create(root.path(), 1 << 30).unwrap();
        let columns = SidecarColumns::resolve(&schema(), &names(&["message"]), &names(&["id"]), &names(&["id"]));
        for kind in SidecarKind::ALL {
            for at_the_end in [false, true] {
                let mut set = SidecarSet::start(&columns, limits(), &space);
                let slot = set.slots.iter_mut().find(|slot| slot.builder.kind() == kind).unwrap();
                slot.builder = Builder::Panics { kind, at_the_end };
                set.add(&arrays(500));
                set.add(&arrays(500));
                let (built, dropped) = set.finish(1000);
                let others: Vec<SidecarKind> = [SidecarKind::Ndv, SidecarKind::Bloom, SidecarKind::Text]
                    .into_iter()
                    .filter(|other| *other != kind)
                    .collect();
                assert_eq!(kinds(&built), others);
                let [Dropped { kind: of, error }] = &dropped[..] else { panic!("{dropped:?}") };
                let what = if at_the_end {
                    "finishing a sidecar panicked: an end that the library does not like"
                } else {
                    "building a sidecar panicked: a value that the library does not like"
                };
                assert_eq!((*of, error.to_string()), (kind, what.to_owned()));
                drop(built);
                assert_eq!(space.used_bytes(), 0, "nothing is left on temporary disk");
            }
        }
    }

    #[test]
    fn a_poisoned_batch_or_a_missing_row_drops_what_it_concerns() {
        let root = tempfile::tempdir().unwrap();
        let space = TempSpace::create(root.path(), 1 << 30).unwrap();
        let columns = SidecarColumns::resolve(&schema(), &names(&["message"]), &[], &names(&["id"]));
        let mut set = SidecarSet::start(&columns, limits(), &space);
        // Another array than the column's: the index refuses it, and the sketch goes on.
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
        set.add(&[Arc::clone(&numbers), numbers]);
        assert!(!set.is_empty());
        let (built, dropped) = set.finish(10);
        assert_eq!((kinds(&built), dropped.len()), (vec![SidecarKind::Ndv], 1));

        let mut set = SidecarSet::start(&columns, limits(), &space);
        set.add(&arrays(10));
        let (built, dropped) = set.finish(11);
        assert!(built.is_empty());
        assert_eq!(dropped.len(), 2);
        assert_eq!(dropped[0].error.to_string(), "10 rows came, the file has 11");
    }
}
