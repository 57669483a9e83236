//! Pages, headers, indexes and metadata of one chunk.

use std::cmp::Ordering;

use bytes::Bytes;
use firn_codec::header::{self, PageFacts};
use firn_codec::hybrid;
use parquet::basic::{BoundaryOrder, Encoding, PageType};
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats};

use super::body::{Dictionary, Values};
use super::compress::{Compressor, Kept};
use super::plan::Plan;
use super::stats::{Bounds, Summary, cut, statistics};
use super::{ChunkSettings, too_large};
use crate::fast::kind::Kind;
use crate::writer::{BloomFilter, Codec};

/// A chunk that compression makes smaller by less than this part is not compressed: readers gain.
const LEAST_GAIN: f64 = 0.03;
/// Bytes that are compressed on trial.
const TRIAL_BYTES: usize = 16 << 10;

/// A chunk, as it will stand in the file.
#[derive(Debug)]
pub(crate) struct OwnChunk {
    pub(crate) bytes: Bytes,
    pub(crate) close: ColumnCloseResult,
    pub(crate) nans: u64,
}

/// Memory that is used again from chunk to chunk.
pub(super) struct Buffers<'a> {
    pub(super) compressor: &'a mut Kept,
    /// The page in work.
    pub(super) body: &'a mut Vec<u8>,
    /// Its levels, and the same page compressed.
    pub(super) compressed: &'a mut Vec<u8>,
}

/// Writes one chunk.
pub(super) struct ChunkBuilder<'a> {
    settings: &'a ChunkSettings,
    kind: Kind,
    plan: Plan,
    dictionary: Option<&'a Dictionary<'a>>,
    optional: bool,
    compressor: Compressor,
    /// Pages are compressed, if the table asks for it and it helps.
    compress: bool,
    kept: &'a mut Kept,
    out: Vec<u8>,
    /// Sizes of headers and bodies before compression.
    uncompressed: usize,
    /// The body of the page in work.
    body: &'a mut Vec<u8>,
    /// Levels, or the body compressed.
    levels: &'a mut Vec<u8>,
    summary: Summary,
    page_bounds: Vec<Option<Bounds>>,
    column_index: Option<ColumnIndexBuilder>,
    offset_index: OffsetIndexBuilder,
    nulls: u64,
    pages: i32,
}

/// Rows and values of one page.
struct PageSpan {
    rows: std::ops::Range<usize>,
    values: std::ops::Range<usize>,
}

impl<'a> ChunkBuilder<'a> {
    pub(super) fn new(
        settings: &'a ChunkSettings,
        kind: Kind,
        plan: Plan,
        dictionary: Option<&'a Dictionary<'a>>,
        buffers: &'a mut Buffers<'_>,
    ) -> Result<Self, ParquetError> {
        Ok(Self {
            settings,
            kind,
            plan,
            dictionary,
            optional: settings.descriptor.max_def_level() > 0,
            compressor: buffers.compressor.take(settings.codec)?,
            compress: true,
            kept: buffers.compressor,
            out: Vec::new(),
            uncompressed: 0,
            body: buffers.body,
            levels: buffers.compressed,
            summary: Summary::default(),
            page_bounds: Vec::new(),
            column_index: Some(ColumnIndexBuilder::new(kind.physical())),
            offset_index: OffsetIndexBuilder::new(),
            nulls: 0,
            pages: 0,
        })
    }

    pub(super) fn write(
        mut self,
        values: Values<'_>,
        rows: usize,
        present: Option<&[u8]>,
    ) -> Result<OwnChunk, ParquetError> {
        if present.is_some() && !self.optional {
            return Err(ParquetError::General("nulls in a required column".into()));
        }
        let (mut row, mut value) = (0, 0);
        let mut data_offset = None;
        while row < rows {
            let span = self.next_page(values, row..rows, value, present);
            self.fill_body(values, &span, present)?;
            if data_offset.is_none() {
                self.choose_codec(rows / span.rows.len())?;
                self.write_dictionary()?;
                data_offset = Some(self.out.len());
            }
            let before = self.out.len();
            self.write_page(values, &span)?;
            if row == 0 {
                // The other pages will be about as long: memory that grows again and again is copied and faulted in again and again.
                let pages = rows.div_ceil(span.rows.len().max(1));
                self.out.reserve_exact((self.out.len() - before) * pages.saturating_sub(1) * 17 / 16);
            }
            (row, value) = (span.rows.end, span.values.end);
        }
        self.finish(rows, values, data_offset.unwrap_or(0))
    }

