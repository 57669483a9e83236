//! Whether files are left alone for longer than the longest job takes.

use std::fmt;

use firn_config::Config;

use super::finding::Finding;

/// Both in hours. The configuration refuses an age that is not longer; this says it by value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OrphanAge {
    age: u64,
    job: u64,
}

pub(super) fn look(config: &Config) -> OrphanAge {
    OrphanAge { age: config.maintenance.orphan_min_age_hours, job: config.compaction.runtime_deadline_hours }
}

impl fmt::Display for OrphanAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (age, job) = (self.age, self.job);
        write!(f, "maintenance.orphanMinAgeHours {age}, compaction.runtimeDeadlineHours {job}")?;
        if self.ok() {
            Ok(())
        } else {
            write!(f, ": a file that a running job has not committed yet could be deleted; write more than {job}")
        }
    }
}

impl Finding for OrphanAge {
    fn ok(&self) -> bool {
        self.age > self.job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_as_long_as_a_job_is_too_short() {
        assert!(OrphanAge { age: 24, job: 23 }.ok());
        let short = OrphanAge { age: 24, job: 24 };
        assert!(!short.ok() && short.to_string().ends_with("write more than 24"), "{short}");
    }
}
