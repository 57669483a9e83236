//! How an upload is cut into blocks.

use azure_core::Uuid;

/// Sizes of the blocks of an upload. The service takes at most 50,000 blocks for one blob, so blocks grow: an upload of
/// unknown length must not find out at its end that it was cut too small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockPlan {
    /// Size of the first blocks in bytes. An open upload holds two blocks in memory: one that fills, one on its way.
    pub first_bytes: usize,
    /// After so many blocks the size doubles, and again after as many more.
    pub double_every: usize,
    /// Most blocks of one blob.
    pub max_blocks: usize,
}

impl Default for BlockPlan {
    fn default() -> Self {
        // 32 GiB in blocks of 4 MiB, 96 GiB with those of 8 MiB, about 2 TiB in all.
        BlockPlan { first_bytes: 4 << 20, double_every: 8192, max_blocks: 50_000 }
    }
}

/// The largest block that the service takes.
const SERVICE_MAX_BYTES: usize = 4000 << 20;

impl BlockPlan {
    /// Size of the block with this index.
    pub(super) fn bytes(&self, index: usize) -> usize {
        let doublings = (index / self.double_every.max(1)).min(20);
        self.first_bytes.max(1).saturating_mul(1 << doublings).min(SERVICE_MAX_BYTES)
    }
}

/// Names of the blocks of one upload. They begin with what no other upload has, so blocks of two uploads to one name never
/// mix, and have one length, as the service wants it.
#[derive(Debug)]
pub(super) struct BlockIds {
    upload: String,
    given: usize,
}

impl BlockIds {
    pub(super) fn new() -> Self {
        BlockIds { upload: Uuid::new_v4().simple().to_string(), given: 0 }
    }

    pub(super) fn given(&self) -> usize {
        self.given
    }

    pub(super) fn next(&mut self) -> Vec<u8> {
        let id = self.name(self.given);
        self.given += 1;
        id
    }

    pub(super) fn all(&self) -> Vec<Vec<u8>> {
        (0..self.given).map(|index| self.name(index)).collect()
    }

    fn name(&self, index: usize) -> Vec<u8> {
        format!("{}-{index:08}", self.upload).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_holds_two_tebibytes_in_blocks_the_service_takes() {
        let plan = BlockPlan::default();
        let sizes = (0..plan.max_blocks).map(|index| plan.bytes(index));
        assert!(sizes.clone().all(|size| size <= 4000 << 20));
        assert!(sizes.map(|size| size as u64).sum::<u64>() > 2 << 40);
        assert_eq!((plan.bytes(8191), plan.bytes(8192), plan.bytes(16_384)), (4 << 20, 8 << 20, 16 << 20));
    }

    #[test]
    fn ids_are_of_one_length_and_differ_between_uploads() {
        let (mut one, mut other) = (BlockIds::new(), BlockIds::new());
        let (first, second) = (one.next(), one.next());
        assert_eq!((first.len(), second.len(), one.name(49_999).len()), (41, 41, 41));
        assert_ne!(first, second);
        assert_ne!(first, other.next());
        assert_eq!(one.all(), [first, second]);
        assert!(one.name(0).len() <= 64, "the service's limit before Base64");
    }
}