    /// Rows of the next page, so that neither rows nor bytes are too many.
    fn next_page(
        &self,
        values: Values<'_>,
        left: std::ops::Range<usize>,
        value: usize,
        present: Option<&[u8]>,
    ) -> PageSpan {
        let most = self.settings.page_rows.min(left.len()).max(1);
        let rows = left.start..left.start + most;
        let Some(present) = present else {
            let fit = values.fitting(value, most, self.settings.page_bytes);
            return PageSpan { rows: rows.start..rows.start + fit, values: value..value + fit };
        };
        let count = |rows: &[u8]| rows.iter().map(|row| usize::from(*row)).sum::<usize>();
        let there = count(&present[rows.clone()]);
        let fit = if there == 0 { 0 } else { values.fitting(value, there, self.settings.page_bytes) };
        if fit >= there {
            return PageSpan { rows, values: value..value + there };
        }
        // The page ends behind the last value that fits.
        let mut seen = 0;
        let taken = present[rows.clone()].iter().take_while(|row| {
            seen += usize::from(**row);
            seen <= fit
        });
        let taken = taken.count();
        PageSpan { rows: rows.start..rows.start + taken, values: value..value + fit }
    }

    fn fill_body(&mut self, values: Values<'_>, span: &PageSpan, present: Option<&[u8]>) -> Result<(), ParquetError> {
        self.body.clear();
        if self.optional {
            // Levels stand behind their length (parquet-format, "Data pages").
            self.levels.clear();
            match present {
                Some(present) => hybrid::encode_levels(&present[span.rows.clone()], self.levels),
                None => hybrid::encode_all_present(span.rows.len(), self.levels),
            }
            self.body.extend_from_slice(&(self.levels.len() as u32).to_le_bytes());
            self.body.extend_from_slice(self.levels);
        }
        match self.dictionary {
            Some(dictionary) => dictionary.encode(span.values.clone(), self.body),
            None => values.encode(span.values.clone(), self.plan, self.body).map_err(too_large)?,
        }
        Ok(())
    }

    /// Compresses a part of the first page and of the dictionary on trial. `pages` tells about how many pages there will be.
    fn choose_codec(&mut self, pages: usize) -> Result<(), ParquetError> {
        if matches!(self.compressor, Compressor::None) {
            return Ok(());
        }
        let dictionary = self.dictionary.map_or(&[][..], Dictionary::page);
        let mut trial = Vec::new();
        let mut saved = 0.0;
        let mut total = 0.0;
        for (bytes, times) in [(self.body.as_slice(), pages.max(1)), (dictionary, 1)] {
            let sample = &bytes[..bytes.len().min(TRIAL_BYTES)];
            if sample.is_empty() {
                continue;
            }
            trial.clear();
            let compressed = self.compressor.append(sample, &mut trial)?;
            let gain = 1.0 - compressed as f64 / sample.len() as f64;
            saved += gain * (bytes.len() * times) as f64;
            total += (bytes.len() * times) as f64;
        }
        if saved < LEAST_GAIN * total {
            self.compress = false;
        }
        Ok(())
    }

    fn write_dictionary(&mut self) -> Result<(), ParquetError> {
        let Some(dictionary) = self.dictionary else { return Ok(()) };
        let facts = self.compressed(dictionary.page(), dictionary.entries())?;
        let start = self.out.len();
        header::write_dictionary(facts, true, &mut self.out);
        self.uncompressed += self.out.len() - start + dictionary.page().len();
        self.out.extend_from_slice(self.levels);
        Ok(())
    }

    /// Compresses a body into `levels`, which is free then, and tells the sizes.
    fn compressed(&mut self, body: &[u8], count: usize) -> Result<PageFacts, ParquetError> {
        self.levels.clear();
        let length = match self.compress {
            true => self.compressor.append(body, self.levels)?,
            false => Compressor::None.append(body, self.levels)?,
        };
        let size = |length: usize| {
            i32::try_from(length).map_err(|_| ParquetError::General(format!("a page of {length} bytes is too large")))
        };
        Ok(PageFacts { uncompressed: size(body.len())?, compressed: size(length)?, count: size(count)?, crc: None })
    }

    fn write_page(&mut self, values: Values<'_>, span: &PageSpan) -> Result<(), ParquetError> {
        let body = std::mem::take(self.body);
        let facts = self.compressed(&body, span.rows.len())?;
        let start = self.out.len();
        let encoding = match self.plan {
            Plan::Dictionary => header::Encoding::RleDictionary,
            Plan::Plain => header::Encoding::Plain,
            Plan::Delta => header::Encoding::DeltaBinaryPacked,
            Plan::Split => header::Encoding::ByteStreamSplit,
        };
        header::write_data(facts, encoding, &mut self.out);
        self.uncompressed += self.out.len() - start + body.len();
        *self.body = body;
        self.out.extend_from_slice(self.levels);
        let length = self.out.len() - start;
        self.offset_index.append_offset_and_size(start as i64, length as i32);
        self.offset_index.append_row_count(span.rows.len() as i64);
        self.pages += 1;
        self.count(values, span);
        Ok(())
    }

