//! The pages of one column chunk, read through a bounded window (design section 5, "Memory").
//!
//! Without an offset index the Parquet crate reads whole column chunks; files of other writers often have one row group
//! of a million rows and no index, and 24 such chunks do not fit. [`ChunkPages`] finds pages by walking their headers,
//! remembers where each one is, and goes back to any of them later with one request.

mod decode;
mod header;
mod map;
mod prime;
mod shared;
mod unpack;
mod window;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum};
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::column::page::{Page, PageMetadata};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::error::ColumnarError;
use crate::source::RangeRead;
use crate::thrift::ThriftError;
use decode::PageDecoder;
pub(crate) use header::{PageHeader, PageKind};
use map::PageMap;
use map::{DictionaryPlace, PageSpot};
pub(crate) use shared::SharedPages;
use window::Window;

/// First guess at the length of a page header; statistics in it can make it longer.
const HEADER_GUESS: u64 = 4 * 1024;
/// Bytes that are rather read than left out at the price of a second request.
const SMALL_GAP: u64 = 64 * 1024;
/// A header that goes on for longer is damage.
const MAX_HEADER: u64 = 64 * 1024 * 1024;
/// What a page may be larger than its whole chunk claims to be: writers count headers differently.
const SIZE_SLACK: u64 = 64 * 1024;

/// Where a chunk stands, for messages.
#[derive(Debug, Clone)]
pub(crate) struct ChunkPlace {
    pub(crate) file: Arc<str>,
    pub(crate) row_group: usize,
    pub(crate) column: String,
}

impl ChunkPlace {
    pub(crate) fn corrupt(&self, page: Option<usize>, detail: impl Into<String>) -> ColumnarError {
        ColumnarError::Corrupt {
            file: self.file.to_string(),
            row_group: Some(self.row_group),
            column: Some(self.column.clone()),
            page,
            detail: detail.into(),
        }
    }
}

/// What the values of a dictionary take once decoded, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DictionaryFacts {
    /// The mean over the entries.
    pub(crate) mean: u64,
    /// The longest entry.
    pub(crate) longest: u64,
}

/// The pages of one column chunk.
pub(crate) struct ChunkPages {
    place: ChunkPlace,
    chunk: ColumnChunkMetaData,
    range: Range<u64>,
    /// Rows of the row group.
    rows: u64,
    /// No repetition: each value is a row.
    flat: bool,
    map: PageMap,
    window: Window,
    /// For codecs that are rare.
    decoder: Option<PageDecoder>,
    /// The dictionary has still to be handed over.
    dictionary_due: bool,
    /// The dictionary, when it was decoded before it was asked for.
    dictionary: Option<Page>,
    /// The next data page to hand over.
    next: usize,
    /// Stop handing over pages once the pages handed over since [`Self::resume`] have this many bytes.
    pause_after: u64,
    /// Stop as well once this row is reached.
    until_row: u64,
    handed: u64,
    /// The row at which the caller will stop; nothing is read ahead beyond it.
    reach: Option<u64>,
    /// What really went wrong: the Parquet crate only carries texts.
    failure: Option<ColumnarError>,
}

impl ChunkPages {
    /// The pages of `chunk`, which lies at `range` and belongs to a row group of `rows` rows.
    pub(crate) fn new(
        place: ChunkPlace,
        source: Arc<dyn RangeRead>,
        chunk: ColumnChunkMetaData,
        range: Range<u64>,
        rows: u64,
        offset_index: Option<&[u8]>,
        read_ahead: u64,
    ) -> Self {
        let map = offset_index
            .and_then(|bytes| PageMap::from_offset_index(bytes, range.start, range.end, rows))
            .unwrap_or_else(|| PageMap::empty(range.start));
        Self {
            place,
            flat: chunk.column_descr().max_rep_level() == 0,
            chunk,
            range,
            rows,
            map,
            window: Window::new(source, read_ahead),
            decoder: None,
            dictionary_due: true,
            dictionary: None,
            next: 0,
            pause_after: u64::MAX,
            until_row: u64::MAX,
            handed: 0,
            reach: None,
            failure: None,
        }
    }

