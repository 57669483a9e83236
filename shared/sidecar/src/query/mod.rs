//! Queries over text: words, phrases, and, or, not.
//!
//! ```text
//! error timeout            both words (AND stands between words where nothing else does)
//! error OR warning         either
//! error NOT retry, error -retry
//! "connection refused"     words one after the other; so are the words of 10.0.0.1 and of foo-bar
//! message:error            in this column alone; any other word may be in any of the columns
//! (error OR warning) disk  brackets
//! ```
//!
//! Words are cut as the index cuts them. A colon after what is no column of the table is a character like any other.

mod parse;
mod scan;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::identity::SidecarColumn;
pub use scan::Scanner;

/// A parsed query over the text columns of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    columns: Vec<SidecarColumn>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) expression: Expression,
}

/// A word or a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// The column that must have it; None: any.
    pub(crate) column: Option<usize>,
    /// Words in lower case, one after the other; at least one.
    pub(crate) words: Vec<String>,
}

/// How leaves are combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// By its place among the leaves.
    Leaf(usize),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
}

impl Query {
    /// Parses `text`. A bare word may be in any of `columns`.
    ///
    /// # Errors
    /// [`QueryError`] with the place, quoting the text.
    pub fn parse(text: &str, columns: &[SidecarColumn]) -> Result<Query, QueryError> {
        parse::parse(text, columns, &[])
    }

    /// The same; `others` are columns of the table that are not looked at, and asking for one of them is a mistake, not a text with a colon.
    ///
    /// # Errors
    /// As [`Query::parse`].
    pub fn parse_in_table(text: &str, columns: &[SidecarColumn], others: &[&str]) -> Result<Query, QueryError> {
        parse::parse(text, columns, others)
    }

    /// The columns that are looked at.
    pub fn columns(&self) -> &[SidecarColumn] {
        &self.columns
    }

    /// The columns in which a leaf may be.
    pub(crate) fn columns_of(&self, leaf: &Leaf) -> &[SidecarColumn] {
        match leaf.column {
            Some(at) => &self.columns[at..=at],
            None => &self.columns,
        }
    }

    /// The columns that any leaf asks for.
    pub(crate) fn asked_columns(&self) -> impl Iterator<Item = &SidecarColumn> {
        self.leaves.iter().flat_map(|leaf| self.columns_of(leaf))
    }
}

/// What is wrong with a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("query `{text}`, character {at}: {detail}")]
pub struct QueryError {
    /// The query.
    pub text: String,
    /// Where, counted in characters from 1.
    pub at: usize,
    /// What is wrong and the remedy.
    pub detail: String,
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(&self.expression, f)
    }
}

impl Query {
    fn show(&self, expression: &Expression, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |parts: &[Expression], between: &str, f: &mut fmt::Formatter<'_>| {
            f.write_str("(")?;
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    f.write_str(between)?;
                }
                self.show(part, f)?;
            }
            f.write_str(")")
        };
        match expression {
            Expression::Leaf(leaf) => {
                let leaf = &self.leaves[*leaf];
                if let Some(column) = leaf.column {
                    write!(f, "{}:", self.columns[column].name)?;
                }
                match &leaf.words[..] {
                    [word] => f.write_str(word),
                    words => write!(f, "\"{}\"", words.join(" ")),
                }
            }
            Expression::All(parts) => list(parts, " AND ", f),
            Expression::Any(parts) => list(parts, " OR ", f),
            Expression::Not(part) => {
                f.write_str("NOT ")?;
                self.show(part, f)
            }
        }
    }
}
