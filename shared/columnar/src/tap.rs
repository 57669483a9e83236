//! Row groups as they were written, for who builds something beside the file from the same rows.
//!
//! What is handed over are the encoded columns: exactly the rows of the file, whichever way they were moved, in the bytes that memory was
//! admitted for. Who wants them decodes them, on a thread of its own.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Fields, SchemaRef};
use bytes::{Buf, Bytes, buf::Reader};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::contain::contain;
use crate::error::ColumnarError;

/// Rows of a batch at most.
const BATCH_ROWS: u64 = 4096;
/// Bytes of a batch, by the mean of the row group.
const BATCH_BYTES: u64 = 4 << 20;

/// Sees the row groups of one output.
pub trait RowGroupTap: Send {
    /// Top-level columns of the output's schema that it wants; asked once.
    fn columns(&self) -> Vec<usize>;

    /// A row group was written. False: no more of them are wanted. May wait until the one before it is through.
    fn row_group(&mut self, group: WrittenGroup) -> bool;
}

/// The wanted columns of a row group, as they stand in the file.
#[derive(Debug)]
pub struct WrittenGroup {
    file: String,
    schema: SchemaRef,
    columns: Arc<[usize]>,
    metadata: ParquetMetaData,
    /// One an encoded leaf: where it begins in the file, and its bytes.
    chunks: Vec<(u64, Bytes)>,
}

impl WrittenGroup {
    pub(crate) fn new(
        file: &str,
        schema: &SchemaRef,
        columns: &Arc<[usize]>,
        group: &RowGroupMetaData,
        chunks: Vec<(u64, Bytes)>,
    ) -> WrittenGroup {
        let footer = FileMetaData::new(1, group.num_rows(), None, None, group.schema_descr_ptr(), None);
        WrittenGroup {
            file: file.to_owned(),
            schema: Arc::clone(schema),
            columns: Arc::clone(columns),
            metadata: ParquetMetaData::new(footer, vec![group.clone()]),
            chunks,
        }
    }

    /// Rows of the row group.
    pub fn rows(&self) -> u64 {
        self.group().num_rows() as u64
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    fn group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(0)
    }

    /// Decodes the rows, a batch at a time, and gives each to `take`: one column for each of [`RowGroupTap::columns`], in their order. Texts
    /// and binary values come as views of the pages that they stand in.
    ///
    /// # Errors
    /// [`ColumnarError::Corrupt`] when what was encoded cannot be decoded, or what `take` says.
    pub fn read<E: From<ColumnarError>>(&self, mut take: impl FnMut(RecordBatch) -> Result<(), E>) -> Result<(), E> {
        let levels = self.levels()?;
        let rows = self.batch_rows();
        let opened = contain(|| ParquetRecordBatchReader::try_new_with_row_groups(&levels, self, rows, None));
        let mut reader = self.decoded(opened)?;
        while let Some(batch) = contain(|| reader.next()).map_err(|panic| self.corrupt(panic))? {
            let batch = batch.map_err(|error| self.corrupt(error.to_string()))?;
            take(self.in_order(&batch)?)?;
        }
        Ok(())
    }

    /// Columns are read in the order of the file.
    fn in_order(&self, batch: &RecordBatch) -> Result<RecordBatch, ColumnarError> {
        let mut sorted: Vec<usize> = self.columns.to_vec();
        sorted.sort_unstable();
        let places: Vec<usize> = self.columns.iter().filter_map(|column| sorted.binary_search(column).ok()).collect();
        batch.project(&places).map_err(|error| self.corrupt(error.to_string()))
    }

    fn levels(&self) -> Result<FieldLevels, ColumnarError> {
        let descriptor = self.metadata.file_metadata().schema_descr();
        let mask = ProjectionMask::roots(descriptor, self.columns.iter().copied());
        let fields: Fields = self.schema.fields().iter().map(|field| Arc::new(as_view(field))).collect();
        let levels = contain(|| {
            parquet_to_arrow_field_levels(descriptor, mask.clone(), Some(&fields))
                // Names inside of columns that nobody wants may differ; then texts are copied.
                .or_else(|_| parquet_to_arrow_field_levels(descriptor, mask.clone(), None))
        });
        self.decoded(levels)
    }

    fn batch_rows(&self) -> usize {
        let group = self.group();
        let bytes: i64 = group
            .columns()
            .iter()
            .filter(|column| self.chunk(column.byte_range().0).is_some())
            .map(|column| column.uncompressed_size())
            .sum();
        let row_bytes = (bytes.max(0) as u64).div_ceil(self.rows().max(1)).max(1);
        (BATCH_BYTES / row_bytes).clamp(1, BATCH_ROWS) as usize
    }

    fn chunk(&self, start: u64) -> Option<&(u64, Bytes)> {
        self.chunks.iter().find(|(at, _)| *at == start)
    }

    fn decoded<T>(&self, result: Result<ParquetResult<T>, String>) -> Result<T, ColumnarError> {
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.corrupt(error.to_string())),
            Err(panic) => Err(self.corrupt(panic)),
        }
    }

    fn corrupt(&self, detail: String) -> ColumnarError {
        ColumnarError::Corrupt { file: self.file.clone(), row_group: None, column: None, page: None, detail }
    }
}

/// Texts and binary values are read without copying them.
fn as_view(field: &Field) -> Field {
    match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => field.clone().with_data_type(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => field.clone().with_data_type(DataType::BinaryView),
        _ => field.clone(),
    }
}

impl RowGroups for WrittenGroup {
    fn num_rows(&self) -> usize {
        self.group().num_rows() as usize
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let column = self.group().column(leaf);
        let Some((start, bytes)) = self.chunk(column.byte_range().0) else {
            return Err(ParquetError::General(format!("leaf column {leaf} was not captured")));
        };
        let chunk = Arc::new(Chunk { start: *start, bytes: bytes.clone() });
        let pages = SerializedPageReader::new(chunk, column, self.num_rows(), None)?;
        Ok(Box::new(OneChunk(Some(Box::new(pages)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of one chunk.
struct OneChunk(Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}

/// Bytes of a chunk, read by their place in the file.
struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Chunk {
    fn slice(&self, start: u64, length: Option<usize>) -> ParquetResult<Bytes> {
        let from = start.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let to = from.and_then(|from| match length {
            Some(length) => from.checked_add(length),
            None => Some(self.bytes.len()),
        });
        match (from, to) {
            (Some(from), Some(to)) if from <= to && to <= self.bytes.len() => Ok(self.bytes.slice(from..to)),
            _ => Err(ParquetError::EOF(format!("byte {start} is not in the chunk"))),
        }
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.slice(start, None)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.slice(start, Some(length))
    }
}