    /// Begins again for a new reader that will deliver `row` first: the dictionary is read and handed over, then pages
    /// from the first one or, with `seek`, from the one that holds `row`. Gives the first row of that page. Only flat
    /// columns can seek; of the others the reader steps over pages by itself.
    pub(crate) fn begin(&mut self, row: u64, reach: Option<u64>, seek: bool) -> Result<u64, ColumnarError> {
        self.next = 0;
        self.dictionary_due = true;
        self.failure = None;
        self.reach = reach;
        self.resume(u64::MAX, u64::MAX);
        // Pages that are known to lie before the row are stepped over without a look.
        let before = |spot: &PageSpot| spot.end_row().is_some_and(|end| end <= row);
        let goes_on = self.map.pages.iter().find(|spot| !before(spot)).map_or(self.map.walked_to, |spot| spot.offset);
        self.prepare_dictionary(goes_on)?;
        if seek { self.seek(row) } else { Ok(0) }
    }

    /// Drops all bytes and keeps what is known of the pages.
    pub(crate) fn release(&mut self) {
        self.window.forget();
        self.decoder = None;
        self.dictionary = None;
        self.reach = None;
    }

    /// Hands over pages again: at least one, then until they have `pause_after` bytes uncompressed or reach `until_row`,
    /// the row after the last one that is wanted now.
    pub(crate) fn resume(&mut self, pause_after: u64, until_row: u64) {
        self.pause_after = pause_after;
        self.until_row = until_row;
        self.handed = 0;
    }

    /// Hands over no page before the next [`Self::resume`].
    pub(crate) fn pause(&mut self) {
        self.pause_after = 0;
        self.handed = 1;
    }

    /// Tells that rows from `reach` on are not needed soon.
    pub(crate) fn set_reach(&mut self, reach: Option<u64>) {
        self.reach = reach;
    }

    /// What went wrong, if the Parquet crate got an error from here.
    pub(crate) fn take_failure(&mut self) -> Option<ColumnarError> {
        self.failure.take()
    }

    /// First row of the next page to be handed over; the number of rows after the last one. Flat columns only.
    pub(crate) fn next_row(&self) -> u64 {
        let last = self.next.checked_sub(1).and_then(|last| self.map.pages.get(last));
        last.and_then(PageSpot::end_row).unwrap_or(0)
    }

    /// Makes the page that holds `row` the next one and gives its first row. Flat columns only; `row` must exist.
    pub(crate) fn seek(&mut self, row: u64) -> Result<u64, ColumnarError> {
        while self.map.page_of(row).is_none() && !self.map.complete {
            self.walk()?;
        }
        match self.map.page_of(row) {
            Some(index) => {
                self.next = index;
                Ok(self.map.pages[index].first_row.unwrap_or(0))
            }
            None => Err(self.place.corrupt(None, format!("its pages do not hold row {row} of {}", self.rows))),
        }
    }

    /// Where the footer says that data pages begin, behind the dictionary.
    fn data_start(&self) -> u64 {
        u64::try_from(self.chunk.data_page_offset()).unwrap_or(0).clamp(self.range.start, self.range.end)
    }

    /// Where the next read should stop to read ahead: at the end of the page that holds the last row in reach.
    fn useful_end(&self, from: u64, first_row: Option<u64>) -> u64 {
        let Some(reach) = self.reach.filter(|reach| *reach < self.rows) else {
            return self.range.end;
        };
        if let Some(index) = reach.checked_sub(1).and_then(|last| self.map.page_of(last)) {
            return self.map.pages[index].end();
        }
        // Not known yet: an estimate by the mean row, a little more, and the rest of the page that the last row is in.
        let rows = reach.saturating_sub(first_row.unwrap_or(0));
        let bytes = u128::from(rows) * u128::from(self.range.end - self.data_start()) * 9 / 8;
        let bytes = u64::try_from(bytes / u128::from(self.rows.max(1))).unwrap_or(u64::MAX);
        let page = self.map.pages.last().map_or(HEADER_GUESS, |last| last.length);
        from.saturating_add(bytes).saturating_add(page).min(self.range.end)
    }

