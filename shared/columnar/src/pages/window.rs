//! A bounded read-ahead over one column chunk.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::error::ColumnarError;
use crate::source::RangeRead;

/// Serves ranges of one column chunk and holds at most the read-ahead and a page.
///
/// A chunk that fits the read-ahead comes in one request; a page that does not fit is fetched exactly. Bytes that are
/// still held are not fetched again.
#[derive(Debug)]
pub(crate) struct Window {
    source: Arc<dyn RangeRead>,
    ahead: u64,
    start: u64,
    held: Bytes,
}

impl Window {
    pub(crate) fn new(source: Arc<dyn RangeRead>, ahead: u64) -> Self {
        Self { source, ahead, start: 0, held: Bytes::new() }
    }

    fn end(&self) -> u64 {
        self.start + self.held.len() as u64
    }

    /// Gives the bytes of `range`. Reads on beyond it, up to `useful_end` and up to the read-ahead, counted from the
    /// start of `range`.
    pub(crate) fn get(&mut self, range: Range<u64>, useful_end: u64) -> Result<Bytes, ColumnarError> {
        self.get_expecting(range, useful_end, 0)
    }

    /// As [`Self::get`], when about `expected` bytes from the start of `range` will be asked for next, so that they come
    /// in the same request even if the read-ahead is smaller.
    pub(crate) fn get_expecting(
        &mut self,
        range: Range<u64>,
        useful_end: u64,
        expected: u64,
    ) -> Result<Bytes, ColumnarError> {
        if range.start < self.start || range.start > self.end() {
            self.forget();
        }
        if self.held.is_empty() {
            self.start = range.start;
        }
        let skip = range.start - self.start;
        if range.end > self.end() {
            let read_to = range.end.max(useful_end.min(range.start.saturating_add(self.ahead.max(expected))));
            let kept = self.held.slice(skip as usize..);
            let fetched = self.source.read(self.end()..read_to)?;
            self.held = if kept.is_empty() {
                fetched
            } else {
                let mut joined = BytesMut::with_capacity(kept.len() + fetched.len());
                joined.extend_from_slice(&kept);
                joined.extend_from_slice(&fetched);
                joined.freeze()
            };
            self.start = range.start;
        }
        let skip = (range.start - self.start) as usize;
        Ok(self.held.slice(skip..skip + (range.end - range.start) as usize))
    }

    /// Drops what is held.
    pub(crate) fn forget(&mut self) {
        self.held = Bytes::new();
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{CountedRange, MemoryFile};

    fn window(ahead: u64) -> (Arc<CountedRange>, Window) {
        let bytes: Vec<u8> = (0..200).collect();
        let counted = Arc::new(CountedRange::new(Arc::new(MemoryFile::new("m", bytes.into()))));
        (Arc::clone(&counted), Window::new(counted, ahead))
    }

    fn check(window: &mut Window, range: Range<u64>, useful_end: u64) {
        let expected: Vec<u8> = (range.start as u8..range.end as u8).collect();
        assert_eq!(window.get(range, useful_end).unwrap().as_ref(), expected);
    }

    #[test]
    fn a_small_chunk_comes_in_one_request() {
        let (counted, mut window) = window(100);
        for start in (10..90).step_by(10) {
            check(&mut window, start..start + 10, 90);
        }
        assert_eq!((counted.requests(), counted.bytes()), (1, 80));
    }

    #[test]
    fn bytes_are_fetched_once_when_read_in_order() {
        let (counted, mut window) = window(16);
        for start in (0..190).step_by(6) {
            check(&mut window, start..start + 6, 192);
        }
        assert_eq!(counted.bytes(), 192);
        assert!(window.held.len() <= 16);
    }

    #[test]
    fn a_page_larger_than_the_read_ahead_is_fetched_exactly() {
        let (counted, mut window) = window(16);
        check(&mut window, 0..4, 200);
        check(&mut window, 0..100, 200);
        assert_eq!((counted.requests(), counted.bytes()), (2, 100));
        assert_eq!(window.end(), 100);
    }

    #[test]
    fn what_lies_between_is_not_fetched() {
        let (counted, mut window) = window(8);
        check(&mut window, 0..4, 4);
        check(&mut window, 100..104, 104);
        check(&mut window, 20..24, 24);
        assert_eq!((counted.requests(), counted.bytes()), (3, 12));
    }

    #[test]
    fn a_failed_read_loses_nothing() {
        let (_, mut window) = window(8);
        check(&mut window, 190..194, 194);
        assert!(window.get(194..300, 300).is_err());
        check(&mut window, 194..198, 198);
    }
}
