//! How much a cursor may hold at once.

/// Bounds of one cursor's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimit {
    /// Most rows of a batch.
    pub rows: usize,
    /// Bytes that a decoded batch should have at most (`readBatchKb`); a single row may be larger.
    pub bytes: usize,
    /// Bytes that are read ahead of the page in work.
    pub read_ahead: usize,
}

impl Default for BatchLimit {
    fn default() -> Self {
        Self { rows: 65_536, bytes: 1024 * 1024, read_ahead: 256 * 1024 }
    }
}

impl BatchLimit {
    /// Rows of a batch when a row is about `row_bytes` long.
    pub(crate) fn rows_for(&self, row_bytes: u64) -> usize {
        let rows = self.bytes as u64 / row_bytes.max(1);
        usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, self.rows.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_by_rows_and_bytes() {
        let limit = BatchLimit { rows: 1000, bytes: 8000, read_ahead: 0 };
        assert_eq!(limit.rows_for(4), 1000);
        assert_eq!(limit.rows_for(16), 500);
        assert_eq!(limit.rows_for(1_000_000), 1);
        assert_eq!(limit.rows_for(0), 1000);
    }
}
