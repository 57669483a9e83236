//! Sketches of many data files as one: of each column the values of all of them, each counted once.

use std::collections::BTreeMap;

use bytes::Bytes;
use datasketches::theta::{CompactThetaSketch, ThetaUnion, ThetaUnionBuilder};

use super::puffin::{self, OfSnapshot, PuffinBlob};
use super::{LG_K, SKETCH_BYTES};
use crate::error::SidecarError;
use crate::identity::SidecarColumn;

/// Bytes of a sketch in a file, and in memory between the file and the union.
const COMPACT_BYTES: u64 = 8 * (1 << LG_K) + 64;

/// The union of the sketches of a snapshot's data files. Its memory does not grow with them.
#[derive(Debug)]
pub struct NdvUnion {
    columns: Vec<(SidecarColumn, ThetaUnion)>,
    files: u64,
    rows: u64,
}

impl NdvUnion {
    /// Nothing yet of `columns`.
    ///
    /// # Errors
    /// [`SidecarError::Failed`] when the library refuses.
    pub fn new(columns: Vec<SidecarColumn>) -> Result<NdvUnion, SidecarError> {
        let columns = columns.into_iter().map(|column| {
            let union = ThetaUnionBuilder::default().lg_k(LG_K).build();
            Ok((column, union.map_err(|error| SidecarError::Failed(error.to_string()))?))
        });
        Ok(NdvUnion { columns: columns.collect::<Result<_, SidecarError>>()?, files: 0, rows: 0 })
    }

    /// Memory of a union over so many columns, with the sketches of `files` files waiting for it.
    pub fn memory(columns: usize, files: usize) -> u64 {
        let waiting = 2 * COMPACT_BYTES * files as u64;
        (SKETCH_BYTES + waiting) * columns as u64
    }

    /// Adds the sketches of a data file of `rows` rows, in the order of the columns.
    ///
    /// # Errors
    /// [`SidecarError::Failed`] for sketches of another seed, or too few. Sketches of the file that were added count no value twice when
    /// the file is added again.
    pub fn add(&mut self, sketches: &[CompactThetaSketch], rows: u64) -> Result<(), SidecarError> {
        if sketches.len() != self.columns.len() {
            let detail = format!("{} sketches of {} columns", sketches.len(), self.columns.len());
            return Err(SidecarError::Failed(detail));
        }
        for ((column, union), sketch) in self.columns.iter_mut().zip(sketches) {
            let added = union.update(sketch);
            added.map_err(|error| SidecarError::Failed(format!("column `{}`: {error}", column.name)))?;
        }
        self.files += 1;
        self.rows += rows;
        Ok(())
    }

    /// Data files that were added.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// The statistics of a snapshot that has these files and no others.
    ///
    /// # Errors
    /// [`SidecarError::Failed`] when the file cannot be written.
    pub fn finish(self, of: OfSnapshot) -> Result<SnapshotSketches, SidecarError> {
        let blobs: Vec<PuffinBlob> =
            self.columns.iter().map(|(column, union)| PuffinBlob::of_sketch(column, &union.to_sketch(true))).collect();
        let properties = BTreeMap::from([
            (puffin::DATA_FILES.to_owned(), self.files.to_string()),
            (puffin::DATA_ROWS.to_owned(), self.rows.to_string()),
        ]);
        let (bytes, footer_bytes) = puffin::write(&blobs, of, properties)?;
        let columns = self.columns.into_iter().map(|(column, _)| column).collect();
        Ok(SnapshotSketches { columns, blobs, of, bytes, footer_bytes })
    }
}

/// The sketches of a snapshot as a Puffin file.
#[derive(Debug, Clone)]
pub struct SnapshotSketches {
    /// The columns, in the order of the blobs.
    pub columns: Vec<SidecarColumn>,
    /// A sketch a column.
    pub blobs: Vec<PuffinBlob>,
    /// The snapshot.
    pub of: OfSnapshot,
    /// The whole file.
    pub bytes: Bytes,
    /// How many of them are the footer: payload, lengths, flags and magic numbers.
    pub footer_bytes: u64,
}
