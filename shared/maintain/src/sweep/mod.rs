//! Orphan cleanup (design section 7). A reader follows one table through [`run`]: checks, listing ([`listing`]), metadata after it, marks
//! ([`mark`]), decisions ([`decide`]), and last the deletions ([`delete`]), each with a [`receipt`].

mod abandoned;
mod checks;
pub mod class;
pub mod decide;
mod delete;
pub mod listing;
mod mark;
pub mod neighbours;
mod owners;
pub mod places;
mod planned;
pub mod receipt;
pub mod report;
pub mod run;
pub mod seen;
pub mod stop;
mod unknown_metadata;

pub use decide::{DeleteReason, FileFacts, KeepReason, OrphanDecision, Owner, SweepRules, decide_orphan};
pub use neighbours::Neighbours;
pub use receipt::{Deletion, DeletionCounts, DeletionOutcome, Receipt, ReceiptPart, Undo};
pub use report::{FileLine, SweepReport, Unheard, Verdict};
pub use run::{SweepOutcome, SweepTools, TableSweep, sweep_table};
pub use stop::SweepStop;
