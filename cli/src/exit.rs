//! Exit codes (design section 10): tests, scripts and schedulers rely on them.

use std::process::ExitCode;

use firn_pass::{MaintainSummary, PassError, PassSummary};

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done, also when there was nothing to do.
    Done,
    /// 1: a partition or check failed, or a table, catalog, container or credential is not there.
    Failed,
    /// 2: wrong usage or configuration, also where only the loaded table shows it.
    Usage,
}

impl Exit {
    /// Wrong usage weighs more than a failure: running again without a change helps the second, never the first.
    pub(crate) fn of_pass(result: &Result<PassSummary, PassError>) -> Self {
        match result {
            Err(error) => Exit::of_error(error),
            Ok(summary) if summary.datasets_refused > 0 => Exit::Usage,
            Ok(summary) if !summary.ok() => Exit::Failed,
            Ok(_) => Exit::Done,
        }
    }

    /// For expiry and orphan cleanup: a table that is left alone is no failure, one that was stopped is.
    pub(crate) fn of_maintenance(result: &Result<MaintainSummary, PassError>) -> Self {
        match result {
            Err(error) => Exit::of_error(error),
            Ok(summary) if !summary.ok() => Exit::Failed,
            Ok(_) => Exit::Done,
        }
    }

    /// For a command that did not take place.
    pub(crate) fn of_error(error: &PassError) -> Self {
        match error {
            PassError::Usage(_) => Exit::Usage,
            PassError::Unavailable(_) => Exit::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_partitions_are_no_failure_and_usage_weighs_most() {
        let ok = PassSummary { partitions: 3, left: 2, superseded: 1, ..PassSummary::default() };
        let failed = PassSummary { failed: 1, ..ok.clone() };
        let gone = PassSummary { datasets_failed: 1, ..ok.clone() };
        let refused = PassSummary { datasets_refused: 1, ..failed.clone() };
        for (result, exit) in [
            (Ok(PassSummary::default()), Exit::Done),
            (Ok(ok), Exit::Done),
            (Ok(failed), Exit::Failed),
            (Ok(gone), Exit::Failed),
            (Ok(refused), Exit::Usage),
            (Err(PassError::Usage("no column".into())), Exit::Usage),
            (Err(PassError::Unavailable("no catalog".into())), Exit::Failed),
        ] {
            assert_eq!(Exit::of_pass(&result), exit, "{result:?}");
        }
    }
}
