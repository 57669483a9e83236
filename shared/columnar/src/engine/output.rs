//! The outputs of a merge: files that grow by row groups and end at window borders.

use std::sync::Arc;

use firn_merge::Window;
use firn_model::KeyRange;

use arrow_schema::SchemaRef;

use super::Task;
use super::error::MergeError;
use super::request::{GroupProof, MergedFile, OutputFactory, OutputSink};
use crate::claims::FileClaims;
use crate::copy::group_claims::sums_entry;
use crate::error::ColumnarError;
use crate::proof::RowSum;
use crate::roll::{Roll, RollLimits, WindowBorder};
use crate::tap::RowGroupTap;
use crate::writer::{ColumnEncoders, CopiedBytes, EncodedColumn, FileWriter};

/// The outputs of one merge.
pub(crate) struct Outputs<'a, 'o> {
    task: &'a Task<'a>,
    schema: SchemaRef,
    /// None without a row order, and for temporary files: no claims.
    key_signature: Option<String>,
    factory: &'o mut dyn OutputFactory,
    open: Option<OpenFile>,
    finished: Vec<MergedFile>,
    rows_total: u64,
    /// Bytes and rows of all row groups written.
    bytes_out: u64,
    rows_out: u64,
}

struct OpenFile {
    writer: FileWriter<Box<dyn OutputSink>>,
    encoders: ColumnEncoders,
    groups: Vec<GroupProof>,
    keys: Option<KeyRange>,
    tap: Option<Tap>,
}

/// Who sees the row groups of a file, and which columns of them.
struct Tap {
    tap: Box<dyn RowGroupTap>,
    columns: Arc<[usize]>,
}

impl OpenFile {
    fn append(&mut self, columns: Vec<EncodedColumn>) -> Result<(), ColumnarError> {
        let Some(tap) = &mut self.tap else { return self.writer.append_row_group(columns) };
        let wants_more = match self.writer.append_and_keep(columns, &tap.columns)? {
            Some(group) => tap.tap.row_group(group),
            // Without one row group the others are of no use: whoever counts the rows finds some missing.
            None => false,
        };
        if !wants_more {
            self.tap = None;
        }
        Ok(())
    }
}

impl<'a, 'o> Outputs<'a, 'o> {
    pub(crate) fn new(
        task: &'a Task<'a>,
        schema: SchemaRef,
        key_signature: Option<String>,
        factory: &'o mut dyn OutputFactory,
    ) -> Outputs<'a, 'o> {
        Outputs {
            task,
            schema,
            key_signature: if task.hidden { None } else { key_signature },
            factory,
            open: None,
            finished: Vec::new(),
            rows_total: task.inputs.iter().map(|input| input.file.rows()).sum(),
            bytes_out: 0,
            rows_out: 0,
        }
    }

    /// Mean encoded bytes of an output row so far.
    pub(crate) fn row_bytes(&self) -> Option<f64> {
        (self.rows_out > 0).then(|| (self.bytes_out as f64 / self.rows_out as f64).max(f64::MIN_POSITIVE))
    }

    /// Decides whether the next window goes to the open file or starts a new one, before any of its rows goes to an encoder. `rows_in`
    /// rows were consumed by the windows before it. Returns the encoders and the rows of the file so far.
    pub(crate) fn open_next(&mut self, rows_in: u64, may_roll: bool) -> Result<(ColumnEncoders, u64), MergeError> {
        if may_roll && self.is_full(rows_in) {
            self.close()?;
        }
        if self.open.is_none() {
            let mut sink = self.factory.create()?;
            let tap = sink.tap().map(|tap| Tap { columns: tap.columns().into(), tap });
            let name = sink.name().to_owned();
            let writer = FileWriter::new(&name, &self.schema, self.task.settings, sink)?;
            let encoders = writer.encoders();
            self.open = Some(OpenFile { writer, encoders, groups: Vec::new(), keys: None, tap });
        }
        match &self.open {
            Some(open) => Ok((open.encoders.clone(), open.writer.rows())),
            None => Err(ColumnarError::Usage { detail: "no output is open".into() }.into()),
        }
    }

    fn is_full(&self, rows_in: u64) -> bool {
        let Some(open) = &self.open else { return false };
        let file_bytes = open.writer.bytes_written();
        let border = WindowBorder {
            file_bytes,
            total_bytes: file_bytes + self.finished.iter().map(|file| file.finished.bytes).sum::<u64>(),
            rows_done: rows_in,
            rows_left: self.rows_total.saturating_sub(rows_in),
            // With dedup every output row has a key of its own: the merge emits strictly ascending keys and checks it.
            key_changes: true,
        };
        let limits = RollLimits { target_bytes: self.task.target_bytes, min_file_bytes: self.task.min_file_bytes };
        Roll::decide(&border, &limits).closes()
    }

