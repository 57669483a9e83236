//! Encoded key bounds: what metadata proves about the keys of a file.
//!
//! A value is encoded so that byte order is value order (ascending, before any direction is applied). The encoding is
//! made where the values are known (`firn-table` from Iceberg bounds, `firn-columnar` from Firn's own footers).

/// Proved bounds of one key column over a whole file: no value lies outside, and the file has no null in the column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Encoded lower bound, at or below every value (it may be truncated).
    pub lower: Vec<u8>,
    /// Encoded upper bound, at or above every value (it may be truncated and rounded up).
    pub upper: Vec<u8>,
}

impl Bounds {
    /// True when no value can lie in both.
    pub fn disjoint(&self, other: &Bounds) -> bool {
        self.upper < other.lower || other.upper < self.lower
    }
}

/// The proved first and last composite key of a file in the dataset's row order, from Firn's own footer: memcmp order is
/// row order (directions and null orders applied), over the columns of the row order or of its dedup key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// Smallest key.
    pub first: Vec<u8>,
    /// Largest key.
    pub last: Vec<u8>,
}

impl KeyRange {
    /// True when every key of `self` comes before every key of `other`; with `may_touch` the border key may be shared.
    pub fn before(&self, other: &KeyRange, may_touch: bool) -> bool {
        if may_touch { self.last <= other.first } else { self.last < other.first }
    }

    /// True when the two ranges share no key.
    pub fn disjoint(&self, other: &KeyRange) -> bool {
        self.before(other, false) || other.before(self, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u8, last: u8) -> KeyRange {
        KeyRange { first: vec![first], last: vec![last] }
    }

    #[test]
    fn touching_ranges_are_not_disjoint() {
        assert!(range(1, 2).disjoint(&range(3, 4)));
        assert!(range(3, 4).disjoint(&range(1, 2)));
        assert!(!range(1, 2).disjoint(&range(2, 4)));
        assert!(range(1, 2).before(&range(2, 4), true));
        assert!(!range(1, 2).before(&range(2, 4), false));
    }

    #[test]
    fn bounds_that_share_a_value_are_not_disjoint() {
        let bounds = |lower: u8, upper: u8| Bounds { lower: vec![lower], upper: vec![upper] };
        assert!(bounds(1, 2).disjoint(&bounds(3, 9)));
        assert!(!bounds(1, 3).disjoint(&bounds(3, 9)));
    }
}
