//! Sidecars of a data file: a full-text index, bloom filters and sketches of distinct values (design section 7; byte formats in
//! `docs/sidecars.md`).
//!
//! Building, from Arrow batches of the rows that were written, in the order of the file:
//! - [`set`]: all sidecars of one file at once, each failing on its own;
//! - [`text`]: the index, tantivy segments on temporary disk; [`bloom`]: split-block filters; [`ndv`]: theta sketches;
//! - `values`: what of a value is hashed; [`bundle`]: several parts in one blob, with a footer.
//!
//! Reading, over a [`BlobStore`](firn_storage::BlobStore):
//! - [`bundle::BundleReader`], [`text::TextIndex`], [`bloom::BloomSidecar`], [`ndv::NdvSidecar`];
//! - [`query`]: what `firn search` asks, answered by an index or by looking at every row, with the same rows either way.
//!
//! - [`mod@inspect`]: what is in a sidecar, for a person;
//! - [`note`]: why a data file has no index;
//! - [`identity`]: which sidecar belongs to which data file; [`error`]: what can go wrong, told by what the caller does next.
//!
//! A sidecar is never needed: who cannot use one reads the data file.

pub mod bloom;
pub mod bundle;
mod contain;
pub mod error;
pub mod identity;
pub mod inspect;
pub mod ndv;
pub mod note;
pub mod query;
pub mod set;
pub mod text;
mod values;

pub use bloom::{BloomAnswer, BloomBuilder, BloomSidecar};
pub use bundle::{Bundle, BundleReader};
pub use error::SidecarError;
pub use identity::{DataFile, SidecarColumn, SidecarKind, sidecar_id};
pub use inspect::{Inspected, InspectedColumn, InspectedPart, InspectedStatistics, Inspection, inspect};
pub use ndv::{NdvBuilder, NdvFile, NdvSidecar, NdvUnion, OfSnapshot, SnapshotSketches, StatisticsSketches};
pub use note::{DecidedOn, NoIndex, NoteStanding};
pub use query::{Query, QueryError, Scanner};
pub use set::{Built, BuiltContent, Dropped, SetLimits, SidecarColumns, SidecarSet};
pub use text::{RowSet, TextAnswer, TextBuilder, TextIndex};
