//! Size tiers: files of one tier are of similar size (design section 3, rule tier).

use std::fmt;

/// Tiers are powers of 4 from here: everything below 256 KB is one tier, then comes what is below 1 MB, 4 MB and so on.
const FIRST: u64 = 64 << 10;
/// Files of 64 GB and more, far above any target size, count as one tier.
const TIERS: usize = 11;

/// The tier of a file of so many bytes; 0 is the lowest.
pub fn size_tier(bytes: u64) -> usize {
    let steps = (bytes / FIRST).checked_ilog(4).unwrap_or(0);
    (steps as usize).min(TIERS - 1)
}

/// The sizes of a tier, for people: `1 MB to 4 MB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierSizes(pub usize);

impl fmt::Display for TierSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lower = FIRST << (2 * self.0.min(TIERS - 1));
        match self.0 {
            0 => write!(f, "below {}", Plain(lower * 4)),
            tier if tier < TIERS - 1 => write!(f, "{} to {}", Plain(lower), Plain(lower * 4)),
            _ => write!(f, "{} and more", Plain(lower)),
        }
    }
}

/// A power of two as people write it.
struct Plain(u64);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 30 => write!(f, "{} GB", bytes >> 30),
            bytes if bytes >= 1 << 20 => write!(f, "{} MB", bytes >> 20),
            bytes => write!(f, "{} KB", bytes >> 10),
        }
    }
}

/// How many files there are in each tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TierCounts([u32; TIERS]);

impl TierCounts {
    /// Counts a file of so many bytes.
    pub fn count(&mut self, bytes: u64) {
        self.0[size_tier(bytes)] = self.0[size_tier(bytes)].saturating_add(1);
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &TierCounts) {
        for (mine, more) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(more);
        }
    }

    /// Files in a tier.
    pub fn of(&self, tier: usize) -> usize {
        self.0.get(tier).map_or(0, |files| *files as usize)
    }

    /// Files in the tier that has most.
    pub fn most(&self) -> usize {
        self.0.iter().max().map_or(0, |files| *files as usize)
    }

    /// The highest tier with a file; None when nothing was counted.
    pub fn highest(&self) -> Option<usize> {
        self.0.iter().rposition(|files| *files > 0)
    }

    /// All tiers, lowest first.
    pub fn tiers() -> std::ops::Range<usize> {
        0..TIERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;

    #[test]
    fn a_tier_ends_at_each_power_of_four() {
        let tiers = [0, 1, 64 * KB - 1, 64 * KB, 256 * KB - 1, 256 * KB, MB - 1, MB, 4 * MB, 16 * MB, 63 * MB, 64 * MB];
        assert_eq!(tiers.map(size_tier), [0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 4, 5]);
        assert_eq!(size_tier(u64::MAX), TIERS - 1);
    }

    #[test]
    fn a_tier_is_named_by_its_sizes() {
        let names = [0, 1, 2, 5, 10].map(|tier| TierSizes(tier).to_string());
        assert_eq!(names, ["below 256 KB", "256 KB to 1 MB", "1 MB to 4 MB", "64 MB to 256 MB", "64 GB and more"]);
    }

    #[test]
    fn counts_add_up_by_tier() {
        let mut counts = TierCounts::default();
        assert_eq!((counts.most(), counts.highest()), (0, None));
        [1, 2, 3 * MB].into_iter().for_each(|bytes| counts.count(bytes));
        counts.add(&counts.clone());
        assert_eq!((counts.of(0), counts.of(2), counts.most(), counts.highest()), (4, 2, 4, Some(2)));
    }
}
