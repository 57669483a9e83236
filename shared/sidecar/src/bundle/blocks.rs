//! Checksums of a bundle by blocks: whoever reads ranges of it reads whole blocks, and knows them for what was written.

use firn_storage::crc::{Crc64, crc64};
use serde::{Deserialize, Serialize};

/// Bytes of a block: about what a storage account delivers in the time that a request takes anyway.
pub(crate) const BLOCK_BYTES: u64 = 128 << 10;
/// Digits of a checksum.
const DIGITS: usize = 16;

/// The checksums of all blocks, counted from the first byte of the blob to the end of the last part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocks {
    /// Bytes of a block; the last one may be shorter.
    pub bytes: u64,
    /// CRC-64/NVME of each, 16 hexadecimal digits, one after the other.
    pub crc64: String,
}

impl Blocks {
    /// Whether these are checksums of blocks of `length` bytes as this program reads them.
    pub(super) fn cover(&self, length: u64) -> bool {
        let blocks = length.div_ceil(BLOCK_BYTES);
        self.bytes == BLOCK_BYTES
            && self.crc64.is_ascii()
            && usize::try_from(blocks).is_ok_and(|blocks| self.crc64.len() == blocks * DIGITS)
    }

    /// The first of the blocks in `bytes`, which begin with block `first`, that is not what was written.
    pub(super) fn damaged(&self, first: u64, bytes: &[u8]) -> Option<u64> {
        let mut blocks = (first..).zip(bytes.chunks(BLOCK_BYTES as usize));
        blocks.find(|(block, bytes)| self.written(*block) != Some(&text(crc64(bytes)))).map(|(block, _)| block)
    }

    fn written(&self, block: u64) -> Option<&str> {
        let start = usize::try_from(block).ok()?.checked_mul(DIGITS)?;
        self.crc64.get(start..start + DIGITS)
    }
}

/// The checksums while a bundle is written.
#[derive(Debug, Default)]
pub(super) struct BlockSums {
    block: Crc64,
    filled: u64,
    written: String,
}

impl BlockSums {
    /// Adds what comes next.
    pub(super) fn update(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let taken = piece.len().min((BLOCK_BYTES - self.filled) as usize);
            let (now, rest) = piece.split_at(taken);
            self.block.update(now);
            self.filled += now.len() as u64;
            if self.filled == BLOCK_BYTES {
                self.close();
            }
            piece = rest;
        }
    }

    fn close(&mut self) {
        self.written.push_str(&text(self.block.value()));
        (self.block, self.filled) = (Crc64::default(), 0);
    }

    /// There is no more.
    pub(super) fn finish(mut self) -> Blocks {
        if self.filled > 0 {
            self.close();
        }
        Blocks { bytes: BLOCK_BYTES, crc64: self.written }
    }
}

/// A checksum as it stands in a bundle.
pub(super) fn text(crc: u64) -> String {
    format!("{crc:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_its_own_checksum_however_it_was_written() {
        let block = BLOCK_BYTES as usize;
        let all: Vec<u8> = (0..2 * block + 77).map(|at| (at % 251) as u8).collect();
        let sums = |step: usize| {
            let mut sums = BlockSums::default();
            all.chunks(step).for_each(|piece| sums.update(piece));
            sums.finish()
        };
        let blocks = sums(all.len());
        assert_eq!((&sums(1000), &sums(block)), (&blocks, &blocks));
        assert!(blocks.cover(all.len() as u64) && !blocks.cover(2 * BLOCK_BYTES) && !blocks.cover(3 * BLOCK_BYTES + 1));
        assert_eq!(blocks.damaged(0, &all), None);
        assert_eq!(blocks.damaged(1, &all[block..]), None);
        for at in [0, block - 1, block, 2 * block + 76] {
            let mut wrong = all.clone();
            wrong[at] ^= 2;
            assert_eq!(blocks.damaged(0, &wrong), Some((at / block) as u64), "byte {at}");
        }
        assert_eq!(blocks.damaged(0, &all[..all.len() - 1]), Some(2), "the end is missing");
        assert_eq!(BlockSums::default().finish().damaged(0, &[1]), Some(0), "more than was written");
    }
}
