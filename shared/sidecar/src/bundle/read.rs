//! Reading a bundle: its end first, parts as they are asked for.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::BlobStore;
use firn_storage::crc::{Crc64, crc64};

use super::blocks::text;
use super::{Footer, MAGIC, PartEntry, TRAILER_BYTES};
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarKind};

/// Bytes fetched with the first request: the footer, and what lies before it.
const TAIL_BYTES: u64 = 64 << 10;
/// Bytes of one request when a whole part is checked.
const CHECK_BYTES: u64 = 4 << 20;

/// An open bundle.
#[derive(Debug, Clone)]
pub struct BundleReader {
    store: Arc<dyn BlobStore>,
    id: BlobId,
    size: u64,
    footer: Arc<Footer>,
    /// The last bytes of the blob.
    tail: Bytes,
}

impl BundleReader {
    /// Opens the bundle `id` by two requests, whatever its size. With `expected`, one that was built for another data file is refused.
    ///
    /// # Errors
    /// [`SidecarError::Absent`], [`SidecarError::Unusable`], or what the store says.
    pub async fn open(
        store: Arc<dyn BlobStore>,
        id: &BlobId,
        kind: SidecarKind,
        expected: Option<&DataFile>,
    ) -> Result<BundleReader, SidecarError> {
        let reader = BundleReader::open_any(store, id).await?;
        let footer = reader.footer();
        if footer.kind != kind {
            return Err(SidecarError::unusable(id, format!("it is a {}, not a {kind}", footer.kind)));
        }
        match expected.and_then(|expected| footer.data.differs_from(expected)) {
            Some(detail) => Err(SidecarError::unusable(id, detail)),
            None => Ok(reader),
        }
    }

    /// Opens a bundle of any kind.
    ///
    /// # Errors
    /// As [`BundleReader::open`].
    pub async fn open_any(store: Arc<dyn BlobStore>, id: &BlobId) -> Result<BundleReader, SidecarError> {
        let size = store.properties(id).await.map_err(SidecarError::of_read)?.size;
        let tail_start = size.saturating_sub(TAIL_BYTES);
        let mut tail = store.read(id, tail_start..size).await.map_err(SidecarError::of_read)?;
        let length = footer_length(id, size, &tail)?;
        if length + TRAILER_BYTES > tail.len() as u64 {
            let start = size - TRAILER_BYTES - length;
            tail = store.read(id, start..size).await.map_err(SidecarError::of_read)?;
        }
        let footer = parse_footer(id, size, length, &tail)?;
        Ok(BundleReader { store, id: id.clone(), size, footer: Arc::new(footer), tail })
    }

    /// What the bundle says of itself.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Size of the blob.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The blob.
    pub fn id(&self) -> &BlobId {
        &self.id
    }

    /// The blob's store.
    pub(crate) fn store(&self) -> &Arc<dyn BlobStore> {
        &self.store
    }

    /// The last bytes of the blob, which were read when it was opened.
    pub(crate) fn tail(&self) -> &Bytes {
        &self.tail
    }

    /// A part of the bundle.
    ///
    /// # Errors
    /// [`SidecarError::Unusable`] when there is none of that name.
    pub fn entry(&self, name: &str) -> Result<&PartEntry, SidecarError> {
        let found = self.footer.parts.iter().find(|part| part.name == name);
        found.ok_or_else(|| SidecarError::unusable(&self.id, format!("it has no part `{name}`")))
    }

    /// The bytes of a part, checked against its CRC-64. For small parts: they are held in memory.
    ///
    /// # Errors
    /// [`SidecarError::Unusable`] when there is no such part or its bytes are not those that were written.
    pub async fn part(&self, name: &str) -> Result<Bytes, SidecarError> {
        let entry = self.entry(name)?;
        let range = entry.offset..entry.offset + entry.length;
        let bytes = match slice_of_tail(&self.tail, self.size, &range) {
            Some(bytes) => bytes,
            None => self.store.read(&self.id, range).await.map_err(SidecarError::of_read)?,
        };
        self.check(entry, crc64(&bytes))?;
        Ok(bytes)
    }

    /// Reads every part and checks it against its CRC-64.
    ///
    /// # Errors
    /// [`SidecarError::Unusable`] for the first part that is not what was written.
    pub async fn verify(&self) -> Result<(), SidecarError> {
        for entry in &self.footer.parts {
            let mut crc = Crc64::default();
            let end = entry.offset + entry.length;
            let mut start = entry.offset;
            while start < end {
                let stop = end.min(start + CHECK_BYTES);
                crc.update(&self.store.read(&self.id, start..stop).await.map_err(SidecarError::of_read)?);
                start = stop;
            }
            self.check(entry, crc.value())?;
        }
        Ok(())
    }

