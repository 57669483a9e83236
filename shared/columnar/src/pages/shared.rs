//! The pages of a chunk as the Parquet crate's reader asks for them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::Result as ParquetResult;

use super::ChunkPages;

/// Pages that a reader of the Parquet crate and the cursor that steers it share.
#[derive(Clone)]
pub(crate) struct SharedPages(Arc<Mutex<ChunkPages>>);

impl SharedPages {
    pub(crate) fn new(pages: ChunkPages) -> Self {
        Self(Arc::new(Mutex::new(pages)))
    }

    /// The pages, also after a panic: whoever contains one rewinds them before going on.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ChunkPages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pages of this one chunk, as the Parquet crate wants them.
    pub(crate) fn iterator(&self) -> OneChunk {
        OneChunk(Some(self.clone()))
    }
}

impl Iterator for SharedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for SharedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let mut pages = self.lock();
        let page = pages.next_page();
        pages.fail(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        let mut pages = self.lock();
        let metadata = pages.peek();
        pages.fail(metadata)
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        let mut pages = self.lock();
        if pages.dictionary_due {
            pages.dictionary_due = false;
            pages.dictionary = None;
        } else {
            pages.next += 1;
        }
        Ok(())
    }
}

/// An iterator over the page readers of a column in one row group: there is one.
pub(crate) struct OneChunk(Option<SharedPages>);

impl Iterator for OneChunk {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|pages| Ok(Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for OneChunk {}
