//! The merge engine: keys first, then columns (design section 5).
//!
//! [`merge`] moves the rows of sorted inputs into outputs: [`keys`] reads the key columns and gets windows of runs from `firn-merge`,
//! [`columns`] moves the columns of a window one by one, [`ledger`] proves that what came in is what went out, [`output`] closes
//! files at window borders. [`merge_group`](crate::merge_group) does what a whole group needs: it sorts inputs that are not, and merges in levels what does
//! not fit at once.

mod columns;
mod demand;
mod driver;
mod error;
mod gather;
mod keys;
mod ledger;
mod output;
mod request;
mod source;
mod stop;

#[cfg(test)]
pub(crate) mod tests;

use arrow_schema::SchemaRef;
use firn_model::RowOrder;

pub(crate) use demand::{compressed_bytes, lean};
pub(crate) use driver::{admission, check_inputs, fast_path, run};
pub use error::{MergeError, Space};
pub(crate) use keys::{KeyReader, KeyReading, key_order};
pub(crate) use ledger::lock;
pub use request::{
    EngineLimits, GroupProof, Hidden, MergeInput, MergeReport, MergeRequest, MergedFile, OutputFactory, OutputSink,
    POSITION_COLUMN, SEQUENCE_COLUMN, SOURCE_COLUMN,
};
pub use stop::StopFlag;

use crate::writer::WriterSettings;

/// For tests: changes what the encoder of a column gets.
#[cfg(test)]
pub(crate) type Tamper = fn(usize, arrow_array::ArrayRef) -> arrow_array::ArrayRef;

/// One merge of inputs that are open at once: a request, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) inputs: &'a [MergeInput],
    pub(crate) schema: &'a SchemaRef,
    pub(crate) order: &'a RowOrder,
    pub(crate) settings: &'a WriterSettings,
    pub(crate) target_bytes: u64,
    pub(crate) min_file_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) upload_bytes: u64,
    pub(crate) threads: usize,
    pub(crate) limits: EngineLimits,
    pub(crate) stop: &'a StopFlag,
    /// The output gets hidden columns with where each row comes from.
    pub(crate) hidden: bool,
    #[cfg(test)]
    pub(crate) tamper: Option<Tamper>,
}

impl<'a> Task<'a> {
    pub(crate) fn of(request: &'a MergeRequest) -> Task<'a> {
        Task {
            inputs: &request.inputs,
            schema: &request.schema,
            order: &request.order,
            settings: &request.settings,
            target_bytes: request.target_bytes,
            min_file_bytes: request.min_file_bytes,
            memory_bytes: request.memory_bytes,
            upload_bytes: request.upload_bytes,
            threads: request.threads,
            limits: request.limits,
            stop: &request.stop,
            hidden: false,
            #[cfg(test)]
            tamper: None,
        }
    }
}

/// Merges sorted inputs that fit at once. Blocks; works on the calling thread and on threads of its own.
///
/// # Errors
/// [`MergeError::Unsorted`] and [`MergeError::OverBudget`] are what [`merge_group`](crate::levels::merge_group) deals with. After any error
/// the outputs that were created, closed ones too, are void.
pub fn merge(request: &MergeRequest, outputs: &mut dyn OutputFactory) -> Result<MergeReport, MergeError> {
    run(&Task::of(request), outputs)
}
