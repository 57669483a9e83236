//! What a run works with. Wired once per binary.

use std::path::PathBuf;
use std::sync::Arc;

use firn_columnar::StopFlag;
use firn_table::Catalog;

/// Services of a process, shared by all partitions that it works on.
#[derive(Debug, Clone)]
pub struct Services {
    /// The catalog; tables carry the store that holds their files.
    pub catalog: Arc<dyn Catalog>,
    /// Folder below which temporary files of runs lie.
    pub temp_root: PathBuf,
    /// Threads a merge may use.
    pub threads: usize,
    /// Set to end merges at their next window; nothing is committed after that.
    pub stop: StopFlag,
}
