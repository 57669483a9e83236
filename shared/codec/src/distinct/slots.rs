//! The hash table behind distinct values.

/// One place of the table: a key, and the number of its value plus one, or 0 when the slot is free. Words are keys themselves, so that
/// a look-up touches one line of memory; of texts the key is the hash.
type Slot<K> = (K, u32);

/// Open addressing with linear probing; at most half of the slots are taken.
///
/// Hashes are not seeded, so that the same rows always give the same file. Values made to collide are met by counting: looking at
/// slots in vain costs credit, which every look-up adds to; see [`Slots::is_exhausted`].
#[derive(Debug, Default)]
pub(super) struct Slots<K> {
    /// Empty or a power of two of them.
    slots: Vec<Slot<K>>,
    /// How far a hash is shifted to give a place.
    shift: u32,
    /// Looks in vain that are still granted.
    credit: i64,
}

/// What probing for a value found.
pub(super) enum Found {
    /// The number of the value.
    Number(u32),
    /// The free slot at which it belongs.
    Free(usize),
}

/// Slots of the smallest table, which has no more than 16 kB: half of the fastest cache.
const FEWEST: usize = 1024;
/// Granted for each look-up: random values need less than one at half load.
const CREDIT: i64 = 8;
/// Never counted, against bad luck with few values.
const OVERDRAFT: i64 = 1 << 14;

impl<K: Copy + Default + PartialEq> Slots<K> {
    /// Frees all slots and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.credit = 0;
    }

    /// Bytes held on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<K>>()
    }

    /// Makes sure that at most half of the slots are taken when there are `values`. If the table has to grow it needs the hashes
    /// and keys of those there now, by number.
    #[inline]
    pub(super) fn fit(&mut self, values: usize, known: impl Iterator<Item = (u64, K)>) {
        if values.saturating_mul(2) > self.slots.len() {
            self.grow(values, known);
        }
    }

    #[cold]
    fn grow(&mut self, values: usize, known: impl Iterator<Item = (u64, K)>) {
        let needed = values.saturating_mul(2).next_power_of_two().max(FEWEST);
        self.slots.clear();
        self.slots.resize(needed, (K::default(), 0));
        self.shift = u64::BITS - needed.trailing_zeros();
        for (number, (hash, key)) in (0..).zip(known) {
            // No two are equal: the first free slot is the right one.
            if let Found::Free(place) = self.probe(hash, key, |_| false) {
                self.take(place, key, number);
            }
        }
    }

    /// Grants credit for `look_ups` to come.
    #[inline]
    pub(super) fn grant(&mut self, look_ups: usize) {
        self.credit = self.credit.saturating_add((look_ups as i64).saturating_mul(CREDIT));
    }

    /// Whether values collide so often that going on could take time out of all proportion.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.credit < -OVERDRAFT
    }

    /// Takes credit for comparing `bytes` in vain.
    #[inline]
    pub(super) fn charge(&mut self, bytes: usize) {
        self.credit -= (bytes / 64) as i64;
    }

    /// The slot that a hash leads to first.
    #[inline(always)]
    pub(super) fn first(&self, hash: u64) -> Slot<K> {
        self.slots.get((hash >> self.shift) as usize).copied().unwrap_or_default()
    }

    /// Looks for a value; `is` tells whether a number, whose key is that of the value, is that of the value.
    #[inline]
    pub(super) fn probe(&mut self, hash: u64, key: K, mut is: impl FnMut(u32) -> bool) -> Found {
        let mask = self.slots.len() - 1;
        let mut place = (hash >> self.shift) as usize & mask;
        // Half of the slots are free, so this ends.
        loop {
            match self.slots[place] {
                (_, 0) => return Found::Free(place),
                (found, number) if found == key && is(number - 1) => return Found::Number(number - 1),
                _ => {}
            }
            self.credit -= 1;
            place = (place + 1) & mask;
        }
    }

    /// Takes a free slot.
    #[inline]
    pub(super) fn take(&mut self, place: usize, key: K, number: u32) {
        self.slots[place] = (key, number + 1);
    }
}
