//! What is common to a whole file while it is read: its name, the environment, the lines of keys, the problems found.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::environment::Environment;
use crate::error::{ConfigError, ConfigErrors};

/// The line of every key that was looked at, so that later problems (a column that the table lacks) can name it too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// The line of a key, else of the nearest mapping around it.
    pub(crate) fn of(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

pub(crate) struct Reader<'a> {
    file: &'a str,
    environment: &'a dyn Environment,
    found: RefCell<Found>,
}

#[derive(Debug, Default)]
struct Found {
    lines: Lines,
    errors: Vec<ConfigError>,
    warnings: Vec<ConfigError>,
    faulty: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a str, environment: &'a dyn Environment) -> Self {
        Self { file, environment, found: RefCell::default() }
    }

    pub(crate) fn environment(&self) -> &'a dyn Environment {
        self.environment
    }

    /// The first line noted for a path is kept.
    pub(crate) fn note_line(&self, path: &str, line: usize) {
        self.found.borrow_mut().lines.0.entry(path.to_owned()).or_insert(line);
    }

    pub(crate) fn line_of(&self, path: &str) -> Option<usize> {
        self.found.borrow().lines.of(path)
    }

    /// Notes a problem on the line of its key.
    pub(crate) fn fault(&self, path: &str, message: String) {
        self.push(self.line_of(path), path, message);
    }

    pub(crate) fn fault_at(&self, line: usize, path: &str, message: String) {
        self.push(Some(line), path, message);
    }

    pub(crate) fn warn_at(&self, line: usize, path: &str, message: String) {
        self.push_warning(Some(line), path, message);
    }

    /// Notes what is allowed and hardly meant, on the line of its key where it stands in the file.
    pub(crate) fn warn(&self, path: &str, message: String) {
        self.push_warning(self.line_of(path), path, message);
    }

    fn push_warning(&self, line: Option<usize>, path: &str, message: String) {
        let warning = ConfigError { file: self.file.to_owned(), line, key: path.to_owned(), message };
        self.found.borrow_mut().warnings.push(warning);
    }

    fn push(&self, line: Option<usize>, path: &str, message: String) {
        let error = ConfigError { file: self.file.to_owned(), line, key: path.to_owned(), message };
        let mut found = self.found.borrow_mut();
        found.faulty.insert(path.to_owned());
        if !found.errors.contains(&error) {
            found.errors.push(error);
        }
    }

    /// Whether no problem was noted for any of these keys: a combination with a wrong value says nothing more.
    pub(crate) fn sound(&self, paths: &[&str]) -> bool {
        let found = self.found.borrow();
        !paths.iter().any(|path| found.faulty.contains(*path))
    }

    /// The lines and the warnings, or every problem by line.
    pub(crate) fn finish(self) -> Result<(Lines, Vec<ConfigError>), ConfigErrors> {
        let Found { lines, mut errors, warnings, .. } = self.found.into_inner();
        if errors.is_empty() {
            return Ok((lines, warnings));
        }
        errors.sort_by_key(|error| error.line);
        Err(ConfigErrors(errors))
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("file", &self.file).field("found", &self.found).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_that_of_the_key_or_of_what_is_around_it() {
        let mut lines = Lines::default();
        lines.0.insert("catalog".into(), 3);
        lines.0.insert("catalog.uri".into(), 5);
        lines.0.insert("ingestion.datasets".into(), 9);
        assert_eq!(lines.of("catalog.uri"), Some(5));
        assert_eq!(lines.of("catalog.name"), Some(3));
        assert_eq!(lines.of("ingestion.datasets[readings].table"), Some(9));
        assert_eq!(lines.of("storage.account"), None);
    }
}
