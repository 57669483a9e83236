//! Commits of one table take turns, so that workers of one table do not build commits that only one of them can win
//! (design section 6). Safety rests on the commit's requirements alone: whoever gets no turn commits all the same.

use std::fmt::Debug;

use async_trait::async_trait;

/// Hands out turns, one at a time for each table.
#[async_trait]
pub trait CommitTurns: Send + Sync + Debug {
    /// Waits for the turn of the table with this UUID, but not for ever. None: it did not come, or turns are out of order; commit without.
    async fn take(&self, table_uuid: &str) -> Option<Box<dyn Turn>>;
}

/// A turn in hand. Dropped without [`Turn::give_back`] it ends by itself after a while.
#[async_trait]
pub trait Turn: Send + Debug {
    /// The next one may commit.
    async fn give_back(self: Box<Self>);
}
