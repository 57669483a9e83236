//! The life of a file (design section 7): Live, Replaced, Unreferenced, Deleted, in that order only.

use serde::Serialize;

/// Where in its life a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FileState {
    /// The head of a branch, or a tag, refers to it.
    Live,
    /// Only older snapshots refer to it.
    Replaced,
    /// No snapshot refers to it: expiry removed the last one, or it was uploaded and not committed (yet).
    Unreferenced,
    /// Orphan cleanup deleted it.
    Deleted,
}

/// A step that no code of Firn's may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a file that is {from:?} cannot become {to:?}")]
pub struct WrongStep {
    /// Where it is.
    pub from: FileState,
    /// Where it shall go.
    pub to: FileState,
}

impl FileState {
    /// The only state that may follow, and what makes it: a merge commit, an expiry, a sweep.
    pub fn next(self) -> Option<FileState> {
        match self {
            FileState::Live => Some(FileState::Replaced),
            FileState::Replaced => Some(FileState::Unreferenced),
            FileState::Unreferenced => Some(FileState::Deleted),
            FileState::Deleted => None,
        }
    }

    /// Deletes it, which only a file may be that nothing refers to.
    ///
    /// # Errors
    /// [`WrongStep`] for any other.
    pub fn delete(self) -> Result<FileState, WrongStep> {
        match self.next() {
            Some(FileState::Deleted) => Ok(FileState::Deleted),
            _ => Err(WrongStep { from: self, to: FileState::Deleted }),
        }
    }
}

/// Files by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateCounts {
    /// [`FileState::Live`].
    pub live: u64,
    /// [`FileState::Replaced`].
    pub replaced: u64,
    /// [`FileState::Unreferenced`], without those that were deleted now.
    pub unreferenced: u64,
    /// [`FileState::Deleted`] now.
    pub deleted: u64,
}

impl StateCounts {
    /// Counts one file.
    pub fn add(&mut self, state: FileState) {
        match state {
            FileState::Live => self.live += 1,
            FileState::Replaced => self.replaced += 1,
            FileState::Unreferenced => self.unreferenced += 1,
            FileState::Deleted => self.deleted += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [FileState; 4] = [FileState::Live, FileState::Replaced, FileState::Unreferenced, FileState::Deleted];

    #[test]
    fn only_the_next_state_follows() {
        for pair in ALL.windows(2) {
            assert_eq!(pair[0].next(), Some(pair[1]));
        }
        assert_eq!(FileState::Deleted.next(), None);
        for state in ALL {
            assert_eq!(state.delete().is_ok(), state == FileState::Unreferenced, "{state:?}");
        }
        assert_eq!(FileState::Live.delete().unwrap_err().to_string(), "a file that is Live cannot become Deleted");
    }
}
