//! One manual pass in this process.

use firn_config::Config;
use firn_telemetry::Emitter;

use crate::report::{PassError, PassSummary, Report};
use crate::request::ManualRequest;

/// Plans the datasets of `request` and, unless it is a dry run, merges here what was selected. Expires and deletes
/// nothing (design section 10, `firn compact`).
///
/// # Errors
/// [`PassError::Usage`] when nothing can be done as it was asked, [`PassError::Unavailable`] when nothing could be
/// reached. Failures of single datasets and partitions are reported and counted instead.
pub async fn manual(
    config: &Config,
    request: &ManualRequest,
    emitter: &Emitter,
    report: &mut dyn Report,
) -> Result<PassSummary, PassError> {
    let _ = (config, request, emitter, report);
    Err(PassError::Unavailable("passes are not wired yet".into()))
}
