//! One message of the queue, from its body to the answer for the host (design section 4).
//!
//! A reader follows it file by file: [`work`] reads it and finds its partition, [`claim`] takes the partition's record under lease
//! and counts the start, [`record`] writes each step before its work, [`conclude`] decides what the end means, [`finish`] writes it and
//! sends what has to be sent. [`park`] and [`defer`] are for messages that are not worked on, [`poison`] for those that the host gave up.

mod answer;
mod claim;
mod conclude;
mod defer;
mod finish;
mod kill;
mod park;
mod poison;
mod record;
mod run;
mod start;

pub use answer::{Delivered, WorkAnswer, WorkOutcome};
pub use kill::DIE_AT_STEP;
pub use poison::poison;
pub use start::work;
