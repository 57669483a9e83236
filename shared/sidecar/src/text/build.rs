//! Building an index: rows go to a segment in memory; when that is full it goes to temporary disk, and in the end all segments are merged
//! into one, in the order of the rows.

use std::path::PathBuf;
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
use tantivy::{Index, IndexSettings, Segment, TantivyDocument};

use super::folder::{Folder, Stored};
use super::words::{MAX_WORD_BYTES, TOKENIZER, WordTokenizer};
use super::{ENGINE, TextAbout, TextColumn};
use crate::bundle::{Bundle, Content, Part};
use crate::error::SidecarError;
use crate::identity::{SidecarColumn, SidecarKind};

/// Bytes of a segment in memory at least: below, tantivy's tables would be larger than what they hold.
pub(super) const LEAST_ARENA_BYTES: u64 = 8 << 20;
/// What a segment in memory may be larger than its limit: the table of its words doubles.
const ARENA_OVERSHOOT: u64 = 2;
/// Memory of a row while segments are merged: its place in the old and in the new segment.
const MERGE_ROW_BYTES: u64 = 24;
/// Rows of one index: numbers of documents have 32 bits, and the last of them has a meaning of its own.
const MOST_ROWS: u64 = 1 << 31;

/// Builds the index of one data file.
pub struct TextBuilder {
    columns: Vec<TextColumn>,
    fields: Vec<Field>,
    schema: Schema,
    arena_bytes: u64,
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
            space: space.clone(),
            open: None,
            segments: Vec::new(),
            dropped: Arc::default(),
            rows: 0,
        })
    }

    /// Memory that an index with segments of `arena_bytes` over `rows` rows takes while it is built.
    pub fn memory(arena_bytes: u64, rows: u64) -> u64 {
        (arena_bytes * ARENA_OVERSHOOT).max(rows * MERGE_ROW_BYTES)
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

    fn close_segment(&mut self) -> Result<(), SidecarError> {
        if let Some((writer, folder)) = self.open.take() {
            self.segments.push((writer.finalize()?, folder));
        }
        Ok(())
    }

    /// The index, as one segment.
    ///
    /// # Errors
    /// As [`TextBuilder::add`]; [`SidecarError::Failed`] also when the index does not have the rows that went in.
    pub fn finish(mut self) -> Result<Bundle, SidecarError> {
        self.close_segment()?;
        let (index, folder) = match self.segments.len() {
            0 => return Err(SidecarError::Failed("an index without rows was to be written".into())),
            1 => self.segments.remove(0),
            _ => self.merge()?,
        };
        let files = self.check(&index)?;
        let mut parts = parts(&folder, &files)?;
        // Small parts stand beside the footer and come with it in one read.
        parts.sort_by_key(|part| std::cmp::Reverse(part.length()));
        let about = TextAbout {
            engine: ENGINE.into(),
            tokenizer: TOKENIZER.into(),
            max_word_bytes: MAX_WORD_BYTES,
            dropped_words: self.dropped.load(Ordering::Relaxed),
            columns: self.columns,
        };
        let about = serde_json::to_value(about).map_err(|error| SidecarError::Failed(error.to_string()))?;
        Ok(Bundle { kind: SidecarKind::Text, about, parts })
    }

    /// One segment out of all, one after the other.
    fn merge(&mut self) -> Result<(Index, Folder), SidecarError> {
        let mut segments: Vec<Segment> = Vec::with_capacity(self.segments.len());
        for (index, _) in &self.segments {
            segments.append(&mut index.searchable_segments()?);
        }
        let folder = Folder::new(&self.space);
        let all = segments.iter().map(|_| None).collect();
        let merged = merge_filtered_segments(&segments, settings(), all, folder.clone())?;
        self.segments.clear();
        Ok((merged, folder))
    }

    /// The files of the index, after a look at whether it is what was built.
    fn check(&self, index: &Index) -> Result<Vec<PathBuf>, SidecarError> {
        let segments = index.searchable_segments()?;
        let [segment] = &segments[..] else {
            return Err(SidecarError::Failed(format!("the index has {} segments", segments.len())));
        };
        let found = tantivy::SegmentReader::open(segment)?.num_docs();
        if u64::from(found) != self.rows {
            return Err(SidecarError::Failed(format!("the index has {found} rows, {} were written", self.rows)));
        }
        let id = segment.id().uuid_string();
        let of_segment = |path: &PathBuf| path.to_string_lossy().starts_with(&id);
        let known = index.directory().list_managed_files();
        let mut files: Vec<PathBuf> = known.into_iter().filter(of_segment).collect();
        files.push(PathBuf::from("meta.json"));
        Ok(files)
    }
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

fn parts(folder: &Folder, files: &[PathBuf]) -> Result<Vec<Part>, SidecarError> {
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