    fn check(&self, entry: &PartEntry, crc: u64) -> Result<(), SidecarError> {
        let found = text(crc);
        if found == entry.crc64 {
            return Ok(());
        }
        let detail = format!("part `{}` has CRC-64 {found}, {} was written", entry.name, entry.crc64);
        Err(SidecarError::unusable(&self.id, detail))
    }
}

/// `range` of the blob, when it lies in the last bytes.
pub(crate) fn slice_of_tail(tail: &Bytes, size: u64, range: &Range<u64>) -> Option<Bytes> {
    let tail_start = size - tail.len() as u64;
    let start = usize::try_from(range.start.checked_sub(tail_start)?).ok()?;
    let end = usize::try_from(range.end.checked_sub(tail_start)?).ok()?;
    (start <= end && end <= tail.len()).then(|| tail.slice(start..end))
}

/// Length of the footer, from the last bytes of the blob.
fn footer_length(id: &BlobId, size: u64, tail: &[u8]) -> Result<u64, SidecarError> {
    let least = TRAILER_BYTES + MAGIC.len() as u64;
    let Some((rest, magic)) = tail.split_last_chunk::<8>() else {
        return Err(SidecarError::unusable(id, format!("it has only {size} bytes")));
    };
    if size < least || magic[..6] != MAGIC[..6] {
        return Err(SidecarError::unusable(id, "it does not end as a sidecar does"));
    }
    if magic != MAGIC {
        let version = String::from_utf8_lossy(&magic[6..]).into_owned();
        return Err(SidecarError::unusable(id, format!("its layout has version `{version}`, this program knows `01`")));
    }
    match rest.last_chunk::<4>().map(|length| u64::from(u32::from_le_bytes(*length))) {
        Some(length) if length <= size - least => Ok(length),
        _ => Err(SidecarError::unusable(id, "its footer would be longer than the blob")),
    }
}

fn parse_footer(id: &BlobId, size: u64, length: u64, tail: &Bytes) -> Result<Footer, SidecarError> {
    let end = size - TRAILER_BYTES;
    let footer = slice_of_tail(tail, size, &(end - length..end));
    let crc = slice_of_tail(tail, size, &(end..end + 8));
    let (Some(footer), Some(crc)) = (footer, crc) else {
        return Err(SidecarError::unusable(id, "its footer cannot be found"));
    };
    if crc[..] != crc64(&footer).to_le_bytes() {
        return Err(SidecarError::unusable(id, "its footer is not what was written (CRC-64)"));
    }
    let footer: Footer =
        serde_json::from_slice(&footer).map_err(|error| SidecarError::unusable(id, format!("its footer: {error}")))?;
    let mut expected = MAGIC.len() as u64;
    for part in &footer.parts {
        let follows = part.offset == expected;
        expected = part.offset.saturating_add(part.length);
        if !follows || expected > end - length {
            return Err(SidecarError::unusable(id, format!("part `{}` is not where it should be", part.name)));
        }
    }
    if !footer.blocks.cover(footer.parts_end()) {
        return Err(SidecarError::unusable(id, "its checksums of blocks are not those of its parts"));
    }
    Ok(footer)
}

pub(crate) mod ranged {
    //! Ranges of a blob for code that cannot wait: they are fetched in blocks, which are checked and kept.

    use std::collections::{HashMap, VecDeque};
    use std::io;
    use std::ops::Range;
    use std::sync::{Arc, Mutex, PoisonError};

    use bytes::{Bytes, BytesMut};
    use tokio::runtime::Handle;

    use super::super::blocks::BLOCK_BYTES;
    use super::{BundleReader, slice_of_tail};

    /// Bytes of blocks that are kept.
    const KEPT_BYTES: u64 = 32 << 20;

    /// A bundle's bytes. Reads block the calling thread, which must not be one of the runtime's own.
    #[derive(Debug, Clone)]
    pub(crate) struct RangedBundle {
        bundle: BundleReader,
        handle: Handle,
        cache: Arc<Mutex<Cache>>,
    }

    #[derive(Debug, Default)]
    struct Cache {
        blocks: HashMap<u64, Bytes>,
        order: VecDeque<u64>,
        bytes: u64,
    }

