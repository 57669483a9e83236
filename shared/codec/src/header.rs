//! Page headers.

use crate::varint;

/// How the values of a page are encoded; the numbers are those of parquet-format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// Values as they are.
    Plain = 0,
    /// Booleans as an RLE hybrid.
    Rle = 3,
    /// Integers as differences.
    DeltaBinaryPacked = 5,
    /// Byte strings, their lengths as differences.
    DeltaLengthByteArray = 6,
    /// Byte strings, each by what it does not share with the one before.
    DeltaByteArray = 7,
    /// Indices into the dictionary page.
    RleDictionary = 8,
    /// The bytes of values by their place.
    ByteStreamSplit = 9,
}

/// What the headers of all kinds of pages say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFacts {
    /// Bytes of the page, levels included and the header not, before compression.
    pub uncompressed: i32,
    /// And after it.
    pub compressed: i32,
    /// Values, nulls included.
    pub count: i32,
    /// CRC-32 of the page as it is stored (compressed, without the header), if one is to be written.
    pub crc: Option<u32>,
}

/// Field numbers and types of the struct `PageHeader`.
mod page {
    pub(super) const DATA: i64 = 0;
    pub(super) const DICTIONARY: i64 = 2;
}

/// Appends the header of a dictionary page of PLAIN values; `sorted` says that they are in ascending order.
pub fn write_dictionary(facts: PageFacts, sorted: bool, out: &mut Vec<u8>) {
    let last = common(page::DICTIONARY, facts, out);
    // Field 7, a struct: number of values, encoding, whether sorted.
    out.push((7 - last) << 4 | 0x0c);
    number(1, i64::from(facts.count), out);
    number(1, Encoding::Plain as i64, out);
    out.push(if sorted { 0x11 } else { 0x12 });
    out.extend_from_slice(&[0, 0]);
}

/// Appends the header of a data page v1 whose levels, if it has any, are RLE.
pub fn write_data(facts: PageFacts, encoding: Encoding, out: &mut Vec<u8>) {
    let last = common(page::DATA, facts, out);
    // Field 5, a struct: number of values, encoding, encodings of definition and repetition levels.
    out.push((5 - last) << 4 | 0x0c);
    number(1, i64::from(facts.count), out);
    number(1, encoding as i64, out);
    number(1, Encoding::Rle as i64, out);
    number(1, Encoding::Rle as i64, out);
    out.extend_from_slice(&[0, 0]);
}

/// Type, sizes and checksum: fields 1 to 4. Returns the number of the last field written.
fn common(kind: i64, facts: PageFacts, out: &mut Vec<u8>) -> u8 {
    number(1, kind, out);
    number(1, i64::from(facts.uncompressed), out);
    number(1, i64::from(facts.compressed), out);
    match facts.crc {
        Some(crc) => {
            // Thrift has no unsigned numbers: the same 32 bits, read as signed.
            number(1, i64::from(crc as i32), out);
            4
        }
        None => 3,
    }
}

/// An i32 field (compact protocol: 4 bits of distance from the field before, 4 bits of type).
fn number(distance: u8, value: i64, out: &mut Vec<u8>) {
    out.push(distance << 4 | 0x05);
    varint::write_signed(value, out);
}
