//! `backfillWriters`: whose files get a text index although they are not merged.

use regex::{Regex, RegexBuilder};

use crate::dataset::Dataset;
use crate::section::Section;

pub(crate) const KEY: &str = "backfillWriters";

/// Without the key: Firn itself, and the ingestor that shares its configuration (compactor specification, "Text index backfill").
const DEFAULT: [&str; 2] = ["^firn version ", "^tracelake"];

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

impl Dataset {
    /// Whether a file gets a text index whose footer says that `created_by` wrote it: a pattern of `backfillWriters` is found in it, upper
    /// and lower case alike.
    pub fn backfills_files_of(&self, created_by: &str) -> bool {
        let found = |pattern: &str| compile(pattern).is_ok_and(|pattern| pattern.is_match(created_by));
        self.backfill_patterns().into_iter().any(found)
    }

    /// The patterns of `backfillWriters`, those of Firn and its ingestor without the key.
    pub fn backfill_patterns(&self) -> Vec<&str> {
        match &self.backfill_writers[..] {
            [] => DEFAULT.to_vec(),
            own => own.iter().map(String::as_str).collect(),
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).case_insensitive(true).size_limit(PATTERN_BYTES).build()
}

/// Notes patterns that are none.
pub(crate) fn check(section: &Section<'_>, patterns: &[String]) {
    for pattern in patterns {
        if let Err(error) = compile(pattern) {
            let error = error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            section
                .fault(KEY, format!("\"{pattern}\" is no regular expression ({error}); for any writer write \".*\""));
        }
    }
}