    impl RangedBundle {
        pub(crate) fn new(bundle: BundleReader, handle: Handle) -> RangedBundle {
            RangedBundle { bundle, handle, cache: Arc::default() }
        }

        pub(crate) fn bundle(&self) -> &BundleReader {
            &self.bundle
        }

        /// The bytes of `range`, which lies in the parts.
        ///
        /// # Errors
        /// What the store says; `InvalidData` when they are not what was written.
        pub(crate) fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            let blocks = range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES);
            if blocks.end - blocks.start > KEPT_BYTES / BLOCK_BYTES / 4 {
                return self.fetch_part(&range, blocks);
            }
            let (first, missing) = self.missing(&blocks);
            if missing > 0 {
                self.keep(first, &self.fetch(first..first + missing)?);
            }
            self.assemble(range, blocks)
        }

        /// The smallest run of blocks that has all that are missing.
        fn missing(&self, blocks: &Range<u64>) -> (u64, u64) {
            let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            let mut absent = blocks.clone().filter(|block| !cache.blocks.contains_key(block));
            match absent.next() {
                Some(first) => (first, absent.next_back().unwrap_or(first) - first + 1),
                None => (blocks.start, 0),
            }
        }

        fn keep(&self, first: u64, bytes: &Bytes) {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            let mut at = 0;
            for block in first.. {
                if at >= bytes.len() {
                    break;
                }
                let end = bytes.len().min(at + BLOCK_BYTES as usize);
                // Each block has memory of its own: one that is kept must not keep its neighbours.
                let piece = Bytes::copy_from_slice(&bytes[at..end]);
                cache.bytes += piece.len() as u64;
                if let Some(old) = cache.blocks.insert(block, piece) {
                    cache.bytes -= old.len() as u64;
                } else {
                    cache.order.push_back(block);
                }
                at = end;
            }
            while cache.bytes > KEPT_BYTES {
                let Some(oldest) = cache.order.pop_front() else { break };
                if let Some(gone) = cache.blocks.remove(&oldest) {
                    cache.bytes -= gone.len() as u64;
                }
            }
        }

        fn assemble(&self, range: Range<u64>, blocks: Range<u64>) -> io::Result<Bytes> {
            let alone = blocks.end - blocks.start == 1;
            let mut bytes = BytesMut::new();
            for block in blocks.clone() {
                let start = block * BLOCK_BYTES;
                let from = range.start.saturating_sub(start) as usize;
                let to = (range.end - start).min(BLOCK_BYTES) as usize;
                let held = self.cache.lock().unwrap_or_else(PoisonError::into_inner).blocks.get(&block).cloned();
                match held {
                    Some(held) if to <= held.len() && alone => return Ok(held.slice(from..to)),
                    Some(held) if to <= held.len() => bytes.extend_from_slice(&held[from..to]),
                    // Another thread's reads have pushed it out meanwhile.
                    _ => return self.fetch_part(&range, blocks),
                }
            }
            Ok(bytes.freeze())
        }

        /// The bytes of `range`, which lies in `blocks`.
        fn fetch_part(&self, range: &Range<u64>, blocks: Range<u64>) -> io::Result<Bytes> {
            let start = blocks.start * BLOCK_BYTES;
            let bytes = self.fetch(blocks)?;
            let part = (range.start - start) as usize..(range.end - start) as usize;
            if part.end > bytes.len() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a range beyond the parts"));
            }
            Ok(bytes.slice(part))
        }

        /// Whole blocks, checked.
        fn fetch(&self, blocks: Range<u64>) -> io::Result<Bytes> {
            let footer = self.bundle.footer();
            let range = blocks.start * BLOCK_BYTES..(blocks.end * BLOCK_BYTES).min(footer.parts_end());
            let bytes = match slice_of_tail(self.bundle.tail(), self.bundle.size(), &range) {
                Some(bytes) => bytes,
                None => {
                    let read = self.handle.block_on(self.bundle.store().read(self.bundle.id(), range));
                    read.map_err(io::Error::other)?
                }
            };
            match footer.blocks.damaged(blocks.start, &bytes) {
                None => Ok(bytes),
                Some(block) => {
                    let start = block * BLOCK_BYTES;
                    let detail = format!("its bytes from {start} on are not what was written (CRC-64)");
                    Err(io::Error::new(io::ErrorKind::InvalidData, detail))
                }
            }
        }
    }
}
