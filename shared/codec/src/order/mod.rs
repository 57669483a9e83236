//! Dictionaries in order: readers find values by bisection, neighbours compress better, and ranks are all that min and max need.

mod texts;
mod words;

pub use texts::{TextOrder, sort_texts};
pub use words::{Sorter, WordOrder, sort};
