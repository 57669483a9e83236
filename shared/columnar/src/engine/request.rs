//! What a merge is asked for, and what it says afterwards.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use firn_model::{KeyRange, RowOrder};

use super::stop::StopFlag;
use crate::admit::Admission;
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::proof::RowSum;
use crate::tap::RowGroupTap;
use crate::temp::TempFile;
use crate::writer::{FinishedFile, WriterSettings};

/// Hidden column of temporary files: data sequence number of the table's file that a row comes from.
pub const SEQUENCE_COLUMN: &str = "_firn_seq";
/// Hidden column of temporary files: source rank of that file.
pub const SOURCE_COLUMN: &str = "_firn_source";
/// Hidden column of temporary files: position of the row in that file.
pub const POSITION_COLUMN: &str = "_firn_pos";

/// Which hidden columns an input has (design section 5, "Streams").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hidden {
    /// A file of the table: none.
    #[default]
    None,
    /// One file of the table in another order: original positions.
    Position,
    /// Rows of several files: sequence numbers, sources and positions.
    All,
}

/// One input of a merge.
#[derive(Debug)]
pub struct MergeInput {
    /// The file, opened against the target schema.
    pub file: InputFile,
    /// Data sequence number of its rows; of no meaning with [`Hidden::All`].
    pub sequence_number: i64,
    /// Rank of the file among all files of the group by (data sequence number, path bytes): decides last between equal rows.
    pub source: u32,
    /// Rows it must have by the table's metadata.
    pub expected_rows: u64,
    /// Hidden columns it has.
    pub hidden: Hidden,
    /// What its rows must sum up to, when that is known: of a file that Firn sorted or merged before.
    pub expected_sum: Option<RowSum>,
    /// Keeps a temporary file in place while it is read.
    pub temp: Option<Arc<TempFile>>,
}

impl MergeInput {
    /// A data file of the table.
    pub fn of_table(file: InputFile, sequence_number: i64, source: u32, expected_rows: u64) -> MergeInput {
        MergeInput {
            file,
            sequence_number,
            source,
            expected_rows,
            hidden: Hidden::None,
            expected_sum: None,
            temp: None,
        }
    }
}

/// A group of files to merge.
#[derive(Debug)]
pub struct MergeRequest {
    /// The inputs in commit order: by data sequence number, then source.
    pub inputs: Vec<MergeInput>,
    /// The table's current schema; every input was opened against it.
    pub schema: SchemaRef,
    /// Row order and dedup key.
    pub order: RowOrder,
    /// How outputs are written.
    pub settings: WriterSettings,
    /// Size that an output should have (`targetSizeMb`).
    pub target_bytes: u64,
    /// Size below which an output is small (`minFileSizeMb`): none is made where another division avoids it.
    pub min_file_bytes: u64,
    /// Memory that the merge may take (`memoryMb`), with everything that it holds.
    pub memory_bytes: u64,
    /// Of it: upload parts that the outputs' sinks hold.
    pub upload_bytes: u64,
    /// Threads at most.
    pub threads: usize,
    /// Bounds of reading and gathering; the default fits.
    pub limits: EngineLimits,
    /// Set to end the merge at the next window with [`MergeError::Stopped`](super::MergeError::Stopped).
    pub stop: StopFlag,
}

/// Bounds of reading and gathering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// Rows handed to an encoder at once.
    pub chunk_rows: usize,
    /// Bytes handed to an encoder at once.
    pub chunk_bytes: usize,
    /// Rows of one read.
    pub read_rows: usize,
    /// Bytes of one read (`readBatchKb`).
    pub read_bytes: usize,
    /// Rows of keys read at once from an input.
    pub key_rows: usize,
    /// Inputs at once at most, whatever memory allows.
    pub fan_in: usize,
    /// Columns that the fast path knows go by it; false is for comparing the two ways.
    pub fast_path: bool,
    /// Row groups that nothing comes between are copied without decoding; false is for comparing the two ways.
    pub copy: bool,
    /// Encoded bytes of a row group below which it is never copied.
    pub copy_least_bytes: u64,
    /// Encoded bytes of a row group above which it is never copied.
    pub copy_most_bytes: u64,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            chunk_rows: 65_536,
            chunk_bytes: 4 << 20,
            read_rows: 65_536,
            read_bytes: 1 << 20,
            key_rows: 8_192,
            fan_in: usize::MAX,
            fast_path: true,
            copy: true,
            copy_least_bytes: 8 << 20,
            copy_most_bytes: u64::MAX,
        }
    }
}

