//! The functions that the host calls: the names of their folders.

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// By timer: one tick of the planner.
    Plan,
    /// By a message of the queue: one partition.
    Compact,
    /// By a message that the host gave up.
    CompactPoison,
    /// By timer: snapshots of every table.
    ExpireSnapshots,
    /// By timer: files that nothing refers to.
    CleanOrphans,
    /// By HTTP: what is known of ticks, records and queue.
    Status,
}

impl Function {
    /// All of them.
    pub const ALL: [Function; 6] = [
        Function::Plan,
        Function::Compact,
        Function::CompactPoison,
        Function::ExpireSnapshots,
        Function::CleanOrphans,
        Function::Status,
    ];

    /// The name of its folder, which is the path that the host posts to.
    pub fn name(self) -> &'static str {
        match self {
            Function::Plan => "plan",
            Function::Compact => "compact",
            Function::CompactPoison => "compact-poison",
            Function::ExpireSnapshots => "expire-snapshots",
            Function::CleanOrphans => "clean-orphans",
            Function::Status => "status",
        }
    }

    /// The function of this name.
    pub fn of(name: &str) -> Option<Function> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }
}
