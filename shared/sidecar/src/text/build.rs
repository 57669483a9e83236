//! Building an index: rows go to a segment in memory; when that is full it goes to temporary disk, and in the end neighbouring segments are
//! merged, in the order of the rows: into one where temporary disk holds the index twice.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use firn_columnar::TempSpace;
use tantivy::indexer::{SingleSegmentIndexWriter, merge_filtered_segments};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::Compressor;
use tantivy::tokenizer::TokenizerManager;
use tantivy::{Directory, Index, IndexSettings, Segment, TantivyDocument};

use super::folder::{Folder, Stored};
use super::large::{LARGE_BYTES, row_bytes};
use super::words::{MAX_WORD_BYTES, TOKENIZER, WordTokenizer};
use super::{ENGINE, TextAbout, TextColumn, TextSegment};
use crate::bundle::{Bundle, Content, Part};
use crate::error::SidecarError;
use crate::identity::{SidecarColumn, SidecarKind};

/// Bytes of a segment in memory at least: tantivy's empty tables count for 11 MB.
pub const LEAST_ARENA_BYTES: u64 = 16 << 20;
/// What a segment in memory may be larger than its limit: the table of its words doubles, and a row is not divided.
const ARENA_OVERSHOOT: u64 = 2;
/// What a segment takes without any row.
const EMPTY_BYTES: u64 = 11 << 20;
/// Memory of a row while segments are merged: its place in the old and in the new segment (8 bytes each), and what a word that is in every
/// row says of it.
const MERGE_ROW_BYTES: u64 = 20;
/// Memory for dictionaries while segments are merged, as a rule: tantivy holds those of all of them whole.
const DICTIONARIES_BYTES: u64 = 16 << 20;
/// List of the segments, a file of every tantivy index.
const META: &str = "meta.json";
/// Rows of one index: numbers of documents have 32 bits, and the last of them has a meaning of its own.
const MOST_ROWS: u64 = 1 << 31;

/// Builds the index of one data file.
pub struct TextBuilder {
    columns: Vec<TextColumn>,
    fields: Vec<Field>,
    schema: Schema,
    arena_bytes: u64,
    /// Of all that is done, the merging of segments above all.
    memory_bytes: u64,
    space: TempSpace,
    open: Option<(SingleSegmentIndexWriter, Folder)>,
    segments: Vec<(Index, Folder)>,
    dropped: Arc<AtomicU64>,
    rows: u64,
}

impl TextBuilder {
    /// An index over `columns`, of which at most `arena_bytes` are in memory and the rest in `space`.
    ///
    /// # Errors
    /// [`SidecarError::Unsupported`] for a column that is no text, [`SidecarError::OverBudget`] when `arena_bytes` is too little.
    pub fn new(columns: Vec<SidecarColumn>, arena_bytes: u64, space: &TempSpace) -> Result<TextBuilder, SidecarError> {
        if arena_bytes < LEAST_ARENA_BYTES {
            return Err(SidecarError::OverBudget {
                what: "a full-text index".into(),
                needed_bytes: LEAST_ARENA_BYTES,
                budget_bytes: arena_bytes,
            });
        }
        let mut schema = Schema::builder();
        let mut fields = Vec::with_capacity(columns.len());
        let mut entries = Vec::with_capacity(columns.len());
        for column in columns {
            if !matches!(column.data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
                let data_type = column.data_type.to_string();
                return Err(SidecarError::Unsupported { column: column.name, what: "indexed", data_type });
            }
            let field = format!("f{}", column.field_id);
            fields.push(schema.add_text_field(&field, options()));
            entries.push(TextColumn { name: column.name, field_id: column.field_id, field, nulls: 0 });
        }
        Ok(TextBuilder {
            columns: entries,
            fields,
            schema: schema.build(),
            arena_bytes,
            memory_bytes: TextBuilder::least_memory(arena_bytes),
            space: space.clone(),
            open: None,
            segments: Vec::new(),
            dropped: Arc::default(),
            rows: 0,
        })
    }

    /// The same with more memory than the segments need: so many more of them are merged at once.
    #[must_use]
    pub fn with_memory(mut self, memory_bytes: u64) -> TextBuilder {
        self.memory_bytes = self.memory_bytes.max(memory_bytes);
        self
    }

    /// Memory without which an index with segments of `arena_bytes` is not built.
    pub fn least_memory(arena_bytes: u64) -> u64 {
        arena_bytes * ARENA_OVERSHOOT
    }

