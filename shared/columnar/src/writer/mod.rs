//! Writing a Parquet file, its columns encoded one by one.
//!
//! A row group is made by one [`ColumnEncoder`] for each top-level column, on any thread, and appended when all of its
//! [`EncodedColumn`]s are there. Only encoded row groups in flight are held in memory; bytes go to the sink as each row group
//! is appended, and the footer, with the page index and the key-value entries, at the end.

mod bloom;
mod encoder;
mod inspect;
#[cfg(test)]
mod round_trip;
pub(crate) mod schema;
mod settings;
mod sink;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;

use crate::ColumnarError;
use crate::copy::group_claims::nans_entry;
pub use crate::fast::write::Encodings;
use crate::metrics::{FileMetrics, Leaf, MetricsModes, file_metrics, leaves};
use crate::tap::WrittenGroup;
pub(crate) use bloom::BloomFilter;
pub use bloom::{BloomFilters, FALSE_POSITIVES};
pub use encoder::{ColumnEncoder, ColumnEncoders, EncodedColumn};
pub(crate) use settings::STATISTICS_BYTES;
pub use settings::{Codec, WriterSettings};
pub(crate) use sink::copied_digest;
use sink::{Captured, CountedSink, Watched, io_error, write_error};

/// A file that was written to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedFile {
    /// Size of the file.
    pub bytes: u64,
    /// Rows in it.
    pub rows: u64,
    /// Row groups in it.
    pub row_groups: usize,
    /// Metrics for the table's metadata.
    pub metrics: FileMetrics,
}

/// Writes one Parquet file into a sink. No `ARROW:schema` entry is written: the schema is the table's, by field ids.
pub struct FileWriter<W: Write + Send> {
    file: String,
    writer: SerializedFileWriter<CountedSink<W>>,
    encoders: ColumnEncoders,
    leaves: Vec<Leaf>,
    nan_counts: Vec<Vec<Option<u64>>>,
    /// Checksums of the row group that was copied last.
    copied: Option<CopiedBytes>,
    rows: u64,
    key_values: Vec<(String, String)>,
    metrics: MetricsModes,
    schema: SchemaRef,
}

impl<W: Write + Send> FileWriter<W> {
    /// Starts a file with the columns of `schema`, whose fields carry their field ids. `file` names it in messages.
    ///
    /// # Errors
    /// [`ColumnarError::Unsupported`] for a type that cannot be written, [`ColumnarError::Usage`] for settings without sense, or
    /// what the sink says of the first bytes.
    pub fn new(file: &str, schema: &SchemaRef, settings: &WriterSettings, sink: W) -> Result<Self, ColumnarError> {
        let properties = settings.to_parquet()?;
        let parquet = schema::parquet_schema(file, schema)?;
        let encoders = ColumnEncoders::new(file, schema, &parquet, &properties, settings)?;
        let writer = SerializedFileWriter::new(
            CountedSink { sink, bytes: 0, captured: Captured::default(), watched: None },
            parquet,
            properties,
        )
        .map_err(|error| write_error(file, error))?;
        Ok(Self {
            file: file.to_owned(),
            writer,
            encoders,
            leaves: leaves(schema)?,
            nan_counts: Vec::new(),
            copied: None,
            rows: 0,
            key_values: settings.key_values.clone(),
            metrics: settings.metrics.clone(),
            schema: Arc::clone(schema),
        })
    }

    /// What makes encoders for this file, also on other threads.
    pub fn encoders(&self) -> ColumnEncoders {
        self.encoders.clone()
    }

    /// An encoder for top-level column `column` of the next row group.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when there is no such column.
    pub fn column_encoder(&self, column: usize) -> Result<ColumnEncoder, ColumnarError> {
        self.encoders.encoder(column, self.rows)
    }

    /// Appends a row group of all columns, in the order of the schema, and hands its bytes to the sink.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when a column is missing, in the wrong place or of another number of rows; otherwise what the
    /// sink says. The file is of no use then.
    pub fn append_row_group(&mut self, columns: Vec<EncodedColumn>) -> Result<(), ColumnarError> {
        self.append(columns)
    }

    /// The same; also gives back the top-level columns `wanted` of the row group as they stand in the file. None when they were not seen whole.
    ///
    /// # Errors
    /// As [`append_row_group`](Self::append_row_group).
    pub fn append_and_keep(
        &mut self,
        columns: Vec<EncodedColumn>,
        wanted: &Arc<[usize]>,
    ) -> Result<Option<WrittenGroup>, ColumnarError> {
        let mut start = self.writer.bytes_written() as u64;
        let mut places: Vec<Range<u64>> = Vec::with_capacity(wanted.len());
        for column in &columns {
            for bytes in column.chunk_bytes() {
                if wanted.contains(&column.column) {
                    places.push(start..start + bytes);
                }
                start += bytes;
            }
        }
        self.writer.inner_mut().captured.want(places);
        self.append(columns)?;
        let captured = self.writer.inner_mut().captured.take();
        let written = captured.zip(self.writer.flushed_row_groups().last());
        Ok(written.map(|(captured, group)| {
            let chunks = captured.into_iter().map(|(start, bytes)| (start, bytes.into())).collect();
            WrittenGroup::new(&self.file, &self.schema, wanted, group, chunks)
        }))
    }

