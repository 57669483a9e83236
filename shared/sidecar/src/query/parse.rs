//! From text to a query.

use super::{Expression, Leaf, Query, QueryError};
use crate::identity::SidecarColumn;
use crate::text::words::words;

/// Brackets within brackets at most: each takes a bit of the stack.
const MOST_DEPTH: usize = 64;

pub(super) fn parse(text: &str, columns: &[SidecarColumn], others: &[&str]) -> Result<Query, QueryError> {
    let mut parser = Parser { text, columns, others, tokens: tokens(text)?, next: 0, depth: 0, leaves: Vec::new() };
    if parser.tokens.is_empty() {
        return Err(error(text, 0, "it is empty: give a word to look for"));
    }
    let expression = parser.any()?;
    if let Some(token) = parser.peek() {
        let detail = format!("`{}` closes nothing", token.kind.show());
        return Err(error(text, token.start, detail));
    }
    Ok(Query { columns: columns.to_vec(), leaves: parser.leaves, expression })
}

fn error(text: &str, byte: usize, detail: impl Into<String>) -> QueryError {
    QueryError { text: text.to_owned(), at: text[..byte].chars().count() + 1, detail: detail.into() }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    start: usize,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    And,
    Or,
    Not,
    /// Characters without blanks, or what stood between quotes, with the column before it.
    Text(Option<String>, String),
}

impl Kind {
    fn show(&self) -> &str {
        match self {
            Kind::Open => "(",
            Kind::Close => ")",
            Kind::And => "AND",
            Kind::Or => "OR",
            Kind::Not => "NOT",
            Kind::Text(_, text) => text,
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let start = at;
        at += character.len_utf8();
        let kind = match character {
            blank if blank.is_whitespace() => continue,
            '(' => Kind::Open,
            ')' => Kind::Close,
            '-' => Kind::Not,
            '"' => {
                let (quoted, end) = quoted(text, start)?;
                at = end;
                Kind::Text(None, quoted)
            }
            _ => {
                let ends = |character: char| character.is_whitespace() || matches!(character, '(' | ')' | '"');
                at = text[start..].find(ends).map_or(text.len(), |length| start + length);
                let word = &text[start..at];
                if let Some(column) = word.strip_suffix(':').filter(|_| text[at..].starts_with('"')) {
                    let (quoted, end) = quoted(text, at)?;
                    at = end;
                    Kind::Text(Some(column.to_owned()), quoted)
                } else {
                    match (word, word.split_once(':')) {
                        ("AND", _) => Kind::And,
                        ("OR", _) => Kind::Or,
                        ("NOT", _) => Kind::Not,
                        (_, Some((column, rest))) => Kind::Text(Some(column.to_owned()), rest.to_owned()),
                        _ => Kind::Text(None, word.to_owned()),
                    }
                }
            }
        };
        tokens.push(Token { start, kind });
    }
    Ok(tokens)
}

/// What stands between the quote at `start` and the next one, and where that ends.
fn quoted(text: &str, start: usize) -> Result<(String, usize), QueryError> {
    match text[start + 1..].find('"') {
        Some(length) => Ok((text[start + 1..start + 1 + length].to_owned(), start + length + 2)),
        None => Err(error(text, start, "the quote is not closed: add `\"`")),
    }
}

struct Parser<'a> {
    text: &'a str,
    columns: &'a [SidecarColumn],
    others: &'a [&'a str],
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    leaves: Vec<Leaf>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self, kind: &Kind) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == *kind);
        self.next += usize::from(found);
        found
    }

    fn any(&mut self) -> Result<Expression, QueryError> {
        let mut parts = vec![self.all()?];
        while self.take(&Kind::Or) {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, QueryError> {
        let mut parts = vec![self.not()?];
        loop {
            let named = self.take(&Kind::And);
            match self.peek().map(|token| &token.kind) {
                None | Some(Kind::Close | Kind::Or) if !named => break,
                _ => parts.push(self.not()?),
            }
        }
        Ok(one_or(parts, Expression::All))
    }

    fn not(&mut self) -> Result<Expression, QueryError> {
        if self.take(&Kind::Not) {
            return Ok(Expression::Not(Box::new(self.deeper(Parser::not)?)));
        }
        let Some(token) = self.peek().cloned() else {
            return Err(error(self.text, self.text.len(), "it ends where a word should be"));
        };
        match token.kind {
            Kind::Open => {
                self.next += 1;
                let inner = self.deeper(Parser::any)?;
                if self.take(&Kind::Close) {
                    return Ok(inner);
                }
                Err(error(self.text, token.start, "the bracket is not closed: add `)`"))
            }
            Kind::Text(column, text) => {
                self.next += 1;
                self.leaf(token.start, column, text)
            }
            kind => Err(error(self.text, token.start, format!("`{}` where a word should be", kind.show()))),
        }
    }

    fn deeper(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Expression, QueryError>,
    ) -> Result<Expression, QueryError> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(error(self.text, 0, format!("more than {MOST_DEPTH} brackets and NOTs are within each other")));
        }
        let found = inner(self);
        self.depth -= 1;
        found
    }

    fn leaf(&mut self, start: usize, column: Option<String>, text: String) -> Result<Expression, QueryError> {
        let named = column.as_ref().map(|name| self.columns.iter().position(|column| column.name == *name));
        let (column, text) = match (named, column) {
            (Some(Some(at)), _) => (Some(at), text),
            (Some(None), Some(before)) if self.others.contains(&before.as_str()) => {
                let known: Vec<_> = self.columns.iter().map(|column| column.name.as_str()).collect();
                let detail =
                    format!("column `{before}` is not in tantivy.indexingColumns, which has {}", known.join(", "));
                return Err(error(self.text, start, detail));
            }
            // No column of the dataset: the colon is a character as any other.
            (Some(None), Some(before)) => (None, format!("{before}:{text}")),
            _ => (None, text),
        };
        let words = words(&text);
        if words.is_empty() {
            let detail = format!("`{text}` has no letter and no digit, and only words of those can be found");
            return Err(error(self.text, start, detail));
        }
        self.leaves.push(Leaf { column, words });
        Ok(Expression::Leaf(self.leaves.len() - 1))
    }
}

fn one_or(mut parts: Vec<Expression>, many: impl FnOnce(Vec<Expression>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}