    /// Memory with which an index of `rows` rows ends as one segment, as a rule. With less it has a few.
    pub fn memory(arena_bytes: u64, rows: u64) -> u64 {
        TextBuilder::least_memory(arena_bytes).max(rows * MERGE_ROW_BYTES + DICTIONARIES_BYTES)
    }

    /// The next rows: one array a column, in the order of the columns.
    ///
    /// # Errors
    /// [`SidecarError::Disk`] when temporary disk is full, [`SidecarError::Failed`] for arrays that are not those of the columns. The
    /// builder is of no use then.
    pub fn add(&mut self, arrays: &[ArrayRef]) -> Result<(), SidecarError> {
        let texts = arrays.iter().map(Texts::of).collect::<Result<Vec<_>, _>>()?;
        let rows = arrays.first().map_or(0, |array| array.len());
        for (column, array) in self.columns.iter_mut().zip(arrays) {
            column.nulls += array.null_count() as u64;
        }
        self.rows += rows as u64;
        if self.rows >= MOST_ROWS {
            return Err(SidecarError::Failed(format!("an index cannot have {} rows", self.rows)));
        }
        for row in 0..rows {
            self.make_room(&texts, row)?;
            let mut document = TantivyDocument::default();
            for (field, texts) in self.fields.iter().zip(&texts) {
                if let Some(text) = texts.at(row) {
                    document.add_text(*field, text);
                }
            }
            let (writer, _) = match &mut self.open {
                Some(open) => open,
                None => self.open.insert(segment(&self.schema, &self.dropped, &self.space, self.arena_bytes)?),
            };
            writer.add_document(document)?;
            if writer.mem_usage() as u64 >= self.arena_bytes {
                self.close_segment()?;
            }
        }
        Ok(())
    }

    /// Ends the segment in work when a large row does not fit into it any more.
    fn make_room(&mut self, texts: &[Texts<'_>], row: usize) -> Result<(), SidecarError> {
        let of_row = || texts.iter().filter_map(|texts| texts.at(row));
        if of_row().map(str::len).sum::<usize>() < LARGE_BYTES {
            return Ok(());
        }
        let most = self.arena_bytes * ARENA_OVERSHOOT;
        let bytes = row_bytes(of_row(), most);
        if EMPTY_BYTES + bytes > most {
            let what = format!(
                "a row of {} bytes of text with very many different words",
                of_row().map(str::len).sum::<usize>()
            );
            return Err(SidecarError::OverBudget { what, needed_bytes: EMPTY_BYTES + bytes, budget_bytes: most });
        }
        match &self.open {
            Some((writer, _)) if writer.mem_usage() as u64 + bytes > most => self.close_segment(),
            _ => Ok(()),
        }
    }

    fn close_segment(&mut self) -> Result<(), SidecarError> {
        if let Some((writer, folder)) = self.open.take() {
            self.segments.push((writer.finalize()?, folder));
        }
        Ok(())
    }

    /// The index: one segment, or a few where temporary disk does not hold all of it twice, or memory not what merging takes.
    ///
    /// # Errors
    /// As [`TextBuilder::add`]; [`SidecarError::Failed`] also when the index does not have the rows that went in.
    pub fn finish(mut self) -> Result<Bundle, SidecarError> {
        self.close_segment()?;
        if self.segments.is_empty() {
            return Err(SidecarError::Failed("an index without rows was to be written".into()));
        }
        let (mut parts, mut about, mut metas) = (Vec::new(), Vec::new(), Vec::new());
        for (index, folder) in self.merged()? {
            let (segment, files) = segment_files(&index)?;
            about.push(segment);
            parts.append(&mut folder_parts(&folder, &files)?);
            metas.push(index.directory().atomic_read(Path::new(META)).map_err(failed)?);
        }
        let found: u64 = about.iter().map(|segment| segment.rows).sum();
        if found != self.rows {
            return Err(SidecarError::Failed(format!("the index has {found} rows, {} were written", self.rows)));
        }
        parts.push(Part::memory(META, one_meta(&metas)?));
        // Small parts stand beside the footer and come with it in one read.
        parts.sort_by_key(|part| std::cmp::Reverse(part.length()));
        let about = TextAbout {
            engine: ENGINE.into(),
            tokenizer: TOKENIZER.into(),
            max_word_bytes: MAX_WORD_BYTES,
            dropped_words: self.dropped.load(Ordering::Relaxed),
            columns: self.columns,
            segments: about,
        };
        let about = serde_json::to_value(about).map_err(failed)?;
        Ok(Bundle { kind: SidecarKind::Text, about, parts })
    }

    /// Neighbours become one segment, as many at once as temporary disk holds beside what is there, and memory while they are merged.
    fn merged(&mut self) -> Result<Vec<(Index, Folder)>, SidecarError> {
        let sizes = self.segments.iter().map(|(index, folder)| SegmentSize::of(index, folder));
        let sizes = sizes.collect::<Result<Vec<_>, SidecarError>>()?;
        let mut merged = Vec::new();
        let mut waiting = std::mem::take(&mut self.segments).into_iter();
        for count in runs(&sizes, self.space.free_bytes(), self.memory_bytes) {
            let mut run: Vec<(Index, Folder)> = waiting.by_ref().take(count).collect();
            match run.len() {
                1 => merged.append(&mut run),
                _ => merged.push(merge(&run, &self.space)?),
            }
        }
        Ok(merged)
    }
}

/// Ending of the file with a segment's dictionary.
const DICTIONARY: &str = "term";

/// What merging a segment takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SegmentSize {
    /// Bytes on temporary disk.
    disk: u64,
    /// Bytes of memory: those of its dictionary, and of its rows.
    memory: u64,
}

