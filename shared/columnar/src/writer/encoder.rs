//! Encoding one top-level column of one row group.

use std::fmt;
use std::io;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{Field, FieldRef, Schema};
use crc_fast::Digest;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{SchemaDescriptor, TypePtr};

use super::inspect::{BatchPlace, inspect, variable_bytes};
use super::schema;
use super::settings::WriterSettings;
use super::sink::write_error;
use crate::ColumnarError;
use crate::copy::chunk::CopiedChunk;
use crate::fast::column::Gathered;
use crate::fast::kind::Kind;
use crate::fast::pool::Pool;
use crate::fast::write::{ChunkSettings, OwnChunk, Workspace, encode};

/// Makes the encoders of a file's columns. Cheap to clone and to hand to other threads: it does not touch the file.
#[derive(Debug, Clone)]
pub struct ColumnEncoders {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: String,
    page_bytes: usize,
    columns: Vec<ColumnFactory>,
}

/// One column's own factory: the one that the `parquet` crate has for a file makes the encoders of all columns at once, which
/// costs memory for columns that are not being written.
#[derive(Debug)]
struct ColumnFactory {
    field: FieldRef,
    leaves: usize,
    factory: ArrowRowGroupWriterFactory,
    /// For the fast path; None for columns that it does not write.
    own: Option<ChunkSettings>,
}

impl ColumnEncoders {
    pub(super) fn new(
        file: &str,
        arrow: &Schema,
        parquet: &TypePtr,
        properties: &WriterPropertiesPtr,
        settings: &WriterSettings,
    ) -> Result<Self, ColumnarError> {
        let whole = SchemaDescriptor::new(Arc::clone(parquet));
        let mut first_leaf = 0;
        let mut columns = Vec::with_capacity(arrow.fields().len());
        for (field, parquet_field) in arrow.fields().iter().zip(parquet.get_fields()) {
            let root = schema::root(file, vec![Arc::clone(parquet_field)])?;
            let leaves = SchemaDescriptor::new(Arc::clone(&root)).num_columns();
            let nowhere = SerializedFileWriter::new(io::sink(), root, Arc::clone(properties))
                .map_err(|error| write_error(file, error))?;
            let factory = ArrowRowGroupWriterFactory::new(&nowhere, Arc::new(Schema::new(vec![Arc::clone(field)])));
            let flat = parquet_field.is_primitive() && Kind::of(field.data_type()).is_some();
            let own = flat.then(|| settings.to_chunk(whole.column(first_leaf)));
            first_leaf += leaves;
            columns.push(ColumnFactory { field: Arc::clone(field), leaves, factory, own });
        }
        let page_bytes = properties.data_page_size_limit();
        Ok(Self { shared: Arc::new(Shared { file: file.to_owned(), page_bytes, columns }) })
    }

    /// Top-level columns of the file.
    pub fn len(&self) -> usize {
        self.shared.columns.len()
    }

    /// True for a file without columns.
    pub fn is_empty(&self) -> bool {
        self.shared.columns.is_empty()
    }

    /// Encodes rows of the fast path as top-level column `column` of a row group.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] for a column that the fast path does not write, [`ColumnarError::Write`] when encoding fails.
    pub(crate) fn encode(
        &self,
        column: usize,
        rows: &Gathered,
        pool: &Pool,
        workspace: &mut Workspace,
    ) -> Result<EncodedColumn, ColumnarError> {
        let settings = self.shared.columns.get(column).and_then(|factory| factory.own.as_ref());
        let settings = settings.ok_or_else(|| ColumnarError::Usage {
            detail: format!("column {column} of `{}` is not for the fast path", self.shared.file),
        })?;
        let chunk = encode(&rows.rows, rows.kind, pool, settings, workspace);
        let chunk = chunk.map_err(|error| write_error(&self.shared.file, error))?;
        Ok(EncodedColumn {
            column,
            rows: rows.rows.len() as u64,
            bytes: chunk.close.bytes_written,
            nans: vec![Some(chunk.nans)],
            chunks: vec![EncodedChunk::Own(Box::new(chunk))],
        })
    }

    /// A new encoder for top-level column `column` of a row group. `first_row` is the row of the file that the row group
    /// starts with, for messages only.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when there is no such column.
    pub fn encoder(&self, column: usize, first_row: u64) -> Result<ColumnEncoder, ColumnarError> {
        let factory = self.shared.columns.get(column).ok_or_else(|| ColumnarError::Usage {
            detail: format!("column {column} of `{}`, which has {}, was to be written", self.shared.file, self.len()),
        })?;
        let writers =
            factory.factory.create_column_writers(0).map_err(|error| write_error(&self.shared.file, error))?;
        Ok(ColumnEncoder {
            shared: Arc::clone(&self.shared),
            column,
            first_row,
            rows: 0,
            nans: vec![0; factory.leaves],
            writers,
        })
    }
}

/// Encodes one top-level column (all its leaves) of one row group into memory. `Send`: columns may be encoded on any thread,
/// also for row groups that come later in the file.
pub struct ColumnEncoder {
    shared: Arc<Shared>,
    column: usize,
    first_row: u64,
    rows: u64,
    nans: Vec<u64>,
    writers: Vec<ArrowColumnWriter>,
}

