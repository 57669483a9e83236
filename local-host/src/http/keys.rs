//! Keys of HTTP functions and of the admin endpoint.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::AuthLevel;

/// File in the state folder.
const FILE: &str = "keys.json";

/// The keys of a host. `Debug` shows none.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// Opens everything, the admin endpoint too.
    pub master: String,
    /// Opens functions of level `function`.
    pub function: String,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(***)")
    }
}

impl Keys {
    /// New keys.
    pub fn generate() -> Keys {
        let key = || format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Keys { master: key(), function: key() }
    }

    /// The keys that a folder keeps; new ones when it keeps none. The file can be read by its owner only.
    ///
    /// # Errors
    /// When the folder or file cannot be read or written.
    pub fn kept_in(folder: &Path) -> std::io::Result<Keys> {
        let file = folder.join(FILE);
        if let Ok(text) = std::fs::read_to_string(&file)
            && let Some(keys) = Self::parse(&text)
        {
            return Ok(keys);
        }
        let keys = Self::generate();
        let text = json!({"masterKey": keys.master, "functionKey": keys.function}).to_string();
        std::fs::create_dir_all(folder)?;
        write_private(&file, &text)?;
        Ok(keys)
    }

    fn parse(text: &str) -> Option<Keys> {
        let value: Value = serde_json::from_str(text).ok()?;
        let key = |name: &str| value.get(name)?.as_str().filter(|key| !key.is_empty()).map(str::to_owned);
        Some(Keys { master: key("masterKey")?, function: key("functionKey")? })
    }

    /// Whether `given` opens what needs `level`.
    pub fn opens(&self, level: AuthLevel, given: Option<&str>) -> bool {
        let is = |key: &str| given.is_some_and(|given| same(given, key));
        match level {
            AuthLevel::Anonymous => true,
            AuthLevel::Function => is(&self.function) || is(&self.master),
            AuthLevel::Admin => is(&self.master),
        }
    }
}

/// Writes a file that only its owner can read.
///
/// # Errors
/// As the file system says.
pub fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text.as_bytes())
}

/// Compares without telling by its time where two keys differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_opens() {
        let keys = Keys { master: "m".into(), function: "f".into() };
        for (level, opened_by) in [
            (AuthLevel::Anonymous, vec![None, Some("x"), Some("f"), Some("m")]),
            (AuthLevel::Function, vec![Some("f"), Some("m")]),
            (AuthLevel::Admin, vec![Some("m")]),
        ] {
            for given in [None, Some(""), Some("x"), Some("f"), Some("m")] {
                assert_eq!(
                    keys.opens(level, given),
                    opened_by.contains(&given) || level == AuthLevel::Anonymous,
                    "{level:?} {given:?}"
                );
            }
        }
        assert!(!format!("{:?}", Keys::generate()).contains(&Keys::generate().master));
    }

    #[test]
    fn keys_stay_the_same_from_start_to_start() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let keys = Keys::kept_in(&state).unwrap();
        assert_eq!(Keys::kept_in(&state).unwrap(), keys);
        assert_ne!(keys.master, keys.function);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(state.join(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::write(state.join(FILE), "junk").unwrap();
        assert_ne!(Keys::kept_in(&state).unwrap(), keys);
    }
}