impl SegmentSize {
    fn of(index: &Index, folder: &Folder) -> Result<SegmentSize, SidecarError> {
        let rows: u64 = index.searchable_segment_metas()?.iter().map(|segment| u64::from(segment.max_doc())).sum();
        Ok(SegmentSize { disk: folder.bytes(), memory: folder.bytes_of(DICTIONARY) + rows * MERGE_ROW_BYTES })
    }

    fn with(self, more: SegmentSize) -> SegmentSize {
        SegmentSize { disk: self.disk + more.disk, memory: self.memory + more.memory }
    }
}

/// How many neighbouring segments are merged at a time, so that each merge fits into `free_bytes` of disk and into `memory_bytes`. What it
/// replaces is gone before the next.
fn runs(segments: &[SegmentSize], free_bytes: u64, memory_bytes: u64) -> Vec<usize> {
    // Merging makes an index smaller as a rule; what it adds is for tables of the files.
    let fits = |all: SegmentSize| all.disk + all.disk / 16 <= free_bytes && all.memory <= memory_bytes;
    let mut runs: Vec<(usize, SegmentSize)> = Vec::new();
    for more in segments {
        match runs.last_mut() {
            Some((count, sum)) if fits(sum.with(*more)) => {
                *count += 1;
                *sum = sum.with(*more);
            }
            _ => runs.push((1, *more)),
        }
    }
    runs.into_iter().map(|(count, _)| count).collect()
}

/// One segment out of several, one after the other.
fn merge(run: &[(Index, Folder)], space: &TempSpace) -> Result<(Index, Folder), SidecarError> {
    let mut segments: Vec<Segment> = Vec::with_capacity(run.len());
    for (index, _) in run {
        segments.append(&mut index.searchable_segments()?);
    }
    let folder = Folder::new(space);
    let all = segments.iter().map(|_| None).collect();
    let merged = merge_filtered_segments(&segments, settings(), all, folder.clone())?;
    Ok((merged, folder))
}

/// The segment of an index of one segment, and its files.
fn segment_files(index: &Index) -> Result<(TextSegment, Vec<PathBuf>), SidecarError> {
    let segments = index.searchable_segments()?;
    let [segment] = &segments[..] else {
        return Err(SidecarError::Failed(format!("an index has {} segments", segments.len())));
    };
    let rows = u64::from(tantivy::SegmentReader::open(segment)?.num_docs());
    let name = segment.id().uuid_string();
    let of_segment = |path: &PathBuf| path.to_string_lossy().starts_with(&name);
    let files = index.directory().list_managed_files().into_iter().filter(of_segment).collect();
    Ok((TextSegment { name, rows }, files))
}

/// `meta.json` of an index that has the segments of all.
fn one_meta(metas: &[Vec<u8>]) -> Result<Vec<u8>, SidecarError> {
    let mut whole = serde_json::Value::Null;
    let mut segments = Vec::with_capacity(metas.len());
    for meta in metas {
        whole = serde_json::from_slice(meta).map_err(failed)?;
        match whole.get_mut("segments").and_then(serde_json::Value::as_array_mut) {
            Some(own) => segments.append(own),
            None => return Err(SidecarError::Failed("an index names no segments".into())),
        }
    }
    whole["segments"] = segments.into();
    serde_json::to_vec(&whole).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> SidecarError {
    SidecarError::Failed(error.to_string())
}

impl std::fmt::Debug for TextBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextBuilder")
            .field("columns", &self.columns)
            .field("rows", &self.rows)
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}

