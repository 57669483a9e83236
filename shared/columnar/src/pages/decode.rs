//! Turns the bytes of one page into a decompressed page, through the Parquet crate's own page reader: for rare codecs.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

/// Decompresses pages handed over one by one.
///
/// The Parquet crate keeps its codecs to itself, so its page reader is made to believe that it reads an endless chunk:
/// each page follows the one before, wherever it really stood in the file. One codec serves the whole chunk.
pub(crate) struct PageDecoder {
    feed: Arc<Feed>,
    reader: SerializedPageReader<Feed>,
    next: u64,
}

impl PageDecoder {
    /// A decoder for the pages of `chunk`.
    pub(crate) fn new(chunk: &ColumnChunkMetaData) -> ParquetResult<Self> {
        let endless = ColumnChunkMetaData::builder(chunk.column_descr_ptr())
            .set_compression(chunk.compression())
            .set_data_page_offset(0)
            .set_total_compressed_size(i64::MAX)
            .build()?;
        let feed = Arc::new(Feed(Mutex::new((0, Bytes::new()))));
        let reader = SerializedPageReader::new(Arc::clone(&feed), &endless, 0, None)?;
        Ok(Self { feed, reader, next: 0 })
    }

    /// Decompresses the page that `bytes` hold exactly, header included.
    pub(crate) fn decode(&mut self, bytes: Bytes) -> ParquetResult<Page> {
        let length = bytes.len() as u64;
        self.feed.set(self.next, bytes);
        self.next += length;
        let page = self.reader.get_next_page();
        self.feed.set(self.next, Bytes::new());
        page?.ok_or_else(|| ParquetError::EOF("a page without content".into()))
    }
}

/// The one page that is being decoded, at the place where the page reader expects it.
struct Feed(Mutex<(u64, Bytes)>);

impl Feed {
    fn set(&self, start: u64, bytes: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (start, bytes);
    }

    fn from(&self, offset: u64) -> ParquetResult<Bytes> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, bytes) = &*held;
        match offset.checked_sub(*start) {
            Some(skip) if skip <= bytes.len() as u64 => Ok(bytes.slice(skip as usize..)),
            _ => Err(ParquetError::EOF("a page that is longer than its header says".into())),
        }
    }
}

impl Length for Feed {
    fn len(&self) -> u64 {
        u64::MAX
    }
}

impl ChunkReader for Feed {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF("a page that is longer than its header says".into()));
        }
        Ok(bytes.slice(..length))
    }
}
