//! Which of the partitions that a pass selects are sent, when they are more than `maxPartitionsPerPass`.

use firn_model::Rule;

use super::records::AT_ONCE;

/// Of so many partitions one is for an index, where any needs one: else a table whose writers always leave more to merge than the cap
/// would never get the indexes of its older files.
const ONE_FOR_INDEXES_OF: u64 = 10;

/// How many partitions of a dataset a pass may still send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    cap: u64,
    /// Of these, for partitions of which nothing is merged but files lack an index.
    for_indexes: u64,
    sent: u64,
    indexes: u64,
}

/// When a partition that was selected is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// When all others have been looked at, if they left room.
    IfRoomIsLeft,
    /// There is no room.
    NextTick,
}

impl Room {
    /// All of `cap` (`maxPartitionsPerPass`). `looks_for_indexes`: whether the pass asks which files have no text index.
    pub(super) fn new(cap: u64, looks_for_indexes: bool) -> Self {
        let share = (cap / ONE_FOR_INDEXES_OF).max(1).min(cap.saturating_sub(1));
        Self { cap, for_indexes: if looks_for_indexes { share } else { 0 }, sent: 0, indexes: 0 }
    }

    /// How many may still be sent.
    pub(super) fn left(&self) -> u64 {
        self.cap.saturating_sub(self.sent)
    }

    /// The same, at most as many as are sent side by side.
    pub(super) fn left_at_once(&self) -> usize {
        usize::try_from(self.left()).unwrap_or(usize::MAX).min(AT_ONCE)
    }

    fn kept(&self) -> u64 {
        self.for_indexes.saturating_sub(self.indexes).min(self.left())
    }

    /// Whether nothing but what lacks an index is sent at once any more.
    pub(super) fn is_for_indexes(&self) -> bool {
        self.left() == self.kept()
    }

    /// Whether no partition needs to be looked at any more.
    pub(super) fn is_used_up(&self) -> bool {
        self.left() == 0
    }

    /// How many may be chosen before they are sent: whether each takes room shows only then.
    pub(super) fn at_once(&self) -> usize {
        let room = if self.is_for_indexes() { self.kept() } else { self.left() - self.kept() };
        usize::try_from(room).unwrap_or(usize::MAX).min(AT_ONCE)
    }

    /// Whether a merge beyond the room for merges, of which `held` are held, may still have its turn.
    pub(super) fn holds_more(&self, held: usize) -> bool {
        (held as u64) < self.kept()
    }

    /// When a partition that `rule` selects is sent.
    pub(super) fn turn(&self, rule: Rule, held: usize) -> Turn {
        match (rule == Rule::Backfill || !self.is_for_indexes(), self.holds_more(held)) {
            (true, _) => Turn::Now,
            (false, true) => Turn::IfRoomIsLeft,
            (false, false) => Turn::NextTick,
        }
    }

    /// A message was sent.
    pub(super) fn take(&mut self, rule: Rule) {
        self.sent += 1;
        self.indexes += u64::from(rule == Rule::Backfill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_kept_for_indexes_and_merges_beyond_the_rest_are_held() {
        let mut room = Room::new(20, true);
        for _ in 0..18 {
            assert_eq!((room.turn(Rule::Schedule, 0), room.is_used_up()), (Turn::Now, false));
            room.take(Rule::Schedule);
        }
        assert!(room.is_for_indexes());
        assert_eq!((room.at_once(), room.left()), (2, 2));
        let merges = [0, 1, 2].map(|held| room.turn(Rule::Schedule, held));
        assert_eq!(merges, [Turn::IfRoomIsLeft, Turn::IfRoomIsLeft, Turn::NextTick]);
        assert_eq!(room.turn(Rule::Backfill, 2), Turn::Now);
        room.take(Rule::Backfill);
        assert_eq!(room.turn(Rule::Schedule, 1), Turn::NextTick);
        room.take(Rule::Backfill);
        assert!(room.is_used_up());
    }

    #[test]
    fn indexes_that_were_sent_before_the_merges_count_as_their_share() {
        let mut room = Room::new(20, true);
        room.take(Rule::Backfill);
        room.take(Rule::Backfill);
        assert_eq!((room.left(), room.at_once()), (18, AT_ONCE));
        assert!(!room.is_for_indexes());
    }

    #[test]
    fn nothing_is_kept_where_no_index_is_asked_for_or_one_partition_is_all() {
        assert_eq!(Room::new(500, false).at_once(), AT_ONCE.min(500));
        assert_eq!(Room::new(1, true).turn(Rule::Schedule, 0), Turn::Now);
        assert_eq!(Room::new(2, true).at_once(), 1);
        let mut room = Room::new(3, false);
        (0..3).for_each(|_| room.take(Rule::Tier));
        assert!(room.is_used_up());
    }
}
