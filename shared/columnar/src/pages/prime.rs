//! Reading ahead of what is asked for: the bytes of a chunk that a window will need are on their way before the window is worked on.

use super::map::DictionaryPlace;
use super::{ChunkPages, SMALL_GAP};

impl ChunkPages {
    /// Begins to read what will be asked for next, up to row `until` or, where that is not known, as much as is read ahead: the pages from
    /// where reading stopped or, when a reader is still to [begin](Self::begin) at `row`, the dictionary and the page of the row.
    pub(crate) fn prime(&mut self, row: u64, until: Option<u64>, begun: bool) {
        let reach = std::mem::replace(&mut self.reach, until);
        self.prime_to_reach(row, begun);
        self.reach = reach;
    }

    fn prime_to_reach(&mut self, row: u64, begun: bool) {
        let spot = match begun {
            true => self.map.pages.get(self.next).copied(),
            false => self.map.page_of(row).map(|index| self.map.pages[index]),
        };
        let goes_on = spot.map_or(self.map.walked_to, |spot| spot.offset);
        if !begun {
            let (start, end) = match self.map.dictionary {
                DictionaryPlace::Unknown => (self.range.start, self.data_start()),
                DictionaryPlace::None => (goes_on, goes_on),
                DictionaryPlace::At { offset, length } => (offset, offset + length),
            };
            if goes_on.saturating_sub(end) <= SMALL_GAP {
                let useful_end = self.primed_end(end, Some(0));
                return self.window.begin(start..useful_end);
            }
            self.window.begin(start..end);
        }
        if spot.is_some() || !self.map.complete {
            let useful_end = self.primed_end(goes_on, spot.and_then(|spot| spot.first_row));
            self.window.begin(goes_on..useful_end);
        }
    }

    fn primed_end(&self, from: u64, first_row: Option<u64>) -> u64 {
        let end = self.useful_end(from, first_row);
        if self.reach.is_some() { end } else { end.min(from.saturating_add(self.window.ahead())) }
    }
}