    fn append(&mut self, columns: Vec<EncodedColumn>) -> Result<(), ColumnarError> {
        let rows = self.check_row_group(&columns)?;
        let copied = columns.iter().any(EncodedColumn::is_copied);
        if copied {
            let start = self.writer.bytes_written() as u64;
            let bytes: u64 = columns.iter().map(EncodedColumn::bytes).sum();
            self.writer.inner_mut().watched = Some(Watched::new(start..start + bytes));
        }
        let mut read = copied_digest();
        let mut nans = Vec::with_capacity(self.leaves.len());
        let appended = self.writer.next_row_group().and_then(|mut row_group| {
            let mut chunks = Vec::new();
            for column in columns {
                nans.extend(column.nans);
                chunks.extend(column.chunks);
            }
            let mut chunks = chunks.into_iter();
            while let Some(mut chunk) = chunks.next() {
                // The next one is on its way while this one is written.
                chunk.prime();
                if let Some(next) = chunks.as_mut_slice().first_mut() {
                    next.prime();
                }
                chunk.append(&mut row_group, &mut read)?;
            }
            row_group.close()
        });
        appended.map_err(|error| write_error(&self.file, error))?;
        self.writer.flush().map_err(|error| io_error(&self.file, error))?;
        let written = self.writer.inner_mut().watched.take();
        self.copied = written.map(|written| CopiedBytes { read: read.finalize(), written: written.digest.finalize() });
        self.nan_counts.push(nans);
        self.rows += rows;
        Ok(())
    }

    fn check_row_group(&self, columns: &[EncodedColumn]) -> Result<u64, ColumnarError> {
        let rows = columns.first().map_or(0, |column| column.rows);
        let expected = self.encoders.len();
        let in_order = columns.iter().enumerate().all(|(at, column)| column.column == at && column.rows == rows);
        if columns.len() == expected && in_order && rows > 0 {
            return Ok(rows);
        }
        let found: Vec<_> = columns.iter().map(|column| (column.column, column.rows)).collect();
        Err(ColumnarError::Usage {
            detail: format!(
                "a row group of `{}` must have columns 0 to {expected} of one number of rows above 0, but has (column, rows) {found:?}",
                self.file
            ),
        })
    }

    /// Writes `batch` as one row group, on this thread. For small files and tests; a merge encodes column by column.
    ///
    /// # Errors
    /// As those of encoding and [`append_row_group`](Self::append_row_group).
    pub fn write_row_group(&mut self, batch: &RecordBatch) -> Result<(), ColumnarError> {
        let columns = batch.columns().iter().enumerate().map(|(at, array)| {
            let mut encoder = self.column_encoder(at)?;
            encoder.write(array)?;
            encoder.finish()
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        self.append_row_group(columns)
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Checksums of the row group that was appended last, when it was copied.
    pub(crate) fn copied(&self) -> Option<CopiedBytes> {
        self.copied
    }

    /// The key-value entry with the NaN of each row group; None for a file without floats.
    pub(crate) fn nans_entry(&self) -> Option<(String, String)> {
        let floats = || self.leaves.iter().enumerate().filter(|(_, leaf)| leaf.is_float());
        floats().next()?;
        let of = |nans: &Vec<Option<u64>>| {
            let counts = floats().filter_map(|(at, leaf)| Some((leaf.field_id?, nans.get(at).copied().flatten())));
            counts.collect::<Vec<_>>()
        };
        Some(nans_entry(self.nan_counts.iter().map(of)))
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the footer with the settings' key-value entries and `key_values` (which win), and gives back the sink.
    ///
    /// # Errors
    /// What the sink says.
    pub fn finish(mut self, key_values: &[(String, String)]) -> Result<(FinishedFile, W), ColumnarError> {
        let metrics = file_metrics(&self.leaves, self.writer.flushed_row_groups(), &self.nan_counts, &self.metrics);
        let row_groups = self.writer.flushed_row_groups().len();
        let kept = self.key_values.iter().filter(|(key, _)| key_values.iter().all(|(other, _)| other != key));
        for (key, value) in kept.chain(key_values) {
            self.writer.append_key_value_metadata(KeyValue::new(key.clone(), value.clone()));
        }
        let mut sink = self.writer.into_inner().map_err(|error| write_error(&self.file, error))?;
        sink.flush().map_err(|error| io_error(&self.file, error))?;
        Ok((FinishedFile { bytes: sink.bytes, rows: self.rows, row_groups, metrics }, sink.sink))
    }
}

/// Checksums (CRC-64/NVME) of the bytes of a copied row group, its columns one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopiedBytes {
    /// As they came from their file.
    pub(crate) read: u64,
    /// As the sink got them.
    pub(crate) written: u64,
}

impl<W: Write + Send> fmt::Debug for FileWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriter").field("file", &self.file).field("rows", &self.rows).finish_non_exhaustive()
    }
}