/// Words with their positions; no norms: rows are found, not ranked.
fn options() -> TextOptions {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    TextOptions::default().set_indexing_options(indexing)
}

fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: Compressor::None,
        // Nothing is stored, so there is nothing for a thread to compress.
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

fn segment(
    schema: &Schema,
    dropped: &Arc<AtomicU64>,
    space: &TempSpace,
    arena_bytes: u64,
) -> Result<(SingleSegmentIndexWriter, Folder), SidecarError> {
    let tokenizers = TokenizerManager::new();
    tokenizers.register(TOKENIZER, WordTokenizer::counting(Arc::clone(dropped)));
    let folder = Folder::new(space);
    let builder = Index::builder().schema(schema.clone()).settings(settings()).tokenizers(tokenizers);
    let budget = usize::try_from(arena_bytes).unwrap_or(usize::MAX);
    Ok((builder.single_segment_index_writer(folder.clone(), budget)?, folder))
}

fn folder_parts(folder: &Folder, files: &[PathBuf]) -> Result<Vec<Part>, SidecarError> {
    let mut stored = folder.files();
    let parts = files.iter().map(|path| {
        let content = match stored.remove(path) {
            Some(Stored::Temp(file)) => Content::Temp(file),
            Some(Stored::Memory(bytes)) => Content::Memory(bytes.to_vec().into()),
            None => return Err(SidecarError::Failed(format!("the index has no file {}", path.display()))),
        };
        Ok(Part { name: path.to_string_lossy().into_owned(), content })
    });
    parts.collect()
}

