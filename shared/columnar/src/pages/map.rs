//! What is known of the pages of one column chunk: learned as they go by, or from the offset index.

use crate::thrift::{Compact, Kind, ThriftError};

/// Where the dictionary of a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DictionaryPlace {
    /// The first page has not been looked at.
    Unknown,
    /// The chunk has none.
    None,
    /// It has one, header included.
    At { offset: u64, length: u64 },
}

/// One data page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageSpot {
    /// Where its header begins in the file.
    pub(crate) offset: u64,
    /// Length of header and body.
    pub(crate) length: u64,
    /// Values, nulls included; unknown when the place comes from an offset index.
    pub(crate) values: Option<u32>,
    /// Rows; unknown for version 1 pages of a column with repetition.
    pub(crate) rows: Option<u32>,
    /// First row within the row group; known when the rows of all pages before are.
    pub(crate) first_row: Option<u64>,
}

impl PageSpot {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// The row after the page's last one.
    pub(crate) fn end_row(&self) -> Option<u64> {
        Some(self.first_row? + u64::from(self.rows?))
    }
}

/// The pages of a chunk as far as they are known, in file order.
#[derive(Debug, Clone)]
pub(crate) struct PageMap {
    pub(crate) dictionary: DictionaryPlace,
    pub(crate) pages: Vec<PageSpot>,
    /// Where the first unknown page begins.
    pub(crate) walked_to: u64,
    /// Values of the known pages.
    pub(crate) values: u64,
    /// True when no page is unknown.
    pub(crate) complete: bool,
}

impl PageMap {
    /// Nothing is known but where the chunk begins.
    pub(crate) fn empty(chunk_start: u64) -> Self {
        Self {
            dictionary: DictionaryPlace::Unknown,
            pages: Vec::new(),
            walked_to: chunk_start,
            values: 0,
            complete: false,
        }
    }

    /// Adds the page at `walked_to`.
    pub(crate) fn push(&mut self, length: u64, values: u32, rows: Option<u32>) {
        let first_row = match self.pages.last() {
            None => Some(0),
            Some(last) => last.end_row(),
        };
        self.pages.push(PageSpot { offset: self.walked_to, length, values: Some(values), rows, first_row });
        self.walked_to += length;
        self.values += u64::from(values);
    }

    /// The known page that holds `row`.
    pub(crate) fn page_of(&self, row: u64) -> Option<usize> {
        let after = self.pages.partition_point(|page| page.first_row.is_some_and(|first| first <= row));
        let index = after.checked_sub(1)?;
        let page = &self.pages[index];
        page.end_row().is_some_and(|end| row < end).then_some(index)
    }

    /// Reads an offset index (parquet-format, `OffsetIndex`) for the chunk at `chunk_start..chunk_end` of `rows` rows.
    ///
    /// `None` when it is not plausible: pages out of order, outside the chunk, or without rows. The chunk is then walked
    /// page by page, which needs no index.
    pub(crate) fn from_offset_index(bytes: &[u8], chunk_start: u64, chunk_end: u64, rows: u64) -> Option<Self> {
        let places = parse_offset_index(bytes).ok()?;
        let mut pages: Vec<PageSpot> = Vec::with_capacity(places.len());
        for (index, (offset, length, first_row)) in places.iter().enumerate() {
            let end_row = places.get(index + 1).map_or(rows, |next| next.2);
            let rows = u32::try_from(end_row.checked_sub(*first_row)?).ok().filter(|rows| *rows > 0)?;
            let follows = match pages.last() {
                None => *offset >= chunk_start && *first_row == 0,
                Some(last) => *offset >= last.end(),
            };
            if !follows || *length == 0 || offset.checked_add(*length)? > chunk_end {
                return None;
            }
            pages.push(PageSpot {
                offset: *offset,
                length: *length,
                values: None,
                rows: Some(rows),
                first_row: Some(*first_row),
            });
        }
        let first = pages.first()?.offset;
        let dictionary = if first == chunk_start {
            DictionaryPlace::None
        } else {
            DictionaryPlace::At { offset: chunk_start, length: first - chunk_start }
        };
        Some(Self { dictionary, walked_to: chunk_end, pages, values: 0, complete: true })
    }
}

