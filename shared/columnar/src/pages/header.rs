//! The header in front of each page (parquet-format, `PageHeader`), read by hand: the Parquet crate gives neither
//! lengths nor checksums, and trusts the sizes that it finds.

use crate::thrift::{Compact, Kind, ThriftError};

/// What a page is and how many values it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// The chunk's dictionary.
    Dictionary {
        /// Entries.
        values: u32,
    },
    /// A data page of version 1: it counts values, never rows.
    V1 {
        /// Values, nulls included.
        values: u32,
    },
    /// A data page of version 2.
    V2 {
        /// Values, nulls included.
        values: u32,
        /// Rows that begin in the page.
        rows: u32,
        /// Length of the repetition and definition levels, which are never compressed.
        levels: u64,
    },
    /// An index page or a kind that a later version of the format may add: to be stepped over.
    Other,
}

/// A page header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageHeader {
    pub(crate) kind: PageKind,
    /// Length of the header itself.
    pub(crate) length: u32,
    /// Length of the body as it stands in the file.
    pub(crate) compressed: u32,
    /// Length of the body once decompressed.
    pub(crate) uncompressed: u32,
    /// CRC-32 of the body as it stands in the file.
    pub(crate) crc: Option<u32>,
}

impl PageHeader {
    /// Reads the header at the start of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ThriftError> {
        let mut compact = Compact::new(bytes);
        let (mut page_type, mut compressed, mut uncompressed, mut crc) = (None, None, None, None);
        let (mut v1, mut v2, mut dictionary) = (None, None, None);
        let mut last = 0;
        while let Some((id, kind)) = compact.field(&mut last)? {
            match (id, kind) {
                (1, Kind::I32) => page_type = Some(compact.i32()?),
                (2, Kind::I32) => uncompressed = Some(compact.size()?),
                (3, Kind::I32) => compressed = Some(compact.size()?),
                (4, Kind::I32) => crc = Some(compact.i32()? as u32),
                (5, Kind::Struct) => v1 = Some(counts(&mut compact, &[1])?),
                (7, Kind::Struct) => dictionary = Some(counts(&mut compact, &[1])?),
                (8, Kind::Struct) => v2 = Some(counts(&mut compact, &[1, 3, 5, 6])?),
                (_, other) => compact.skip(other)?,
            }
        }
        let kind = match (page_type, v1, dictionary, v2) {
            (Some(0), Some([values, ..]), ..) => PageKind::V1 { values },
            (Some(2), _, Some([values, ..]), _) => PageKind::Dictionary { values },
            (Some(3), .., Some([values, rows, definition, repetition])) => {
                PageKind::V2 { values, rows, levels: u64::from(definition) + u64::from(repetition) }
            }
            (Some(0 | 2 | 3), ..) => return Err(ThriftError::Bad("a page header without its counts")),
            (Some(_), ..) => PageKind::Other,
            (None, ..) => return Err(ThriftError::Bad("a page header without a type")),
        };
        let (Some(compressed), Some(uncompressed)) = (compressed, uncompressed) else {
            return Err(ThriftError::Bad("a page header without sizes"));
        };
        let length =
            u32::try_from(compact.position()).map_err(|_| ThriftError::Bad("a page header that is too long"))?;
        Ok(Self { kind, length, compressed, uncompressed, crc })
    }

    /// Length of header and body.
    pub(crate) fn total(&self) -> u64 {
        u64::from(self.length) + u64::from(self.compressed)
    }
}

/// The sizes with the given field ids of a struct, all of which must be there.
fn counts(compact: &mut Compact<'_>, ids: &[i16]) -> Result<[u32; 4], ThriftError> {
    let mut found = [None; 4];
    let mut last = 0;
    while let Some((id, kind)) = compact.field(&mut last)? {
        match ids.iter().position(|wanted| *wanted == id) {
            Some(slot) if kind == Kind::I32 => found[slot] = Some(compact.size()?),
            _ => compact.skip(kind)?,
        }
    }
    let mut sizes = [0; 4];
    for (slot, size) in sizes.iter_mut().enumerate().take(ids.len()) {
        *size = found[slot].ok_or(ThriftError::Bad("a page header without its counts"))?;
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// type 0, uncompressed 10, compressed 8, crc -1, data page header {5 values, encoding 0, levels 3 and 3}.
    const V1: [u8; 21] =
        [0x15, 0, 0x15, 20, 0x15, 16, 0x15, 1, 0x1c, 0x15, 10, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0, 0xaa, 0xaa];

    #[test]
    fn a_page_of_version_one() {
        let header = PageHeader::parse(&V1).unwrap();
        assert_eq!(
            header,
            PageHeader {
                kind: PageKind::V1 { values: 5 },
                length: 19,
                compressed: 8,
                uncompressed: 10,
                crc: Some(u32::MAX)
            }
        );
        assert_eq!(header.total(), 27);
        for cut in 0..19 {
            assert_eq!(PageHeader::parse(&V1[..cut]), Err(ThriftError::Short), "{cut}");
        }
    }

    #[test]
    fn a_page_of_version_two_and_a_dictionary() {
        let v2 = [0x15, 6, 0x15, 20, 0x15, 16, 0x5c, 0x15, 10, 0x15, 2, 0x15, 8, 0x15, 0, 0x15, 4, 0x15, 6, 0x11, 0, 0];
        assert_eq!(PageHeader::parse(&v2).unwrap().kind, PageKind::V2 { values: 5, rows: 4, levels: 5 });
        let dictionary = [0x15, 4, 0x15, 20, 0x15, 16, 0x4c, 0x15, 14, 0x15, 0, 0, 0];
        assert_eq!(PageHeader::parse(&dictionary).unwrap().kind, PageKind::Dictionary { values: 7 });
        let index = [0x15, 2, 0x15, 20, 0x15, 16, 0x3c, 0, 0];
        assert_eq!(PageHeader::parse(&index).unwrap().kind, PageKind::Other);
    }

    #[test]
    fn missing_parts_are_damage() {
        for bytes in [
            &[0x00][..],                                   // nothing
            &[0x15, 0, 0x00],                              // no sizes
            &[0x15, 0, 0x15, 20, 0x15, 16, 0x00],          // no data page header
            &[0x15, 0, 0x15, 1, 0x15, 16, 0x00],           // a negative size
            &[0x15, 0, 0x15, 20, 0x15, 16, 0x2c, 0, 0x00], // an empty data page header
        ] {
            assert!(matches!(PageHeader::parse(bytes), Err(ThriftError::Bad(_))), "{bytes:?}");
        }
    }
}