/// Texts of a column, whatever their array.
enum Texts<'a> {
    Short(&'a arrow_array::StringArray),
    Long(&'a arrow_array::LargeStringArray),
    View(&'a arrow_array::StringViewArray),
}

impl<'a> Texts<'a> {
    fn of(array: &'a ArrayRef) -> Result<Texts<'a>, SidecarError> {
        match array.data_type() {
            DataType::Utf8 => Ok(Texts::Short(array.as_string())),
            DataType::LargeUtf8 => Ok(Texts::Long(array.as_string())),
            DataType::Utf8View => Ok(Texts::View(array.as_string_view())),
            other => Err(SidecarError::Failed(format!("a column of type {other} was to be indexed"))),
        }
    }

    fn at(&self, row: usize) -> Option<&'a str> {
        match self {
            Texts::Short(array) => (!array.is_null(row)).then(|| array.value(row)),
            Texts::Long(array) => (!array.is_null(row)).then(|| array.value(row)),
            Texts::View(array) => (!array.is_null(row)).then(|| array.value(row)),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;

    use super::*;

    fn builder(arena_bytes: u64) -> (TextBuilder, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        let space = TempSpace::create(root.path(), 1 << 30).unwrap();
        let column = SidecarColumn { name: "m".into(), field_id: 1, data_type: DataType::Utf8 };
        (TextBuilder::new(vec![column], arena_bytes, &space).unwrap(), root)
    }

    /// `count` different words, all of them together once.
    fn different(count: usize, from: usize) -> String {
        (from..from + count).map(|n| format!("w{:x} ", n * 7919)).collect()
    }

    fn add(builder: &mut TextBuilder, text: &str) -> Result<(), SidecarError> {
        builder.add(&[Arc::new(StringArray::from(vec![text])) as ArrayRef])
    }

    fn in_memory(builder: &TextBuilder) -> u64 {
        builder.open.as_ref().map_or(0, |(writer, _)| writer.mem_usage() as u64)
    }

    /// What is counted for a row is never less than what tantivy takes for it.
    #[test]
    fn a_row_takes_no_more_than_was_counted() {
        for text in
            [different(30_000, 0), different(60_000, 1_000_000), different(130_000, 0), "word ".repeat(1_500_000)]
        {
            let (mut builder, _root) = builder(64 << 20);
            add(&mut builder, "first").unwrap();
            let before = in_memory(&builder);
            let counted = row_bytes([text.as_str()].into_iter(), u64::MAX);
            add(&mut builder, &text).unwrap();
            let taken = in_memory(&builder) - before;
            assert!(taken <= counted, "{taken} of {counted} bytes for {} bytes of text", text.len());
        }
    }

    /// 10 MB of different words in one value: more than a segment of 16 MB may take, and no memory is taken to find that out.
    #[test]
    fn a_value_that_does_not_fit_ends_the_index_and_others_get_a_segment_of_their_own() {
        let (mut small, _root) = builder(LEAST_ARENA_BYTES);
        add(&mut small, "first").unwrap();
        let value = different(1_100_000, 0);
        assert!(value.len() > 10_000_000 - 1_000_000, "{}", value.len());
        let error = add(&mut small, &value).unwrap_err();
        assert!(matches!(error, SidecarError::OverBudget { .. }), "{error}");
        assert!(error.to_string().contains("very many different words"), "{error}");
        assert!(in_memory(&small) < LEAST_ARENA_BYTES);

        // Each fits alone, and not two of them together.
        let (mut builder, _root) = builder(LEAST_ARENA_BYTES);
        for n in 0..4 {
            add(&mut builder, &different(70_000, n * 100_000)).unwrap();
            assert!(in_memory(&builder) <= LEAST_ARENA_BYTES * ARENA_OVERSHOOT);
        }
        assert!(builder.segments.len() >= 2, "{}", builder.segments.len());
        let bundle = builder.finish().unwrap();
        assert_eq!(bundle.about["segments"][0]["rows"], 4);
    }

    #[test]
    fn as_many_neighbours_are_merged_as_the_disk_holds() {
        let runs = |bytes: &[u64], free_bytes| {
            let sizes: Vec<SegmentSize> = bytes.iter().map(|bytes| SegmentSize { disk: *bytes, memory: 1 }).collect();
            super::runs(&sizes, free_bytes, u64::MAX)
        };
        assert_eq!(runs(&[], 100), Vec::<usize>::new());
        assert_eq!(runs(&[10, 10, 10], 1000), [3]);
        assert_eq!(runs(&[10, 10, 10, 10, 10], 22), [2, 2, 1]);
        assert_eq!(runs(&[10, 10, 10], 20), [1, 1, 1], "a table more than the segments themselves");
        assert_eq!(runs(&[10, 50, 10], 0), [1, 1, 1]);
        assert_eq!(runs(&[5, 50, 5, 5], 40), [1, 1, 2]);
    }

    #[test]
    fn as_many_neighbours_are_merged_as_memory_holds() {
        let runs = |bytes: &[u64], memory_bytes| {
            let sizes: Vec<SegmentSize> = bytes.iter().map(|bytes| SegmentSize { disk: 100, memory: *bytes }).collect();
            super::runs(&sizes, u64::MAX / 2, memory_bytes)
        };
        assert_eq!(runs(&[10, 10, 10], 30), [3]);
        assert_eq!(runs(&[10, 10, 10], 29), [2, 1]);
        assert_eq!(runs(&[40, 10, 10, 40], 20), [1, 2, 1]);
        assert_eq!(runs(&[10, 10], 0), [1, 1]);
    }

    /// A segment counts with its dictionary, which merging holds whole, and with its rows; what memory does not hold together stays apart.
    #[test]
    fn segments_that_memory_does_not_hold_together_stay_apart() {
        let filled = || {
            let (mut builder, root) = builder(LEAST_ARENA_BYTES);
            for n in 0..6 {
                add(&mut builder, &different(70_000, n * 100_000)).unwrap();
            }
            builder.close_segment().unwrap();
            (builder, root)
        };
        let segments = |builder: TextBuilder| builder.finish().unwrap().about["segments"].as_array().unwrap().len();
        let (builder, _root) = filled();
        let sizes: Vec<SegmentSize> =
            builder.segments.iter().map(|(index, folder)| SegmentSize::of(index, folder).unwrap()).collect();
        assert!(sizes.len() >= 3, "{sizes:?}");
        // Two rows a segment at most; a word takes some bytes of a dictionary, and more of the rest.
        assert!(sizes.iter().all(|size| size.memory > 70_000 && size.memory < size.disk), "{sizes:?}");
        assert_eq!(builder.memory_bytes, LEAST_ARENA_BYTES * ARENA_OVERSHOOT);
        assert_eq!(segments(builder), 1, "small ones fit together");
        let (mut builder, _root) = filled();
        builder.memory_bytes = sizes[0].memory;
        assert_eq!(segments(builder), sizes.len());
        let (mut builder, _root) = filled();
        builder.memory_bytes = sizes[0].with(sizes[1]).memory;
        let merged = segments(builder);
        assert!(merged > 1 && merged < sizes.len(), "{merged}");
    }

    #[test]
    fn rows_beyond_what_memory_merges_do_not_end_an_index() {
        let (arena, many) = (48 << 20, 1_000_000_000);
        assert_eq!(TextBuilder::least_memory(arena), 96 << 20);
        assert_eq!(TextBuilder::memory(arena, 1_000_000), 96 << 20);
        assert_eq!(TextBuilder::memory(arena, many), many * MERGE_ROW_BYTES + DICTIONARIES_BYTES);
    }
}