/// Where outputs go.
pub trait OutputFactory: Send {
    /// A new output.
    ///
    /// # Errors
    /// What opening it says.
    fn create(&mut self) -> Result<Box<dyn OutputSink>, ColumnarError>;

    /// The merge starts again: every output so far is void, closed ones too.
    ///
    /// # Errors
    /// What giving them up says.
    fn restart(&mut self) -> Result<(), ColumnarError>;
}

/// One output being written. Dropped without [`close`](Self::close) it must leave nothing that counts.
pub trait OutputSink: Write + Send {
    /// Names the output in messages.
    fn name(&self) -> &str;

    /// Who wants to see the row groups of this output; asked once, before the first of them.
    fn tap(&mut self) -> Option<Box<dyn RowGroupTap>> {
        None
    }

    /// The file is complete and has so many rows; all of its bytes are written, and [`close`](Self::close) follows.
    fn finished(&mut self, _rows: u64) {}

    /// All bytes were written: makes the output whole.
    ///
    /// # Errors
    /// What the store says.
    fn close(self: Box<Self>) -> Result<(), ColumnarError>;
}

impl fmt::Debug for dyn OutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputSink({})", self.name())
    }
}

/// What proves that the rows of a row group are those that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupProof {
    /// The sum of their hashes: over what was encoded, or, of a row group that was copied, by the footer that Firn wrote.
    Rows(RowSum),
    /// CRC-64 of its encoded columns one after the other, equal as they were read and as they were written.
    Bytes {
        /// The checksum.
        crc: u64,
    },
}

impl GroupProof {
    /// The sum of the rows' hashes, where it is known.
    pub fn row_sum(&self) -> Option<RowSum> {
        match self {
            GroupProof::Rows(sum) => Some(*sum),
            GroupProof::Bytes { .. } => None,
        }
    }
}

/// An output of a merge.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedFile {
    /// Size, rows and metrics.
    pub finished: FinishedFile,
    /// Sum of its rows' hashes; None when a row group was copied whose sum is not known.
    pub row_sum: Option<RowSum>,
    /// What proves the rows of each row group.
    pub groups: Vec<GroupProof>,
    /// First and last composite key, as they stand in its footer; None without a row order.
    pub key_range: Option<KeyRange>,
}

/// What a merge did. Rows in = rows out + duplicates dropped, and the same of the sums: both were checked.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeReport {
    /// Rows read from all inputs.
    pub rows_in: u64,
    /// Rows of all outputs.
    pub rows_out: u64,
    /// Rows dropped as duplicates.
    pub duplicates_dropped: u64,
    /// The outputs in row order.
    pub outputs: Vec<MergedFile>,
    /// Sum over the rows that came in.
    pub sum_in: RowSum,
    /// Sum over the rows that went out.
    pub sum_out: RowSum,
    /// Sum over the rows that were dropped.
    pub sum_dropped: RowSum,
    /// Sum over the rows of each input.
    pub input_sums: Vec<RowSum>,
    /// Windows, that is row groups written.
    pub windows: u64,
    /// Row groups of them that were copied without decoding.
    pub row_groups_copied: u64,
    /// Their encoded bytes.
    pub bytes_copied: u64,
    /// Rows of them that are proved by their bytes alone: the sums above are without them.
    pub rows_by_bytes: u64,
    /// How the work was laid out in memory.
    pub admission: Admission,
}
