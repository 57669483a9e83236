//! Sketches of distinct values: theta sketches in a Puffin file, as Iceberg describes them (Puffin spec,
//! `apache-datasketches-theta-v1`).

mod puffin;
mod statistics;
mod union;

use std::sync::Arc;

use arrow_array::ArrayRef;
use bytes::Bytes;
use datasketches::hash::value::raw_bytes;
use datasketches::theta::{CompactThetaSketch, ThetaSketch, ThetaSketchBuilder};
use firn_model::BlobId;
use firn_storage::{BlobProperties, BlobStore, PutCondition};

use crate::contain::contain;
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarColumn};
use crate::values::{Form, each_value};
pub use puffin::{OfSnapshot, PuffinBlob, THETA};
pub use statistics::StatisticsSketches;
pub use union::{NdvUnion, SnapshotSketches};

/// The sketch of a column of one data file, as it is read.
pub type FileSketch = CompactThetaSketch;

/// Nominal entries of a sketch, as a power of two: 4096, a relative error of about 1.6 %.
const LG_K: u8 = 12;
/// Memory of one sketch: its hash table, twice the entries, while it grows twice over.
const SKETCH_BYTES: u64 = 3 * 8 * (2 << LG_K);
/// Bytes of a sidecar that is read: a sketch has 32 KB.
const MOST_BYTES: u64 = 256 << 20;

/// Builds the sketches of one data file.
#[derive(Debug)]
pub struct NdvBuilder {
    columns: Vec<(SidecarColumn, ThetaSketch)>,
}

impl NdvBuilder {
    /// Sketches over `columns`.
    ///
    /// # Errors
    /// [`SidecarError::Unsupported`] for a column that cannot have one, [`SidecarError::OverBudget`] when they take more than
    /// `memory_bytes` together.
    pub fn new(columns: Vec<SidecarColumn>, memory_bytes: u64) -> Result<NdvBuilder, SidecarError> {
        let needed_bytes = NdvBuilder::memory(columns.len());
        if needed_bytes > memory_bytes {
            return Err(SidecarError::OverBudget {
                what: format!("sketches of {} columns", columns.len()),
                needed_bytes,
                budget_bytes: memory_bytes,
            });
        }
        let columns = columns.into_iter().map(|column| {
            Form::Iceberg.check(&column)?;
            let sketch = ThetaSketchBuilder::default().lg_k(LG_K).build();
            Ok((column, sketch.map_err(|error| SidecarError::Failed(error.to_string()))?))
        });
        Ok(NdvBuilder { columns: columns.collect::<Result<_, SidecarError>>()? })
    }

    /// Memory that sketches over so many columns take.
    pub fn memory(columns: usize) -> u64 {
        SKETCH_BYTES * columns as u64
    }

    /// The next rows: one array a column, in the order of the columns.
    ///
    /// # Errors
    /// [`SidecarError::Failed`] for arrays that are not those of the columns.
    pub fn add(&mut self, arrays: &[ArrayRef]) -> Result<(), SidecarError> {
        for ((_, sketch), array) in self.columns.iter_mut().zip(arrays) {
            each_value(array, Form::Iceberg, |value| sketch.update(raw_bytes::from_slice(value)))?;
        }
        Ok(())
    }

    /// The next rows of one column, by its place: who reads a file for its sketches alone reads column by column.
    ///
    /// # Errors
    /// As [`NdvBuilder::add`]; also for a place beyond the last column.
    pub fn add_to(&mut self, place: usize, array: &ArrayRef) -> Result<(), SidecarError> {
        match self.columns.get_mut(place) {
            Some((_, sketch)) => each_value(array, Form::Iceberg, |value| sketch.update(raw_bytes::from_slice(value))),
            None => Err(SidecarError::Failed(format!("there is no sketch {place}"))),
        }
    }

    /// The sketches as they are written.
    pub fn finish(self) -> NdvFile {
        let blobs = self.columns.iter().map(|(column, sketch)| PuffinBlob::of_sketch(column, &sketch.compact(true)));
        NdvFile { blobs: blobs.collect() }
    }
}

/// Sketches that are to be written.
#[derive(Debug, Clone)]
pub struct NdvFile {
    blobs: Vec<PuffinBlob>,
}

impl NdvFile {
    /// The sketches, one a column.
    pub fn blobs(&self) -> &[PuffinBlob] {
        &self.blobs
    }

    /// Bytes of the whole file.
    ///
    /// # Errors
    /// [`SidecarError::Failed`] when the footer cannot be written.
    pub fn to_bytes(&self, data: &DataFile) -> Result<Bytes, SidecarError> {
        Ok(puffin::write(&self.blobs, OfSnapshot::NONE, puffin::properties_of(data))?.0)
    }

