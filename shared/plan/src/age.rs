//! When the time of a partition is past (design section 3, rule cold).

use std::fmt;

use firn_model::{LeftReason, Moment};

/// What is known of a partition's time, by the dataset's `timeColumn`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartitionTime {
    /// Where the partition ends; None when it is no partition of `timeColumn`.
    pub end: Option<Moment>,
    /// The highest time of the whole table; None when no file says.
    pub highest: Option<Moment>,
    /// This machine's time, which the table cannot be ahead of; None: not known.
    pub now: Option<Moment>,
}

impl PartitionTime {
    /// How far the table is. One row from the future, of a writer whose clock runs ahead, does not make today a thing of the past.
    /// Times without a zone are taken for UTC.
    fn reached(&self) -> Option<Moment> {
        let highest = self.highest?;
        Some(self.now.map_or(highest, |now| highest.min(now)))
    }
}

/// Whether a partition is cold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Coldness {
    /// `compactColdAfter` is `off`.
    Off,
    /// The partition has no end.
    #[default]
    NoEnd,
    /// The table's time is not far enough past the partition's end.
    Warm {
        /// The time from which it is cold.
        cold_at: Moment,
        /// How far the table is.
        highest: Option<Moment>,
    },
    /// The table's time is past the partition's end by `compactColdAfter` at least.
    Cold {
        /// Where the partition ends.
        end: Moment,
    },
}

impl Coldness {
    /// Compares a partition's end with the table's highest time; `cold_after` is `compactColdAfter` in microseconds.
    pub fn of(time: PartitionTime, cold_after: Option<i64>) -> Self {
        let Some(cold_after) = cold_after else { return Coldness::Off };
        let Some(end) = time.end else { return Coldness::NoEnd };
        let cold_at = Moment(end.0.saturating_add(cold_after));
        match time.reached() {
            Some(highest) if cold_at <= highest => Coldness::Cold { end },
            highest => Coldness::Warm { cold_at, highest },
        }
    }

    /// Whether nothing more is expected for the partition.
    pub fn is_cold(self) -> bool {
        matches!(self, Coldness::Cold { .. })
    }

    /// Why the rule cold leaves the partition; None when it is cold.
    pub fn left(self) -> Option<LeftReason> {
        match self {
            Coldness::Off => Some(LeftReason::ColdIsOff),
            Coldness::NoEnd => Some(LeftReason::NoEndInTime),
            Coldness::Warm { cold_at, highest } => Some(LeftReason::NotCold { cold_at, highest }),
            Coldness::Cold { .. } => None,
        }
    }
}

impl fmt::Display for Coldness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.left()) {
            (Coldness::Cold { end }, _) => write!(f, "cold: its time ended at {end}"),
            (_, Some(left)) => left.fmt(f),
            (_, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coldness(end: i64, highest: Option<i64>) -> Coldness {
        Coldness::of(PartitionTime { end: Some(Moment(end)), highest: highest.map(Moment), now: None }, Some(10))
    }

    #[test]
    fn a_partition_is_cold_from_the_moment_on() {
        assert_eq!(coldness(100, Some(109)), Coldness::Warm { cold_at: Moment(110), highest: Some(Moment(109)) });
        assert_eq!(coldness(100, Some(110)), Coldness::Cold { end: Moment(100) });
        assert!(!coldness(100, None).is_cold());
        // Nothing overflows.
        assert!(!coldness(i64::MAX, Some(i64::MAX - 1)).is_cold());
    }

    #[test]
    fn a_row_from_the_future_makes_nothing_cold() {
        let time = |now: i64| PartitionTime {
            end: Some(Moment(100)),
            highest: Some(Moment(9_000_000)),
            now: Some(Moment(now)),
        };
        let warm = Coldness::Warm { cold_at: Moment(110), highest: Some(Moment(109)) };
        assert_eq!(Coldness::of(time(109), Some(10)), warm);
        assert!(Coldness::of(time(110), Some(10)).is_cold(), "when its time has come");
    }

    #[test]
    fn without_an_end_or_a_setting_nothing_is_cold() {
        let time = PartitionTime { end: None, highest: Some(Moment(5)), now: None };
        assert_eq!(Coldness::of(time, Some(0)).left(), Some(LeftReason::NoEndInTime));
        let time = PartitionTime { end: Some(Moment(1)), ..time };
        assert_eq!(Coldness::of(time, None).left(), Some(LeftReason::ColdIsOff));
        assert_eq!(Coldness::of(time, Some(0)).left(), None);
    }
}
