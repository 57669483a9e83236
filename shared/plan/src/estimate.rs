//! What a merge is expected to cost in Azure, by the measurements and prices of `docs/deploy.md`. An estimate for people who choose, never
//! a ground for a decision.

use std::ops::AddAssign;

use crate::outputs::expected_outputs;

/// Seconds for a GB on an instance of 2 GB, by the slowest table measured.
const SECONDS_PER_GB: f64 = 205.0;
/// Seconds for a partition, whatever its size: planning, opening, committing.
const SECONDS_EACH: f64 = 2.0;
const INSTANCE_GB: f64 = 2.0;
const USD_PER_GB_SECOND: f64 = 0.000_026;
const USD_PER_READ: f64 = 0.005 / 10_000.0;
const USD_PER_WRITE: f64 = 0.065 / 10_000.0;
/// Bytes of a block of an upload, and of a window that is read.
const BLOCK: u64 = 4 << 20;
const WINDOW: u64 = 1 << 20;
/// Calls for the footer of a file, and for metadata, manifests, lease and record of a partition.
const READS_OF_FILE: u64 = 2;
const READS_EACH: u64 = 20;
const WRITES_EACH: u64 = 16;

/// What merging some files costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Memory times time: what Azure Functions charge for.
    pub gb_seconds: f64,
    /// Calls to the storage account that read.
    pub reads: u64,
    /// Calls that write, which cost more.
    pub writes: u64,
}

impl Estimate {
    /// For files of one partition, written with this target size.
    pub fn of(files: u64, bytes: u64, target_bytes: u64) -> Self {
        if files == 0 {
            return Self::default();
        }
        let outputs = expected_outputs(bytes, target_bytes, target_bytes / 4);
        let blocks: u64 = outputs.iter().map(|output| output.div_ceil(BLOCK) + 1).sum();
        let seconds = SECONDS_EACH + SECONDS_PER_GB * bytes as f64 / f64::from(1 << 30);
        Self {
            gb_seconds: seconds * INSTANCE_GB,
            reads: READS_EACH + files * READS_OF_FILE + bytes.div_ceil(WINDOW),
            writes: WRITES_EACH + blocks,
        }
    }

    /// Calls of both kinds.
    pub fn operations(&self) -> u64 {
        self.reads + self.writes
    }

    /// In US dollars.
    pub fn usd(&self) -> f64 {
        self.gb_seconds * USD_PER_GB_SECOND + self.reads as f64 * USD_PER_READ + self.writes as f64 * USD_PER_WRITE
    }
}

impl AddAssign for Estimate {
    fn add_assign(&mut self, other: Self) {
        self.gb_seconds += other.gb_seconds;
        self.reads += other.reads;
        self.writes += other.writes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terabyte_costs_what_was_measured() {
        let mut all = Estimate::default();
        for _ in 0..1024 {
            all += Estimate::of(100, 1 << 30, 128 << 20);
        }
        // 205 s a GB at 2 GB are 420,000 GB-seconds and 10.90 USD, 264,000 blocks of 4 MiB another 1.70.
        assert!((420_000.0..430_000.0).contains(&all.gb_seconds), "{all:?}");
        assert!((260_000..300_000).contains(&all.writes), "{all:?}");
        assert!((12.0..15.0).contains(&all.usd()), "{}", all.usd());
    }

    #[test]
    fn nothing_costs_nothing() {
        assert_eq!(Estimate::of(0, 0, 1), Estimate::default());
        assert_eq!(Estimate::default().usd(), 0.0);
    }
}
