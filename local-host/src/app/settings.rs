//! App settings: `local.settings.json`, the environment, and what the caller gives.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::error::AppError;
use super::json;

/// The file that Core Tools reads them from.
const FILE: &str = "local.settings.json";

/// App settings, by name. Names are compared without case.
#[derive(Clone, Default)]
pub struct Settings {
    values: BTreeMap<String, String>,
}

/// Settings hold secrets: only names are shown.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Settings {
    pub(super) fn load(
        root: &Path,
        extra: &BTreeMap<String, String>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Settings, AppError> {
        let mut settings = Settings::default();
        let file = root.join(FILE);
        if file.is_file() {
            let object = json::read(&file)?;
            let reader = json::Reader { file: &file, object: &object };
            if reader.boolean("IsEncrypted", false)? {
                return Err(reader.wrong("IsEncrypted", "encrypted settings cannot be read; run func settings decrypt"));
            }
            let values = match reader.value("Values") {
                None => None,
                Some(Value::Object(values)) => Some(values),
                Some(_) => return Err(reader.wrong("Values", "is not an object")),
            };
            for (name, value) in values.into_iter().flatten() {
                match value {
                    Value::String(text) => settings.set(name, text),
                    Value::Bool(_) | Value::Number(_) => settings.set(name, &value.to_string()),
                    _ => return Err(reader.wrong(&format!("Values.{name}"), "is not a text")),
                }
            }
        }
        for (name, value) in environment {
            settings.set(&name, &value);
        }
        for (name, value) in extra {
            settings.set(name, value);
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.values.retain(|known, _| !known.eq_ignore_ascii_case(name));
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// The value of a setting; an empty one counts as missing.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// All settings.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of the setting that the `connection` of a binding names: the setting itself, or with `AzureWebJobs` before it.
    ///
    /// # Errors
    /// [`AppError::Setting`] when there is none.
    pub fn connection(&self, name: &str, used_by: &str) -> Result<&str, AppError> {
        let prefixed = format!("AzureWebJobs{name}");
        self.get(name)
            .or_else(|| self.get(&prefixed))
            .ok_or_else(|| AppError::Setting { name: name.to_owned(), used_by: used_by.to_owned() })
    }

    /// Replaces every `%NAME%` by its setting; Err names the one that is missing.
    pub(crate) fn expand(&self, text: &str) -> Result<String, String> {
        expand(text, |name| self.get(name).map(str::to_owned).ok_or_else(|| name.to_owned()))
    }
}

/// Replaces every `%NAME%` by what `value_of` gives. A lone `%` stays.
pub(crate) fn expand<E>(text: &str, value_of: impl Fn(&str) -> Result<String, E>) -> Result<String, E> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        let Some((name, following)) = after.split_once('%') else { break };
        expanded.push_str(before);
        if name.is_empty() {
            expanded.push_str("%%");
        } else {
            expanded.push_str(&value_of(name)?);
        }
        rest = following;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wins() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"IsEncrypted":false,"Values":{"A":"file","b":"file","C":"file","N":5}}"#;
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let extra = BTreeMap::from([("c".to_owned(), "extra".to_owned())]);
        let environment = [("B".to_owned(), "env".to_owned()), ("C".to_owned(), "env".to_owned())];
        let settings = Settings::load(folder.path(), &extra, environment).unwrap();
        assert_eq!(["A", "B", "C", "N"].map(|name| settings.get(name).unwrap()), ["file", "env", "extra", "5"]);
        assert_eq!(settings.get("D"), None);
        assert!(!format!("{settings:?}").contains("extra"));
    }

    #[test]
    fn connections_and_percent_names() {
        let extra = BTreeMap::from([("AzureWebJobsStorage".to_owned(), "x=1".to_owned())]);
        let settings = Settings::load(Path::new("/nowhere"), &extra, []).unwrap();
        assert_eq!(settings.connection("AzureWebJobsStorage", "f").unwrap(), "x=1");
        assert_eq!(settings.connection("Storage", "f").unwrap(), "x=1");
        let error = settings.connection("Other", "function compact").unwrap_err().to_string();
        assert!(error.starts_with("app setting \"Other\" is missing (function compact)"), "{error}");
        assert_eq!(settings.expand("a%AzureWebJobsStorage%b 5% c"), Ok("ax=1b 5% c".to_owned()));
        assert_eq!(settings.expand("%FIRN_TIMER%"), Err("FIRN_TIMER".to_owned()));
    }
}
