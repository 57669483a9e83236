//! The table's codec (parquet-format, "Compression").

use std::io::Write;

use flate2::write::GzEncoder;
use parquet::errors::ParquetError;

use crate::writer::Codec;

/// A compressor that is kept from chunk to chunk: making one takes a megabyte of fresh memory.
#[derive(Default)]
pub(super) struct Kept(Option<(Codec, Compressor)>);

impl Kept {
    /// The compressor of `codec`.
    pub(super) fn take(&mut self, codec: Codec) -> Result<Compressor, ParquetError> {
        match self.0.take() {
            Some((kept, compressor)) if kept == codec => Ok(compressor),
            _ => Compressor::new(codec),
        }
    }

    /// Keeps it for the next chunk.
    pub(super) fn give_back(&mut self, codec: Codec, compressor: Compressor) {
        self.0 = Some((codec, compressor));
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kept").field(&self.0.as_ref().map(|(codec, _)| codec)).finish()
    }
}

/// Compresses page by page; keeps its memory between pages.
pub(super) enum Compressor {
    None,
    Zstd(Box<zstd::bulk::Compressor<'static>>),
    Snappy(Box<snap::raw::Encoder>),
    Gzip(u32),
    Lz4,
}

impl Compressor {
    pub(super) fn new(codec: Codec) -> Result<Compressor, ParquetError> {
        Ok(match codec {
            Codec::Uncompressed => Compressor::None,
            Codec::Zstd(level) => Compressor::Zstd(Box::new(zstd::bulk::Compressor::new(level).map_err(failed)?)),
            Codec::Snappy => Compressor::Snappy(Box::new(snap::raw::Encoder::new())),
            Codec::Gzip(level) => Compressor::Gzip(level),
            Codec::Lz4 => Compressor::Lz4,
        })
    }

    /// Appends `bytes`, compressed; returns how many bytes were appended.
    pub(super) fn append(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, ParquetError> {
        let start = out.len();
        match self {
            Compressor::None => out.extend_from_slice(bytes),
            Compressor::Zstd(zstd) => {
                out.resize(start + zstd::zstd_safe::compress_bound(bytes.len()), 0);
                let length = zstd.compress_to_buffer(bytes, &mut out[start..]).map_err(failed)?;
                out.truncate(start + length);
            }
            Compressor::Snappy(snappy) => {
                out.resize(start + snap::raw::max_compress_len(bytes.len()), 0);
                let length = snappy
                    .compress(bytes, &mut out[start..])
                    .map_err(|error| ParquetError::General(format!("snappy: {error}")))?;
                out.truncate(start + length);
            }
            Compressor::Gzip(level) => {
                let mut encoder = GzEncoder::new(&mut *out, flate2::Compression::new(*level));
                encoder.write_all(bytes).map_err(failed)?;
                encoder.finish().map_err(failed)?;
            }
            Compressor::Lz4 => {
                out.resize(start + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
                let length = lz4_flex::block::compress_into(bytes, &mut out[start..])
                    .map_err(|error| ParquetError::General(format!("lz4: {error}")))?;
                out.truncate(start + length);
            }
        }
        Ok(out.len() - start)
    }
}

fn failed(error: std::io::Error) -> ParquetError {
    ParquetError::General(format!("a page cannot be compressed: {error}"))
}
