//! A zip file that is the same bytes for the same content: fixed times, the order of the entries, one level of compression.
//!
//! PKWARE's APPNOTE.TXT 6.3; sections are named below. No ZIP64: a package is far below 4 GB and 65,535 entries.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::Entry;

/// 1980-01-01 00:00:00, the beginning of MS-DOS time (4.4.6).
const DATE: u16 = 0x21;
const TIME: u16 = 0;
/// Names are UTF-8 (4.4.4, bit 11).
const FLAGS: u16 = 1 << 11;
const DEFLATE: u16 = 8;
/// 2.0: what reads deflate (4.4.3).
const NEEDED: u16 = 20;
/// Made on UNIX (4.4.2): the mode in the upper half of the external attributes counts, and with it the execute bit.
const MADE_BY: u16 = 3 << 8 | NEEDED;
const REGULAR_FILE: u32 = 0o100_000;

/// The zip file of these entries, in their order.
///
/// # Errors
/// A sentence: more than the format without ZIP64 can hold.
pub(crate) fn archive(entries: &[Entry]) -> Result<Vec<u8>, String> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let packed = deflated(&entry.bytes).map_err(|error| format!("{}: {error}", entry.name))?;
        let header = Header {
            offset: size(out.len())?,
            crc: crc(&entry.bytes),
            packed: size(packed.len())?,
            unpacked: size(entry.bytes.len())?,
            name: &entry.name,
            mode: REGULAR_FILE | if entry.executable { 0o755 } else { 0o644 },
        };
        header.local(&mut out)?;
        out.extend_from_slice(&packed);
        header.central(&mut directory)?;
    }
    // End of central directory record (4.3.16).
    let (start, length, count) = (size(out.len())?, size(directory.len())?, short(entries.len())?);
    out.append(&mut directory);
    out.extend_from_slice(b"PK\x05\x06");
    for number in [0, 0, count, count] {
        out.extend_from_slice(&u16::to_le_bytes(number));
    }
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    Ok(out)
}

struct Header<'a> {
    offset: u32,
    crc: u32,
    packed: u32,
    unpacked: u32,
    name: &'a str,
    mode: u32,
}

impl Header<'_> {
    /// Local file header (4.3.7).
    fn local(&self, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend_from_slice(b"PK\x03\x04");
        self.common(out)?;
        out.extend_from_slice(self.name.as_bytes());
        Ok(())
    }

    /// Central directory header (4.3.12).
    fn central(&self, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend_from_slice(b"PK\x01\x02");
        out.extend_from_slice(&MADE_BY.to_le_bytes());
        self.common(out)?;
        // Comment, disk, internal attributes: none.
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&(self.mode << 16).to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
        Ok(())
    }

    /// The fields from "version needed" to "extra field length", which both have.
    fn common(&self, out: &mut Vec<u8>) -> Result<(), String> {
        for number in [NEEDED, FLAGS, DEFLATE, TIME, DATE] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.crc, self.packed, self.unpacked] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [short(self.name.len())?, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        Ok(())
    }
}

fn deflated(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn size(bytes: usize) -> Result<u32, String> {
    let fits = u32::try_from(bytes).ok().filter(|size| *size != u32::MAX);
    fits.ok_or_else(|| format!("{bytes} bytes are more than a package can hold; is this the handler?"))
}

fn short(number: usize) -> Result<u16, String> {
    let fits = u16::try_from(number).ok().filter(|short| *short != u16::MAX);
    fits.ok_or_else(|| format!("{number} is more than a package can hold of names or their letters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        let entry = |name: &str, bytes: &[u8], executable| Entry { name: name.into(), bytes: bytes.into(), executable };
        vec![entry("handler", &[7; 100_000], true), entry("host.json", b"{}", false), entry("é", b"", false)]
    }

    #[test]
    fn the_same_content_is_the_same_bytes() {
        let bytes = archive(&entries()).unwrap();
        assert_eq!(bytes, archive(&entries()).unwrap());
        assert!(bytes.len() < 1_000, "compressed: {}", bytes.len());
    }

    #[test]
    fn records_stand_where_readers_look_for_them() {
        let bytes = archive(&entries()).unwrap();
        let end = bytes.len() - 22;
        assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
        assert_eq!(u16::from_le_bytes([bytes[end + 10], bytes[end + 11]]), 3);
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let central = four(end + 16);
        assert_eq!(central + four(end + 12), end);
        assert_eq!(&bytes[central..central + 4], b"PK\x01\x02");
        assert_eq!(four(central + 38) >> 16, 0o100_755, "the execute bit");
        assert_eq!(&bytes[central + 46..central + 53], b"handler");
        assert_eq!(&bytes[..4], b"PK\x03\x04");
    }
}