    /// The data page with the given index, walking on as far as needed; `None` after the last one.
    fn known(&mut self, index: usize) -> Result<Option<PageSpot>, ColumnarError> {
        while index >= self.map.pages.len() && !self.map.complete {
            self.walk()?;
        }
        Ok(self.map.pages.get(index).copied())
    }

    /// Reads the header of the first unknown page.
    fn walk(&mut self) -> Result<(), ColumnarError> {
        let offset = self.map.walked_to;
        let promised = self.chunk.num_values() as u64;
        if self.map.values == promised {
            self.map.complete = true;
            return Ok(());
        }
        let page = self.map.pages.len();
        if offset >= self.range.end {
            let held = self.map.values;
            return Err(self.place.corrupt(None, format!("its pages hold {held} of {promised} values")));
        }
        // While rows are stepped over, only headers are wanted.
        let stepping = page > self.next;
        let useful_end = if stepping { offset } else { self.useful_end(offset, Some(0)) };
        let header = self.header(offset, useful_end, page)?;
        if offset + header.total() > self.range.end {
            return Err(self.place.corrupt(Some(page), format!("{} bytes reach beyond its chunk", header.total())));
        }
        let (values, rows) = match header.kind {
            PageKind::Other => {
                self.map.walked_to += header.total();
                return Ok(());
            }
            PageKind::Dictionary { .. } => {
                if page > 0 || self.map.dictionary != DictionaryPlace::Unknown {
                    return Err(self.place.corrupt(Some(page), "a second dictionary"));
                }
                self.map.dictionary = DictionaryPlace::At { offset, length: header.total() };
                self.map.walked_to += header.total();
                return Ok(());
            }
            PageKind::V1 { values, .. } => (values, self.flat.then_some(values)),
            PageKind::V2 { values, rows, .. } => (values, Some(rows)),
        };
        if self.map.dictionary == DictionaryPlace::Unknown {
            self.map.dictionary = DictionaryPlace::None;
        }
        if self.map.values + u64::from(values) > promised {
            return Err(self.place.corrupt(Some(page), format!("its pages hold more than {promised} values")));
        }
        if self.flat && rows != Some(values) {
            return Err(self.place.corrupt(Some(page), format!("it has {values} values but other rows")));
        }
        if values == 0 {
            // The Parquet crate takes an empty page for the end of the chunk.
            self.map.walked_to += header.total();
            return Ok(());
        }
        self.map.push(header.total(), values, rows);
        Ok(())
    }

    /// Reads the page header at `offset`.
    fn header(&mut self, offset: u64, useful_end: u64, page: usize) -> Result<PageHeader, ColumnarError> {
        let mut length = HEADER_GUESS;
        // Pages of a chunk are mostly of one size: the whole page comes with its header.
        let expected = self.map.pages.last().map_or(0, |last| last.length + HEADER_GUESS);
        loop {
            let end = self.range.end.min(offset + length);
            let bytes = self.window.get_expecting(offset..end, useful_end, expected)?;
            match PageHeader::parse(&bytes) {
                Ok(header) => return Ok(header),
                Err(ThriftError::Short) if end < self.range.end && length < MAX_HEADER => length *= 8,
                Err(ThriftError::Short) => {
                    return Err(self.place.corrupt(Some(page), "its header leads beyond its chunk"));
                }
                Err(ThriftError::Bad(detail)) => return Err(self.place.corrupt(Some(page), detail)),
            }
        }
    }