impl ColumnEncoder {
    /// Encodes the next values. The array must have the type of the target field: names of list and map children and metadata
    /// may differ, nullability may not.
    ///
    /// # Errors
    /// [`ColumnarError::NullInRequired`] and [`ColumnarError::Inexact`] when the target field cannot hold a value,
    /// [`ColumnarError::Usage`] for another type, [`ColumnarError::Write`] when encoding fails. The encoder is of no use then.
    pub fn write(&mut self, array: &ArrayRef) -> Result<(), ColumnarError> {
        let shared = Arc::clone(&self.shared);
        let field = &shared.columns[self.column].field;
        let place = BatchPlace { file: &shared.file, first_row: self.first_row + self.rows };
        inspect(place, field, array, &mut self.nans)?;
        let rows = self.rows_at_once(array.as_ref());
        let mut start = 0;
        while start < array.len() {
            let length = rows.min(array.len() - start);
            let part = if length == array.len() { Arc::clone(array) } else { array.slice(start, length) };
            self.write_part(field, &part)?;
            start += length;
        }
        self.rows += array.len() as u64;
        Ok(())
    }

    /// Pages and dictionaries are only measured between writes, so values that are large are given to the encoder a page's
    /// worth at a time.
    fn rows_at_once(&self, array: &dyn Array) -> usize {
        let bytes = variable_bytes(array);
        if bytes <= self.shared.page_bytes {
            return array.len().max(1);
        }
        (self.shared.page_bytes as u128 * array.len() as u128 / bytes as u128).max(1) as usize
    }

    fn write_part(&mut self, field: &Field, array: &ArrayRef) -> Result<(), ColumnarError> {
        let leaves = compute_leaves(field, array).map_err(|error| write_error(&self.shared.file, error))?;
        if leaves.len() != self.writers.len() {
            return Err(ColumnarError::Usage {
                detail: format!("column `{}` has {} leaves, not {}", field.name(), self.writers.len(), leaves.len()),
            });
        }
        for (writer, leaf) in self.writers.iter_mut().zip(&leaves) {
            writer.write(leaf).map_err(|error| write_error(&self.shared.file, error))?;
        }
        Ok(())
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that the column takes in the file, as far as can be told before it is finished.
    pub fn size_hint(&self) -> usize {
        self.writers.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    /// Bytes of memory that the encoder holds.
    pub fn memory_bytes(&self) -> usize {
        self.writers.iter().map(ArrowColumnWriter::memory_size).sum()
    }

    /// Closes the column.
    ///
    /// # Errors
    /// [`ColumnarError::Write`] when encoding fails.
    pub fn finish(self) -> Result<EncodedColumn, ColumnarError> {
        let Self { shared, column, rows, nans, writers, .. } = self;
        let chunks: Vec<ArrowColumnChunk> = writers
            .into_iter()
            .map(ArrowColumnWriter::close)
            .collect::<Result<_, _>>()
            .map_err(|error| write_error(&shared.file, error))?;
        let bytes = chunks.iter().map(|chunk| chunk.close().bytes_written).sum();
        let chunks = chunks.into_iter().map(|chunk| EncodedChunk::Arrow(Box::new(chunk))).collect();
        let nans = nans.into_iter().map(Some).collect();
        Ok(EncodedColumn { column, rows, bytes, nans, chunks })
    }
}

impl fmt::Debug for ColumnEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnEncoder").field("column", &self.column).field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// One top-level column of a row group, encoded and held in memory until the row group is appended.
#[derive(Debug)]
pub struct EncodedColumn {
    pub(super) column: usize,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// NaN of each leaf; None where a copied chunk does not tell.
    pub(super) nans: Vec<Option<u64>>,
    pub(super) chunks: Vec<EncodedChunk>,
}

/// A chunk of one leaf.
pub(super) enum EncodedChunk {
    Arrow(Box<ArrowColumnChunk>),
    Own(Box<OwnChunk>),
    /// As it stands in another file, from where it is read when it is written.
    Copied(Box<CopiedChunk>),
}

impl EncodedChunk {
    /// Appends it to a row group as its next column. `copied` takes the bytes that come from another file.
    pub(super) fn append<W: std::io::Write + Send>(
        self,
        row_group: &mut SerializedRowGroupWriter<'_, W>,
        copied: &mut Digest,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Arrow(chunk) => chunk.append_to_row_group(row_group),
            Self::Own(chunk) => row_group.append_column(&chunk.bytes, chunk.close),
            Self::Copied(chunk) => {
                let loaded = chunk.load().map_err(|error| ParquetError::from(io::Error::other(error)));
                let (bytes, close) = loaded?;
                copied.update(&bytes);
                row_group.append_column(&bytes, close)
            }
        }
    }

    /// Begins to read what will be copied.
    pub(super) fn prime(&mut self) {
        if let Self::Copied(chunk) = self {
            chunk.prime();
        }
    }
}

impl fmt::Debug for EncodedChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arrow(_) => "Arrow",
            Self::Own(_) => "Own",
            Self::Copied(_) => "Copied",
        })
    }
}

impl EncodedColumn {
    /// A column that is copied from another file, a chunk a leaf.
    pub(crate) fn copied(column: usize, rows: u64, nans: Vec<Option<u64>>, chunks: Vec<CopiedChunk>) -> EncodedColumn {
        let bytes = chunks.iter().map(CopiedChunk::bytes).sum();
        let chunks = chunks.into_iter().map(|chunk| EncodedChunk::Copied(Box::new(chunk))).collect();
        EncodedColumn { column, rows, bytes, nans, chunks }
    }

    pub(super) fn is_copied(&self) -> bool {
        self.chunks.iter().any(|chunk| matches!(chunk, EncodedChunk::Copied(_)))
    }

    /// Position of the column in the target schema.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Rows of the row group.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that each of its leaves takes in the file, in the order in which they are written.
    pub(super) fn chunk_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.chunks.iter().map(|chunk| match chunk {
            EncodedChunk::Arrow(chunk) => chunk.close().bytes_written,
            EncodedChunk::Own(chunk) => chunk.close.bytes_written,
            EncodedChunk::Copied(chunk) => chunk.bytes(),
        })
    }

    /// Bytes that the column takes in the file and, until then, in memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
