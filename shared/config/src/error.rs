//! What is wrong in a configuration, with place and remedy.

use std::fmt;

/// One problem. Prints as `firn.yaml:12: compaction.targetSizeMb: "abc" is not a whole number of megabytes; write for
/// example 128`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file as it was named.
    pub file: String,
    /// Line from 1; None when the problem has no line (a file that cannot be read).
    pub line: Option<usize>,
    /// Dotted key; empty for the file as a whole.
    pub key: String,
    /// What is wrong and what to do. Never holds a secret; a value from the environment is shown as `${NAME}`.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Everything that is wrong, in the order of the lines: all of it is found in one go. Prints one problem a line.
/// The caller stops: nothing may run with a configuration that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_file_line_key_and_message() {
        let error = |line, key: &str| ConfigError {
            file: "firn.yaml".into(),
            line,
            key: key.into(),
            message: "is wrong".into(),
        };
        let errors = ConfigErrors(vec![error(None, ""), error(Some(3), ""), error(Some(12), "catalog.uri")]);
        let expected = "firn.yaml: is wrong\nfirn.yaml:3: is wrong\nfirn.yaml:12: catalog.uri: is wrong";
        assert_eq!(errors.to_string(), expected);
    }
}