    /// Reads and decompresses the page at `offset` of `length` bytes.
    fn load(
        &mut self,
        offset: u64,
        length: u64,
        useful_end: u64,
        page: Option<usize>,
    ) -> Result<(PageHeader, Page), ColumnarError> {
        let bytes = self.window.get(offset..offset + length, useful_end)?;
        let header = PageHeader::parse(&bytes).map_err(|error| {
            let detail = match error {
                ThriftError::Short => "its header leads beyond its end",
                ThriftError::Bad(detail) => detail,
            };
            self.place.corrupt(page, detail)
        })?;
        // A dictionary's place in an offset index is what lies before the first page, which may be more than it takes.
        if header.total() > length || page.is_some() && header.total() != length {
            return Err(self.place.corrupt(page, format!("its header claims {} of {length} bytes", header.total())));
        }
        if page.is_none() && !matches!(header.kind, PageKind::Dictionary { .. }) {
            return Err(self.place.corrupt(None, "what stands before its first page is no dictionary"));
        }
        let bytes = bytes.slice(..header.total() as usize);
        check_sizes(&self.chunk, &header).map_err(|detail| self.place.corrupt(page, detail))?;
        if let Some(expected) = header.crc {
            let found = checksum(CrcAlgorithm::Crc32IsoHdlc, &bytes[header.length as usize..]) as u32;
            if found != expected {
                let detail = format!("its CRC is {found:08x}, its header says {expected:08x}");
                return Err(self.place.corrupt(page, detail));
            }
        }
        let decoded = self.decompress(&header, bytes).map_err(|error| self.place.corrupt(page, error))?;
        Ok((header, decoded))
    }

    fn decompress(&mut self, header: &PageHeader, bytes: Bytes) -> Result<Page, String> {
        if unpack::knows(self.chunk.compression()) {
            let body = bytes.slice(header.length as usize..);
            return unpack::unpack(header, &body, self.chunk.compression());
        }
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => PageDecoder::new(&self.chunk).map_err(|error| error.to_string())?,
        };
        let page = decoder.decode(bytes).map_err(|error| error.to_string())?;
        self.decoder = Some(decoder);
        Ok(page)
    }

    /// What the values of the dictionary take, once [`Self::begin`] has read it. `None` without a dictionary of texts.
    pub(crate) fn dictionary_facts(&self) -> Option<DictionaryFacts> {
        let Some(Page::DictionaryPage { buf, num_values, .. }) = &self.dictionary else { return None };
        if self.chunk.column_type() != PhysicalType::BYTE_ARRAY || *num_values == 0 {
            return None;
        }
        let (mut at, mut longest, mut total) = (0_usize, 0_u64, 0_u64);
        for _ in 0..*num_values {
            let Some(length) = buf.get(at..at + 4) else { break };
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            longest = longest.max(u64::from(length));
            total += u64::from(length);
            at = at.saturating_add(4 + length as usize).min(buf.len());
        }
        Some(DictionaryFacts { mean: total / u64::from(*num_values), longest })
    }

    /// Reads the dictionary, if there is one; reading goes on at `goes_on`.
    fn prepare_dictionary(&mut self, goes_on: u64) -> Result<(), ColumnarError> {
        if self.dictionary.is_some() {
            return Ok(());
        }
        while self.map.dictionary == DictionaryPlace::Unknown && !self.map.complete {
            self.walk()?;
        }
        let DictionaryPlace::At { offset, length } = self.map.dictionary else { return Ok(()) };
        // Read on only when what comes next is close; after a seek it may be far away.
        let end = offset + length;
        let far = goes_on.saturating_sub(end) > SMALL_GAP;
        let useful_end = if far { end } else { self.useful_end(end, Some(0)) };
        self.dictionary = Some(self.load(offset, length, useful_end, None)?.1);
        Ok(())
    }

    fn take_dictionary(&mut self) -> Result<Option<Page>, ColumnarError> {
        if !self.dictionary_due {
            return Ok(None);
        }
        self.prepare_dictionary(self.range.start)?;
        self.dictionary_due = false;
        Ok(self.dictionary.take())
    }

    /// Data pages handed over since [`Self::begin`], counted from the first page of the chunk.
    pub(crate) fn pages_handed(&self) -> usize {
        self.next
    }

    /// The dictionary if it is due, else the next data page; `None` after the last one or where [`Self::resume`] ends.
    pub(crate) fn next_page(&mut self) -> Result<Option<Page>, ColumnarError> {
        if let Some(page) = self.take_dictionary()? {
            return Ok(Some(page));
        }
        let enough = self.handed >= self.pause_after.max(1) || self.flat && self.next_row() >= self.until_row;
        if self.handed > 0 && enough {
            return Ok(None);
        }
        let index = self.next;
        let Some(spot) = self.known(index)? else { return Ok(None) };
        let useful_end = self.useful_end(spot.offset, spot.first_row);
        let (header, page) = self.load(spot.offset, spot.length, useful_end, Some(index))?;
        let (values, rows) = match header.kind {
            PageKind::V1 { values, .. } => (values, self.flat.then_some(values)),
            PageKind::V2 { values, rows, .. } => (values, Some(rows)),
            PageKind::Dictionary { .. } | PageKind::Other => {
                return Err(self.place.corrupt(Some(index), "it is no data page"));
            }
        };
        let disagrees = |known: Option<u32>, found: Option<u32>| matches!((known, found), (Some(a), Some(b)) if a != b);
        if disagrees(spot.values, Some(values)) || disagrees(spot.rows, rows) {
            return Err(self.place.corrupt(Some(index), "its header and the offset index disagree on its rows"));
        }
        self.next += 1;
        self.handed = self.handed.saturating_add(u64::from(header.uncompressed).max(1));
        Ok(Some(page))
    }

    fn peek(&mut self) -> Result<Option<PageMetadata>, ColumnarError> {
        if self.dictionary_due {
            self.prepare_dictionary(self.range.start)?;
            if self.dictionary.is_some() {
                return Ok(Some(PageMetadata { num_rows: None, num_levels: None, is_dict: true }));
            }
            self.dictionary_due = false;
        }
        Ok(self.known(self.next)?.map(|spot| PageMetadata {
            num_rows: spot.rows.map(|rows| rows as usize),
            num_levels: spot.values.map(|values| values as usize),
            is_dict: false,
        }))
    }

    fn fail<T>(&mut self, result: Result<T, ColumnarError>) -> ParquetResult<T> {
        result.map_err(|error| {
            let text = ParquetError::General(error.to_string());
            self.failure = Some(error);
            text
        })
    }
}

