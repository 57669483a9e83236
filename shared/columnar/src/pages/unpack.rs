//! Turns the bytes of one page into a decompressed page.
//!
//! The Parquet crate's own page reader keeps a codec for every open chunk, and a zstd codec holds 160 KiB: hundreds of open readers would spend
//! most of their memory on it. Here each thread has one.

use std::cell::RefCell;
use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::Page;

use super::header::{PageHeader, PageKind};

thread_local! {
    /// The thread's zstd decompressor.
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Whether [`unpack`] knows the codec.
pub(super) fn knows(compression: Compression) -> bool {
    matches!(
        compression,
        Compression::UNCOMPRESSED
            | Compression::ZSTD(_)
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::LZ4_RAW
    )
}

/// Decompresses the page whose header is `header` and whose body, as it stands in the file, is `body`.
///
/// # Errors
/// A sentence: what is wrong with the bytes.
pub(super) fn unpack(header: &PageHeader, body: &Bytes, compression: Compression) -> Result<Page, String> {
    let uncompressed = header.uncompressed as usize;
    match header.kind {
        PageKind::Dictionary { values, encoding } => Ok(Page::DictionaryPage {
            buf: decompressed(body, compression, uncompressed)?,
            num_values: values,
            encoding: encoding_of(encoding)?,
            is_sorted: false,
        }),
        PageKind::V1 { values, encodings: [encoding, definition, repetition] } => Ok(Page::DataPage {
            buf: decompressed(body, compression, uncompressed)?,
            num_values: values,
            encoding: encoding_of(encoding)?,
            def_level_encoding: encoding_of(definition)?,
            rep_level_encoding: encoding_of(repetition)?,
            statistics: None,
        }),
        PageKind::V2 { values, nulls, rows, encoding, levels: [definition, repetition], compressed } => {
            let levels = (definition as usize).saturating_add(repetition as usize);
            let (Some(start), Some(rest)) = (body.get(..levels), uncompressed.checked_sub(levels)) else {
                return Err("its levels are longer than the page".into());
            };
            let plain = !compressed || compression == Compression::UNCOMPRESSED;
            let buf = if plain {
                body.clone()
            } else {
                let values = body.slice(levels..);
                let mut whole = Vec::with_capacity(uncompressed);
                whole.extend_from_slice(start);
                // A page without values may have nothing to decompress.
                if rest > 0 {
                    append(&values, compression, rest, &mut whole)?;
                }
                whole.into()
            };
            Ok(Page::DataPageV2 {
                buf,
                num_values: values,
                encoding: encoding_of(encoding)?,
                num_nulls: nulls,
                num_rows: rows,
                def_levels_byte_len: definition,
                rep_levels_byte_len: repetition,
                is_compressed: compressed,
                statistics: None,
            })
        }
        PageKind::Other => Err("it is no page of values".into()),
    }
}

fn decompressed(body: &Bytes, compression: Compression, length: usize) -> Result<Bytes, String> {
    if compression == Compression::UNCOMPRESSED {
        return Ok(body.clone());
    }
    let mut out = Vec::with_capacity(length);
    if length > 0 {
        append(body, compression, length, &mut out)?;
    }
    Ok(out.into())
}

/// Appends what `body` holds, which must be `length` bytes.
fn append(body: &[u8], compression: Compression, length: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let start = out.len();
    let found = match compression {
        Compression::ZSTD(_) => {
            out.resize(start + length, 0);
            zstd(body, &mut out[start..])?
        }
        Compression::SNAPPY => {
            let found = snap::raw::decompress_len(body).map_err(|error| format!("snappy: {error}"))?;
            if found != length {
                return Err(differs(found, length));
            }
            out.resize(start + length, 0);
            snap::raw::Decoder::new().decompress(body, &mut out[start..]).map_err(|error| format!("snappy: {error}"))?
        }
        Compression::LZ4_RAW => {
            out.resize(start + length, 0);
            lz4_flex::block::decompress_into(body, &mut out[start..]).map_err(|error| format!("lz4: {error}"))?
        }
        Compression::GZIP(_) => {
            // One byte more would be seen, and no more than that is made.
            let mut limited = MultiGzDecoder::new(body).take(length as u64 + 1);
            limited.read_to_end(out).map_err(|error| format!("gzip: {error}"))?
        }
        other => return Err(format!("codec {other} is not known here")),
    };
    if found == length { Ok(()) } else { Err(differs(found, length)) }
}

fn zstd(body: &[u8], out: &mut [u8]) -> Result<usize, String> {
    ZSTD.with_borrow_mut(|held| {
        let decompressor = match held {
            Some(decompressor) => decompressor,
            None => held.insert(zstd::bulk::Decompressor::new().map_err(|error| format!("zstd: {error}"))?),
        };
        decompressor.decompress_to_buffer(body, out).map_err(|error| format!("zstd: {error}"))
    })
}

fn differs(found: usize, length: usize) -> String {
    format!("it holds {found} bytes where its header says {length}")
}

/// The encoding of this number in parquet-format.
fn encoding_of(number: u32) -> Result<Encoding, String> {
    #[allow(deprecated)]
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        other => return Err(format!("its encoding {other} is none of Parquet's")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(uncompressed: u32) -> PageHeader {
        let kind = PageKind::V1 { values: 5, encodings: [0, 3, 3] };
        PageHeader { kind, length: 0, compressed: 0, uncompressed, crc: None }
    }

    fn body_of(page: Page) -> Vec<u8> {
        page.buffer().to_vec()
    }

    #[test]
    fn every_codec_gives_back_what_was_packed_and_no_more() {
        let text = b"abcabcabcabcabcabcabcabc".repeat(9);
        let gzip = {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            std::io::Write::write_all(&mut encoder, &text).unwrap();
            encoder.finish().unwrap()
        };
        for (compression, packed) in [
            (Compression::UNCOMPRESSED, text.clone()),
            (Compression::ZSTD(Default::default()), zstd::bulk::compress(&text, 3).unwrap()),
            (Compression::SNAPPY, snap::raw::Encoder::new().compress_vec(&text).unwrap()),
            (Compression::GZIP(Default::default()), gzip),
            (Compression::LZ4_RAW, lz4_flex::block::compress(&text)),
        ] {
            assert!(knows(compression));
            let packed = Bytes::from(packed);
            let page = unpack(&header(text.len() as u32), &packed, compression).unwrap();
            assert_eq!(body_of(page), text, "{compression}");
            if compression != Compression::UNCOMPRESSED {
                for wrong in [text.len() as u32 - 1, text.len() as u32 + 1] {
                    assert!(unpack(&header(wrong), &packed, compression).is_err(), "{compression} {wrong}");
                }
                for cut in [0, 1, packed.len() / 2, packed.len() - 1] {
                    let damaged = unpack(&header(text.len() as u32), &packed.slice(..cut), compression);
                    assert!(damaged.is_err(), "{compression} cut at {cut}");
                }
            }
        }
        assert!(!knows(Compression::LZ4));
    }

    #[test]
    fn levels_of_version_two_are_never_compressed() {
        let values = zstd::bulk::compress(b"values", 3).unwrap();
        let body = Bytes::from([b"lev", values.as_slice()].concat());
        let kind = PageKind::V2 { values: 1, nulls: 0, rows: 1, encoding: 0, levels: [2, 1], compressed: true };
        let header = PageHeader { kind, length: 0, compressed: 0, uncompressed: 9, crc: None };
        let page = unpack(&header, &body, Compression::ZSTD(Default::default())).unwrap();
        assert_eq!(body_of(page), b"levvalues");
        let kind = PageKind::V2 { values: 1, nulls: 0, rows: 1, encoding: 0, levels: [200, 100], compressed: true };
        let header = PageHeader { kind, ..header };
        assert!(unpack(&header, &body, Compression::ZSTD(Default::default())).is_err());
    }
}
