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
        /// How they are encoded, as a number of parquet-format.
        encoding: u32,
    },
    /// A data page of version 1: it counts values, never rows.
    V1 {
        /// Values, nulls included.
        values: u32,
        /// How the values, the definition levels and the repetition levels are encoded.
        encodings: [u32; 3],
    },
    /// A data page of version 2.
    V2 {
        /// Values, nulls included.
        values: u32,
        /// Nulls.
        nulls: u32,
        /// Rows that begin in the page.
        rows: u32,
        /// How the values are encoded.
        encoding: u32,
        /// Length of the definition levels, and of the repetition levels; neither is ever compressed.
        levels: [u32; 2],
        /// The values are compressed.
        compressed: bool,
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
                (5, Kind::Struct) => v1 = Some(numbers(&mut compact, &[1, 2, 3, 4], None)?.0),
                (7, Kind::Struct) => dictionary = Some(numbers(&mut compact, &[1, 2], None)?.0),
                (8, Kind::Struct) => v2 = Some(numbers(&mut compact, &[1, 2, 3, 4, 5, 6], Some(7))?),
                (_, other) => compact.skip(other)?,
            }
        }
        let kind = match (page_type, v1, dictionary, v2) {
            (Some(0), Some([values, encoding, definition, repetition, ..]), ..) => {
                PageKind::V1 { values, encodings: [encoding, definition, repetition] }
            }
            (Some(2), _, Some([values, encoding, ..]), _) => PageKind::Dictionary { values, encoding },
            (Some(3), .., Some(([values, nulls, rows, encoding, definition, repetition], compressed))) => {
                PageKind::V2 {
                    values,
                    nulls,
                    rows,
                    encoding,
                    levels: [definition, repetition],
                    compressed: compressed.unwrap_or(true),
                }
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

/// The numbers with the given field ids of a struct, all of which must be there, and the flag with the id `flag`, which need not.
fn numbers(compact: &mut Compact<'_>, ids: &[i16], flag: Option<i16>) -> Result<([u32; 6], Option<bool>), ThriftError> {
    let mut found = [None; 6];
    let mut set = None;
    let mut last = 0;
    while let Some((id, kind)) = compact.field(&mut last)? {
        match (ids.iter().position(|wanted| *wanted == id), kind) {
            (Some(slot), Kind::I32) => found[slot] = Some(compact.size()?),
            // A flag is told by its type.
            (None, Kind::True | Kind::False) if Some(id) == flag => set = Some(kind == Kind::True),
            _ => compact.skip(kind)?,
        }
    }
    let mut sizes = [0; 6];
    for (slot, size) in sizes.iter_mut().enumerate().take(ids.len()) {
        *size = found[slot].ok_or(ThriftError::Bad("a page header without its counts"))?;
    }
    Ok((sizes, set))
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
                kind: PageKind::V1 { values: 5, encodings: [0, 3, 3] },
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
        let kind = PageKind::V2 { values: 5, nulls: 1, rows: 4, encoding: 0, levels: [2, 3], compressed: true };
        assert_eq!(PageHeader::parse(&v2).unwrap().kind, kind);
        let plain = v2.map(|byte| if byte == 0x11 { 0x12 } else { byte });
        let PageKind::V2 { compressed, .. } = PageHeader::parse(&plain).unwrap().kind else {
            panic!("no page of version 2")
        };
        assert!(!compressed);
        let dictionary = [0x15, 4, 0x15, 20, 0x15, 16, 0x4c, 0x15, 14, 0x15, 0, 0, 0];
        assert_eq!(PageHeader::parse(&dictionary).unwrap().kind, PageKind::Dictionary { values: 7, encoding: 0 });
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