/// Checks the sizes by which the Parquet crate would allocate and slice.
pub(crate) fn check_sizes(chunk: &ColumnChunkMetaData, header: &PageHeader) -> Result<(), String> {
    let total = |levels: [u32; 2]| u64::from(levels[0]) + u64::from(levels[1]);
    let uncompressed = u64::from(header.uncompressed);
    let bytes = chunk.uncompressed_size() as u64;
    let plain = chunk.compression() == Compression::UNCOMPRESSED;
    if uncompressed > bytes.saturating_mul(2).saturating_add(SIZE_SLACK) {
        return Err(format!("it claims {uncompressed} bytes in a chunk of {bytes} bytes"));
    }
    if plain && header.compressed != header.uncompressed {
        return Err(format!("it claims {} and {uncompressed} bytes without compression", header.compressed));
    }
    match header.kind {
        PageKind::V2 { levels, .. } if total(levels) > uncompressed || total(levels) > u64::from(header.compressed) => {
            Err(format!("it claims {} bytes of levels in {uncompressed} bytes", total(levels)))
        }
        PageKind::Dictionary { values, .. } if u64::from(values) * least_width(chunk) > uncompressed => {
            Err(format!("it claims {values} entries in {uncompressed} bytes"))
        }
        _ => Ok(()),
    }
}

/// Least bytes of a dictionary entry.
fn least_width(chunk: &ColumnChunkMetaData) -> u64 {
    match chunk.column_type() {
        PhysicalType::BOOLEAN => 0,
        PhysicalType::INT32 | PhysicalType::FLOAT | PhysicalType::BYTE_ARRAY => 4,
        PhysicalType::INT64 | PhysicalType::DOUBLE => 8,
        PhysicalType::INT96 => 12,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => u64::try_from(chunk.column_descr().type_length()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests;