/// Offset, length and first row of each page.
fn parse_offset_index(bytes: &[u8]) -> Result<Vec<(u64, u64, u64)>, ThriftError> {
    let mut compact = Compact::new(bytes);
    let mut places = Vec::new();
    let mut last = 0;
    while let Some((id, kind)) = compact.field(&mut last)? {
        if (id, kind) != (1, Kind::List) {
            compact.skip(kind)?;
            continue;
        }
        let (count, element) = compact.list()?;
        if element != Kind::Struct {
            return Err(ThriftError::Bad("an offset index without page locations"));
        }
        for _ in 0..count {
            places.push(parse_page_location(&mut compact)?);
        }
    }
    Ok(places)
}

fn parse_page_location(compact: &mut Compact<'_>) -> Result<(u64, u64, u64), ThriftError> {
    let mut found = [None; 3];
    let mut last = 0;
    while let Some((id, kind)) = compact.field(&mut last)? {
        match (id, kind) {
            (1, Kind::I64) => found[0] = Some(compact.i64()?),
            (2, Kind::I32) => found[1] = Some(compact.i64()?),
            (3, Kind::I64) => found[2] = Some(compact.i64()?),
            (_, other) => compact.skip(other)?,
        }
    }
    let size = |value: Option<i64>| {
        value.and_then(|value| u64::try_from(value).ok()).ok_or(ThriftError::Bad("a page location without its numbers"))
    };
    Ok((size(found[0])?, size(found[1])?, size(found[2])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zigzag(value: i64, out: &mut Vec<u8>) {
        let mut raw = ((value << 1) ^ (value >> 63)) as u64;
        while raw >= 0x80 {
            out.push(raw as u8 | 0x80);
            raw >>= 7;
        }
        out.push(raw as u8);
    }

    fn index(places: &[(i64, i64, i64)]) -> Vec<u8> {
        let mut out = vec![0x19, (places.len() as u8) << 4 | 0x0c];
        for (offset, length, first_row) in places {
            out.push(0x16);
            zigzag(*offset, &mut out);
            out.push(0x15);
            zigzag(*length, &mut out);
            out.push(0x16);
            zigzag(*first_row, &mut out);
            out.push(0);
        }
        out.push(0);
        out
    }

    #[test]
    fn an_offset_index_gives_rows_and_the_dictionary() {
        let map = PageMap::from_offset_index(&index(&[(120, 30, 0), (150, 50, 1000)]), 100, 200, 1500).unwrap();
        assert_eq!(map.dictionary, DictionaryPlace::At { offset: 100, length: 20 });
        assert_eq!(map.pages.len(), 2);
        assert_eq!((map.pages[1].first_row, map.pages[1].rows), (Some(1000), Some(500)));
        assert_eq!(map.page_of(0), Some(0));
        assert_eq!(map.page_of(999), Some(0));
        assert_eq!(map.page_of(1000), Some(1));
        assert_eq!(map.page_of(1500), None);
    }

    #[test]
    fn an_implausible_offset_index_is_not_used() {
        for places in [
            &[][..],
            &[(90, 30, 0)],                  // before the chunk
            &[(120, 90, 0)],                 // beyond the chunk
            &[(120, 30, 1)],                 // does not begin with row 0
            &[(120, 30, 0), (140, 20, 10)],  // overlapping
            &[(120, 30, 0), (150, 20, 0)],   // a page without rows
            &[(120, 30, 0), (150, 20, 100)], // more rows than the group
            &[(120, 0, 0)],                  // no bytes
            &[(-120, 30, 0)],
        ] {
            assert!(PageMap::from_offset_index(&index(places), 100, 200, 100).is_none(), "{places:?}");
        }
        assert!(PageMap::from_offset_index(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0x07], 100, 200, 100).is_none());
    }

    #[test]
    fn rows_are_known_until_a_page_does_not_say() {
        let mut map = PageMap::empty(100);
        map.push(10, 5, Some(5));
        map.push(10, 7, Some(7));
        assert_eq!((map.page_of(4), map.page_of(5), map.page_of(12)), (Some(0), Some(1), None));
        map.push(10, 3, None);
        map.push(10, 3, Some(1));
        assert_eq!(map.pages[2].first_row, Some(12));
        assert_eq!(map.pages[3].first_row, None);
        assert_eq!((map.walked_to, map.values, map.page_of(12)), (140, 18, None));
    }
}