    fn count(&mut self, values: Values<'_>, span: &PageSpan) {
        let summary = match self.dictionary {
            Some(dictionary) => Summary::of_indices(dictionary, span.values.clone(), self.kind),
            None => Summary::of_values(values, span.values.clone(), self.kind),
        };
        let nulls = span.rows.len() - span.values.len();
        self.nulls += nulls as u64;
        let bounds = summary.bounds.as_ref().map(|bounds| cut(bounds, self.kind, self.settings.index_bytes));
        match (&mut self.column_index, &bounds) {
            (Some(index), Some(bounds)) => {
                index.append(false, bounds.min.to_bytes(), bounds.max.to_bytes(), nulls as i64);
            }
            (Some(index), None) if span.values.is_empty() => index.append(true, Vec::new(), Vec::new(), nulls as i64),
            // A page of NaN has no bounds: then there is no index.
            (index, _) => *index = None,
        }
        self.page_bounds.push(bounds);
        self.summary.add(summary);
    }

    fn finish(self, rows: usize, values: Values<'_>, data_offset: usize) -> Result<OwnChunk, ParquetError> {
        let bloom_filter =
            self.settings.bloom_filter.map(|filter| bloom(filter, values, self.dictionary)).transpose()?;
        let text_bytes = match (values, self.kind.is_word()) {
            (_, true) => None,
            (Values::Texts(ids, texts), _) => {
                Some(ids.iter().map(|id| texts.get(*id as usize).map_or(0, <[u8]>::len) as i64).sum())
            }
            _ => self.dictionary.and_then(Dictionary::text_bytes).map(|bytes| bytes as i64),
        };
        let data_encoding = match self.plan {
            Plan::Dictionary => Encoding::RLE_DICTIONARY,
            Plan::Plain => Encoding::PLAIN,
            Plan::Delta => Encoding::DELTA_BINARY_PACKED,
            Plan::Split => Encoding::BYTE_STREAM_SPLIT,
        };
        let mut encodings = vec![Encoding::RLE, data_encoding];
        let mut pages =
            vec![PageEncodingStats { page_type: PageType::DATA_PAGE, encoding: data_encoding, count: self.pages }];
        if self.dictionary.is_some() {
            encodings.push(Encoding::PLAIN);
            let page_type = PageType::DICTIONARY_PAGE;
            pages.insert(0, PageEncodingStats { page_type, encoding: Encoding::PLAIN, count: 1 });
        }
        let most = self.settings.statistics_bytes;
        let codec = if self.compress { self.settings.codec } else { Codec::Uncompressed };
        let codec = codec.to_parquet().map_err(ParquetError::General)?;
        self.kept.give_back(self.settings.codec, self.compressor);
        let metadata = ColumnChunkMetaData::builder(self.settings.descriptor.clone())
            .set_compression(codec)
            .set_encodings(encodings)
            .set_page_encoding_stats(pages)
            .set_total_compressed_size(self.out.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_num_values(rows as i64)
            .set_data_page_offset(data_offset as i64)
            .set_dictionary_page_offset(self.dictionary.map(|_| 0))
            .set_unencoded_byte_array_data_bytes(text_bytes)
            .set_statistics(statistics(self.summary.bounds.as_ref(), self.nulls, self.kind, most))
            .build()?;
        let column_index = match self.column_index {
            Some(mut index) => {
                index.set_boundary_order(boundary_order(&self.page_bounds));
                Some(index.build()?)
            }
            None => None,
        };
        Ok(OwnChunk {
            nans: self.summary.nans,
            close: ColumnCloseResult {
                bytes_written: self.out.len() as u64,
                rows_written: rows as u64,
                metadata,
                bloom_filter,
                column_index,
                offset_index: Some(self.offset_index.build()),
            },
            bytes: self.out.into(),
        })
    }
}

/// The filter over all values of a chunk, by their bytes as they are stored.
fn bloom(filter: BloomFilter, values: Values<'_>, dictionary: Option<&Dictionary<'_>>) -> Result<Sbbf, ParquetError> {
    let count = dictionary.map_or(values.len(), Dictionary::entries);
    let mut sized = filter.sized(count as u64)?;
    match dictionary {
        Some(dictionary) => dictionary.each(|bytes| sized.insert(bytes)),
        None => values.each(|bytes| sized.insert(bytes)),
    }
    Ok(sized)
}

/// How minima and maxima follow each other from page to page, pages of nulls left out.
fn boundary_order(pages: &[Option<Bounds>]) -> BoundaryOrder {
    let never = |wrong: Ordering| {
        let mut pairs = pages.iter().flatten().zip(pages.iter().flatten().skip(1));
        pairs.all(|(a, b)| a.min.order(&b.min) != wrong && a.max.order(&b.max) != wrong)
    };
    if never(Ordering::Greater) {
        BoundaryOrder::ASCENDING
    } else if never(Ordering::Less) {
        BoundaryOrder::DESCENDING
    } else {
        BoundaryOrder::UNORDERED
    }
}
