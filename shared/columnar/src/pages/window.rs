//! A bounded read-ahead over one column chunk.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::error::ColumnarError;
use crate::source::{PendingRead, RangeRead};

/// Serves ranges of one column chunk and holds at most the read-ahead and a page.
///
/// A chunk that fits the read-ahead comes in one request; a page that does not fit is fetched exactly. Bytes that are
/// still held are not fetched again. Where the source reads in the background, what follows is under way while what is held is worked on:
/// at most the read-ahead once more.
#[derive(Debug)]
pub(crate) struct Window {
    source: Arc<dyn RangeRead>,
    ahead: u64,
    start: u64,
    held: Bytes,
    /// Reads under way, none of them overlapping another.
    begun: Vec<Begun>,
}

#[derive(Debug)]
struct Begun {
    range: Range<u64>,
    read: PendingRead,
}

impl Window {
    pub(crate) fn new(source: Arc<dyn RangeRead>, ahead: u64) -> Self {
        Self { source, ahead, start: 0, held: Bytes::new(), begun: Vec::new() }
    }

    /// Bytes that are read ahead.
    pub(crate) fn ahead(&self) -> u64 {
        self.ahead
    }

    fn end(&self) -> u64 {
        self.start + self.held.len() as u64
    }

    /// Begins to read `range`, as far as it is neither held nor under way.
    pub(crate) fn begin(&mut self, range: Range<u64>) {
        if !self.source.reads_in_background() {
            return;
        }
        let end = range.end;
        let mut start = range.start;
        if (self.start..self.end()).contains(&start) {
            start = self.end();
        }
        while let Some(begun) = self.begun.iter().find(|begun| begun.range.contains(&start)) {
            start = begun.range.end;
        }
        let end = self.begun.iter().map(|begun| begun.range.start).filter(|begun| *begun > start).fold(end, u64::min);
        if start < end
            && let Some(read) = self.source.begin(start..end)
        {
            self.begun.push(Begun { range: start..end, read });
        }
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
            self.drop_held();
        }
        if self.held.is_empty() {
            self.start = range.start;
        }
        let skip = range.start - self.start;
        if range.end > self.end() {
            let read_to = range.end.max(useful_end.min(range.start.saturating_add(self.ahead.max(expected))));
            let kept = self.held.slice(skip as usize..);
            self.held = self.fetch(kept, range.end, read_to)?;
            self.start = range.start;
            self.begun.retain(|begun| begun.range.end > range.start);
            self.begin(self.end()..useful_end.min(self.end().saturating_add(self.ahead)));
        }
        let skip = (range.start - self.start) as usize;
        Ok(self.held.slice(skip..skip + (range.end - range.start) as usize))
    }

    /// `kept`, which ends where what is held ends, and what follows up to `needed_to` or further: up to `read_to` where a request is
    /// made anyway.
    fn fetch(&mut self, kept: Bytes, needed_to: u64, read_to: u64) -> Result<Bytes, ColumnarError> {
        let mut at = self.end();
        let mut parts = vec![kept];
        while at < needed_to {
            let part = match self.begun.iter().position(|begun| begun.range.contains(&at)) {
                Some(index) => {
                    let Begun { range, read } = self.begun.swap_remove(index);
                    read.wait()?.slice((at - range.start) as usize..)
                }
                None => {
                    let starts = self.begun.iter().map(|begun| begun.range.start).filter(|start| *start > at);
                    self.source.read(at..starts.fold(read_to, u64::min))?
                }
            };
            at += part.len() as u64;
            parts.push(part);
        }
        parts.retain(|part| !part.is_empty());
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let mut joined = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
        parts.iter().for_each(|part| joined.extend_from_slice(part));
        Ok(joined.freeze())
    }

    /// Drops what is held and what is under way.
    pub(crate) fn forget(&mut self) {
        self.drop_held();
        self.begun.clear();
    }

    fn drop_held(&mut self) {
        self.held = Bytes::new();
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    use crate::source::{CountedRange, FarFile, MemoryFile};

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

    fn far(ahead: u64) -> (Arc<FarFile>, Window) {
        let bytes: Vec<u8> = (0..200).collect();
        let far = Arc::new(FarFile::new(MemoryFile::new("m", bytes.into())));
        (Arc::clone(&far), Window::new(far, ahead))
    }

    fn reads(far: &FarFile) -> (u64, u64) {
        (far.begun.load(Ordering::Relaxed), far.waited.load(Ordering::Relaxed))
    }

    #[test]
    fn what_follows_is_under_way_while_what_is_held_is_worked_on() {
        let (source, mut window) = far(16);
        for start in (0..48).step_by(8) {
            check(&mut window, start..start + 8, 50);
        }
        assert_eq!(reads(&source), (3, 1), "16..32, 32..48 and 48..50 were begun, only the first read was waited for");
    }

    #[test]
    fn a_read_that_was_begun_is_taken_up_wherever_it_lies() {
        let (source, mut window) = far(16);
        window.begin(100..110);
        window.begin(4..20);
        window.begin(10..26);
        assert_eq!(reads(&source), (3, 0), "100..110, 4..20 and 20..26");
        check(&mut window, 0..4, 4);
        check(&mut window, 4..8, 8);
        check(&mut window, 100..104, 104);
        check(&mut window, 104..120, 120);
        assert_eq!(reads(&source), (3, 2), "0..4 and 110..120 were not begun");
        window.forget();
        check(&mut window, 4..8, 8);
        assert_eq!(reads(&source), (3, 3), "what was begun was given up");
    }

    #[test]
    fn a_failed_read_loses_nothing() {
        let (_, mut window) = window(8);
        check(&mut window, 190..194, 194);
        assert!(window.get(194..300, 300).is_err());
        check(&mut window, 194..198, 198);
    }
}
