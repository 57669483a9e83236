//! Byte strings one after another, with offsets.

use std::ops::Range;

use crate::Damage;

/// More would not fit the offsets.
const TOO_MUCH: Damage = Damage("texts of more than 4 GiB in one batch");

/// Byte strings: the values of a BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY column, of a page or of several.
///
/// Offsets are `u32`, half of what 64 bits take: batches are bounded by the memory budget anyhow, and one that would hold more
/// than 4 GiB is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// One more than there are texts; the first is 0, and none is smaller than the one before.
    offsets: Vec<u32>,
    /// As long as the last offset says.
    data: Vec<u8>,
}

impl Default for Texts {
    fn default() -> Self {
        Self { offsets: vec![0], data: Vec::new() }
    }
}

impl Texts {
    /// No texts.
    pub fn new() -> Self {
        Self::default()
    }

    /// No texts, with room for `texts` of `bytes` in total.
    pub fn with_capacity(texts: usize, bytes: usize) -> Self {
        let mut new = Self { offsets: Vec::with_capacity(texts + 1), data: Vec::with_capacity(bytes) };
        new.offsets.push(0);
        new
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let start = *self.offsets.get(index)?;
        let end = *self.offsets.get(index.checked_add(1)?)?;
        self.data.get(start as usize..end as usize)
    }

    /// All texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.offsets.windows(2).map(|pair| &self.data[pair[0] as usize..pair[1] as usize])
    }

    /// Where each text starts in [`Self::data`], and at last its length: one more than there are texts.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The bytes of all texts without anything between.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.offsets.capacity() * size_of::<u32>() + self.data.capacity()
    }

    /// Forgets all texts and keeps the memory.
    pub fn clear(&mut self) {
        self.offsets.truncate(1);
        self.data.clear();
    }

    /// Appends one text.
    ///
    /// # Errors
    /// More than 4 GiB would be held; nothing was appended.
    #[inline]
    pub fn push(&mut self, text: &[u8]) -> Result<(), Damage> {
        let end = self.end_after(text.len())?;
        self.data.extend_from_slice(text);
        self.offsets.push(end);
        Ok(())
    }

    /// Appends the texts of `other` in `range`, with one copy of their bytes. A range beyond the texts is cut.
    ///
    /// # Errors
    /// More than 4 GiB would be held; nothing was appended.
    pub fn extend_from(&mut self, other: &Texts, range: Range<usize>) -> Result<(), Damage> {
        let end = range.end.min(other.len());
        let start = range.start.min(end);
        let offsets = &other.offsets[start..=end];
        let (from, to) = (offsets[0], offsets[offsets.len() - 1]);
        let own_end = self.end_after((to - from) as usize)?;
        let shift = own_end - (to - from);
        self.data.extend_from_slice(&other.data[from as usize..to as usize]);
        self.offsets.extend(offsets[1..].iter().map(|offset| offset - from + shift));
        Ok(())
    }

    /// Makes room for `texts` more of `bytes` in total.
    pub fn reserve(&mut self, texts: usize, bytes: usize) {
        self.offsets.reserve(texts);
        self.data.reserve(bytes);
    }

    /// Appends `count` texts of `width` bytes each, which `bytes` consists of.
    pub(crate) fn push_fixed(&mut self, bytes: &[u8], width: usize, count: usize) -> Result<(), Damage> {
        self.end_after(bytes.len())?;
        // No overflow: the end fits.
        let start = self.data.len();
        self.offsets.extend((1..=count).map(|index| (start + index * width) as u32));
        self.data.extend_from_slice(bytes);
        Ok(())
    }

    /// The last offset once `bytes` more are held.
    #[inline]
    pub(crate) fn end_after(&self, bytes: usize) -> Result<u32, Damage> {
        let end = self.data.len().checked_add(bytes).ok_or(TOO_MUCH)?;
        u32::try_from(end).map_err(|_| TOO_MUCH)
    }

    /// Makes room for `texts` more of `bytes` in total, unless they would not fit.
    pub(crate) fn reserve_checked(&mut self, texts: usize, bytes: u64) -> Result<(), Damage> {
        let bytes = usize::try_from(bytes).map_err(|_| TOO_MUCH)?;
        self.end_after(bytes)?;
        self.reserve(texts, bytes);
        Ok(())
    }

    /// Appends texts of the given `lengths`, which `bytes` consists of.
    pub(crate) fn push_all(&mut self, bytes: &[u8], lengths: &[u32]) -> Result<(), Damage> {
        // No overflow: no end is beyond the last one, which fits.
        self.end_after(bytes.len())?;
        let mut end = self.data.len() as u32;
        self.offsets.extend(lengths.iter().map(|length| {
            end += length;
            end
        }));
        self.data.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends the first `shared` bytes of the last text, followed by `own`.
    #[inline]
    pub(crate) fn push_shared(&mut self, shared: u32, own: &[u8]) -> Result<(), Damage> {
        let start = match self.offsets.as_slice() {
            [.., start, _] => *start as usize,
            _ => 0,
        };
        let end = start.saturating_add(shared as usize);
        if end > self.data.len() {
            return Err(Damage("a text that shares more than the one before it has"));
        }
        let offset = self.end_after((end - start).saturating_add(own.len()))?;
        self.data.extend_from_within(start..end);
        self.data.extend_from_slice(own);
        self.offsets.push(offset);
        Ok(())
    }
}
