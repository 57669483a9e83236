//! Rows of one column in memory.

use firn_codec::Word;

/// Values of rows, one a row; that of a null row is 0 and means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Bits of 4-byte values.
    Narrow(Vec<u32>),
    /// Bits of 8-byte values.
    Wide(Vec<u64>),
    /// Numbers of a [`Pool`](super::pool::Pool).
    Ids(Vec<u32>),
}

impl Lane {
    pub(crate) fn len(&self) -> usize {
        match self {
            Lane::Narrow(values) | Lane::Ids(values) => values.len(),
            Lane::Wide(values) => values.len(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Lane::Narrow(values) | Lane::Ids(values) => values.clear(),
            Lane::Wide(values) => values.clear(),
        }
    }

    /// An empty lane of the same sort.
    pub(crate) fn like(&self, rows: usize) -> Lane {
        match self {
            Lane::Narrow(_) => Lane::Narrow(Vec::with_capacity(rows)),
            Lane::Wide(_) => Lane::Wide(Vec::with_capacity(rows)),
            Lane::Ids(_) => Lane::Ids(Vec::with_capacity(rows)),
        }
    }
}

/// Buffers of lanes that are not in use.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    narrow: Vec<u32>,
    wide: Vec<u64>,
}

impl Spare {
    /// Empty rows with a lane like `lane`.
    pub(crate) fn take(&mut self, lane: &Lane, rows: usize) -> Rows {
        let narrow = |spare: &mut Vec<u32>| {
            let mut buffer = std::mem::take(spare);
            buffer.clear();
            buffer.reserve_exact(rows);
            buffer
        };
        let lane = match lane {
            Lane::Narrow(_) => Lane::Narrow(narrow(&mut self.narrow)),
            Lane::Ids(_) => Lane::Ids(narrow(&mut self.narrow)),
            Lane::Wide(_) => {
                let mut buffer = std::mem::take(&mut self.wide);
                buffer.clear();
                buffer.reserve_exact(rows);
                Lane::Wide(buffer)
            }
        };
        Rows { lane, present: None }
    }

    /// Keeps the buffers of rows that are done with.
    pub(crate) fn give_back(&mut self, rows: Rows) {
        match rows.lane {
            Lane::Narrow(buffer) | Lane::Ids(buffer) => self.narrow = buffer,
            Lane::Wide(buffer) => self.wide = buffer,
        }
    }
}

/// Rows: values and which of them are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) lane: Lane,
    /// One byte a row, 1 for a value and 0 for a null; None when all are there.
    pub(crate) present: Option<Vec<u8>>,
}

impl Rows {
    pub(crate) fn new(lane: Lane) -> Rows {
        Rows { lane, present: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.lane.len()
    }

    pub(crate) fn clear(&mut self) {
        self.lane.clear();
        self.present = None;
    }

    /// Appends `count` nulls.
    pub(crate) fn push_nulls(&mut self, count: usize) {
        let before = self.len();
        match &mut self.lane {
            Lane::Narrow(values) | Lane::Ids(values) => values.resize(before + count, 0),
            Lane::Wide(values) => values.resize(before + count, 0),
        }
        let present = self.present.get_or_insert_with(|| vec![1; before]);
        present.resize(before + count, 0);
    }

    /// Appends the rows of `other` at these places, in their order.
    pub(crate) fn take_from(&mut self, other: &Rows, places: &[u32]) {
        match (&mut self.lane, &other.lane) {
            (Lane::Narrow(values), Lane::Narrow(others)) | (Lane::Ids(values), Lane::Ids(others)) => {
                values.extend(places.iter().map(|place| others[*place as usize]));
            }
            (Lane::Wide(values), Lane::Wide(others)) => {
                values.extend(places.iter().map(|place| others[*place as usize]));
            }
            // One column has one sort of lane.
            _ => {}
        }
        if let Some(others) = &other.present {
            self.present = Some(places.iter().map(|place| others[*place as usize]).collect());
        }
    }

    /// Appends rows `from..from + count` of `other`, which has the same sort of lane.
    pub(crate) fn extend(&mut self, other: &Rows, from: usize, count: usize) {
        let before = self.len();
        let range = from..from + count;
        match (&mut self.lane, &other.lane) {
            (Lane::Narrow(values), Lane::Narrow(others)) | (Lane::Ids(values), Lane::Ids(others)) => {
                copy(values, others, range.clone());
            }
            (Lane::Wide(values), Lane::Wide(others)) => copy(values, others, range.clone()),
            // One column has one sort of lane.
            _ => {}
        }
        match (&mut self.present, &other.present) {
            (None, None) => {}
            (Some(present), None) => present.resize(before + count, 1),
            (present, Some(others)) => {
                let present = present.get_or_insert_with(|| vec![1; before]);
                present.extend_from_slice(others.get(range).unwrap_or_default());
            }
        }
    }
}

#[inline]
fn copy<T: Copy>(values: &mut Vec<T>, others: &[T], range: std::ops::Range<usize>) {
    // Runs of one row are common where inputs alternate: no call of memcpy for them.
    if range.len() == 1 {
        values.extend(others.get(range.start).copied());
    } else {
        values.extend_from_slice(others.get(range).unwrap_or_default());
    }
}

/// Appends `values`, which are those of the rows that are there, with a 0 for each null between them.
pub(crate) fn spread<W: Word>(values: &[W], present: &[u8], out: &mut Vec<W>) {
    let mut next = values.iter();
    out.extend(present.iter().map(|present| match present {
        0 => W::default(),
        _ => next.next().copied().unwrap_or_default(),
    }));
}

/// A null adds nothing to the hash of its row. A mask instead of a branch: nulls come in no order that a processor could guess.
pub(crate) fn hide_nulls(hashes: &mut [u64], present: &[u8]) {
    for (hash, present) in hashes.iter_mut().zip(present) {
        *hash &= u64::from(*present).wrapping_neg();
    }
}

/// The values of the rows that are there.
pub(crate) fn compact<W: Word>(values: &[W], present: &[u8], out: &mut Vec<W>) {
    out.clear();
    out.extend(values.iter().zip(present).filter(|(_, present)| **present != 0).map(|(value, _)| *value));
}
