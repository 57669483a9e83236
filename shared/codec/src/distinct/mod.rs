//! The distinct values of a column, exactly: what a writer must know to choose a dictionary, and the dictionary itself.

mod sample;
mod slots;
mod texts;
mod words;

pub use texts::TextInterner;
pub use words::Distinct;