    /// Writes the file as the sidecar `id` of `data`.
    ///
    /// # Errors
    /// What the store says ([`firn_storage::StorageError::AlreadyExists`] when there is a blob of that name).
    pub async fn write(
        &self,
        store: &dyn BlobStore,
        id: &BlobId,
        data: &DataFile,
    ) -> Result<BlobProperties, SidecarError> {
        Ok(store.put(id, self.to_bytes(data)?, PutCondition::IfAbsent).await?)
    }

    /// Writes the file in place of one that cannot be used any more: of fewer columns, or of a type that a column had before.
    ///
    /// # Errors
    /// What the store says.
    pub async fn write_over(
        &self,
        store: &dyn BlobStore,
        id: &BlobId,
        data: &DataFile,
    ) -> Result<BlobProperties, SidecarError> {
        Ok(store.put(id, self.to_bytes(data)?, PutCondition::Any).await?)
    }

    /// The sketches as if they had been written as `id` and read again.
    pub fn opened(self, id: &BlobId, data: DataFile) -> NdvSidecar {
        NdvSidecar { data, blobs: self.blobs, id: id.clone() }
    }
}

/// The sketches of a data file.
#[derive(Debug, Clone)]
pub struct NdvSidecar {
    data: DataFile,
    blobs: Vec<PuffinBlob>,
    id: BlobId,
}

impl NdvSidecar {
    /// Opens the sketches `id` of `expected`.
    ///
    /// # Errors
    /// [`SidecarError::Absent`], [`SidecarError::Unusable`], or what the store says.
    pub async fn open(store: Arc<dyn BlobStore>, id: &BlobId, expected: &DataFile) -> Result<NdvSidecar, SidecarError> {
        let sidecar = NdvSidecar::open_any(store, id).await?;
        match sidecar.data.differs_from(expected) {
            Some(detail) => Err(SidecarError::unusable(id, detail)),
            None => Ok(sidecar),
        }
    }

    /// Opens sketches of any data file.
    ///
    /// # Errors
    /// As [`NdvSidecar::open`].
    pub async fn open_any(store: Arc<dyn BlobStore>, id: &BlobId) -> Result<NdvSidecar, SidecarError> {
        let (blobs, data) = puffin::read(id, &whole(&*store, id).await?)?;
        Ok(NdvSidecar { data, blobs, id: id.clone() })
    }

    /// The data file that the sketches were built for.
    pub fn data(&self) -> &DataFile {
        &self.data
    }

    /// The sketches, one a column.
    pub fn blobs(&self) -> &[PuffinBlob] {
        &self.blobs
    }

    /// The sketch of a column; None when it has none.
    ///
    /// # Errors
    /// [`SidecarError::Unusable`] for bytes that are no sketch.
    pub fn sketch(&self, field_id: i32) -> Result<Option<CompactThetaSketch>, SidecarError> {
        let blob = self.blobs.iter().find(|blob| blob.fields == [field_id]);
        blob.map(|blob| decode(&self.id, blob)).transpose()
    }

    /// The sketches of `columns` in their order; None when one of them is missing, or was made of another type than the column has now.
    ///
    /// # Errors
    /// As [`NdvSidecar::sketch`].
    pub fn sketches(&self, columns: &[SidecarColumn]) -> Result<Option<Vec<CompactThetaSketch>>, SidecarError> {
        let blobs = columns.iter().map(|column| self.blobs.iter().find(|blob| blob.is_of(column)));
        let Some(blobs) = blobs.collect::<Option<Vec<_>>>() else { return Ok(None) };
        blobs.into_iter().map(|blob| decode(&self.id, blob)).collect::<Result<_, _>>().map(Some)
    }

    /// About how many different values a column has, nulls not counted; None when it has no sketch.
    ///
    /// # Errors
    /// As [`NdvSidecar::sketch`].
    pub fn distinct(&self, field_id: i32) -> Result<Option<f64>, SidecarError> {
        Ok(self.sketch(field_id)?.map(|sketch| sketch.estimate()))
    }
}

/// All bytes of a file of sketches.
async fn whole(store: &dyn BlobStore, id: &BlobId) -> Result<Bytes, SidecarError> {
    let size = store.properties(id).await.map_err(SidecarError::of_read)?.size;
    if size > MOST_BYTES {
        return Err(SidecarError::unusable(id, format!("{size} bytes are too many for sketches")));
    }
    store.read(id, 0..size).await.map_err(SidecarError::of_read)
}

fn decode(id: &BlobId, blob: &PuffinBlob) -> Result<CompactThetaSketch, SidecarError> {
    let read = contain("reading a sketch", || {
        CompactThetaSketch::deserialize(&blob.bytes).map_err(|error| SidecarError::Failed(error.to_string()))
    });
    read.map_err(|error| SidecarError::unusable(id, error.to_string()))
}

#[cfg(test)]
mod tests;