    /// Appends the encoded row group of `window`, whose rows have the sum `sum`. Without one it is copied, and proved by its bytes.
    pub(crate) fn append(
        &mut self,
        window: &Window,
        columns: Vec<EncodedColumn>,
        sum: Option<RowSum>,
    ) -> Result<(), MergeError> {
        let Some(open) = &mut self.open else {
            return Err(ColumnarError::Usage { detail: "no output is open".into() }.into());
        };
        self.bytes_out += columns.iter().map(EncodedColumn::bytes).sum::<u64>();
        self.rows_out += window.rows;
        open.append(columns)?;
        open.groups.push(proof(sum, open.writer.copied())?);
        if self.key_signature.is_some() {
            match &mut open.keys {
                Some(keys) => keys.last.clone_from(&window.last_key),
                None => open.keys = Some(KeyRange { first: window.first_key.clone(), last: window.last_key.clone() }),
            }
        }
        Ok(())
    }

    /// What the footer may say of the rows: that they are in order was checked row by row as they came in and run by run as they went
    /// out, over the whole merge; with dedup also that no key comes twice.
    fn claims(&self, open: &OpenFile) -> Vec<(String, String)> {
        if self.task.hidden {
            return Vec::new();
        }
        let order = self.task.order;
        let sorted = !order.is_unordered();
        let claims = FileClaims {
            sort: sorted.then(|| order.columns.iter().map(|column| column.name.clone()).collect()),
            unique: order.dedup_columns.is_some(),
            order: sorted.then(|| order.canonical()),
            key_signature: self.key_signature.clone(),
            key_range: open.keys.clone(),
            row_sum: row_sum(&open.groups),
        };
        let mut entries = claims.to_key_values();
        entries.push(sums_entry(open.groups.iter().map(GroupProof::row_sum)));
        entries.extend(open.writer.nans_entry());
        entries
    }

    fn close(&mut self) -> Result<(), MergeError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let claims = self.claims(&open);
        // Who sees row groups knows that there are no more before the output is closed.
        drop(open.tap);
        let (finished, mut sink) = open.writer.finish(&claims)?;
        sink.finished(finished.rows);
        sink.close()?;
        self.finished.push(MergedFile {
            finished,
            row_sum: row_sum(&open.groups),
            groups: open.groups,
            key_range: open.keys,
        });
        Ok(())
    }

    /// Closes the last file. Returns the files and the sum over all row groups that have one.
    pub(crate) fn finish(mut self) -> Result<(Vec<MergedFile>, RowSum), MergeError> {
        self.close()?;
        let sum = self.finished.iter().flat_map(|file| &file.groups).filter_map(GroupProof::row_sum).sum();
        Ok((self.finished, sum))
    }
}

/// The sum over all row groups, when each has one.
fn row_sum(groups: &[GroupProof]) -> Option<RowSum> {
    groups.iter().map(GroupProof::row_sum).sum()
}

/// What proves a row group that was appended: bytes that were copied must be those that were read, whatever else is known.
fn proof(sum: Option<RowSum>, copied: Option<CopiedBytes>) -> Result<GroupProof, MergeError> {
    match (sum, copied) {
        (_, Some(CopiedBytes { read, written })) if read != written => Err(MergeError::Proof {
            place: "of a copied row group".into(),
            detail: format!("bytes with CRC {read:016x} were read, {written:016x} went out"),
        }),
        (Some(sum), _) => Ok(GroupProof::Rows(sum)),
        (None, Some(CopiedBytes { read, .. })) => Ok(GroupProof::Bytes { crc: read }),
        (None, None) => Err(ColumnarError::Usage { detail: "a row group without a proof".into() }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_group_is_proved_by_its_rows_or_by_equal_bytes() {
        let copied = |read, written| Some(CopiedBytes { read, written });
        assert_eq!(proof(Some(RowSum(5)), None).unwrap(), GroupProof::Rows(RowSum(5)));
        assert_eq!(proof(Some(RowSum(5)), copied(1, 1)).unwrap(), GroupProof::Rows(RowSum(5)));
        assert_eq!(proof(None, copied(7, 7)).unwrap(), GroupProof::Bytes { crc: 7 });
        for sum in [None, Some(RowSum(5))] {
            let error = proof(sum, copied(1, 2)).unwrap_err();
            assert!(matches!(error, MergeError::Proof { .. }), "{error}");
        }
        assert!(proof(None, None).is_err());
        assert_eq!(row_sum(&[GroupProof::Rows(RowSum(5)), GroupProof::Rows(RowSum(6))]), Some(RowSum(11)));
        assert_eq!(row_sum(&[GroupProof::Rows(RowSum(5)), GroupProof::Bytes { crc: 7 }]), None);
    }
}
