//! `${NAME}` in a value comes from the environment (design section 3).

use std::collections::{BTreeMap, HashMap};

/// Where `${NAME}` is looked up.
pub trait Environment {
    /// The variable's value; None when it is not set (or not Unicode).
    fn variable(&self, name: &str) -> Option<String>;
}

/// The environment of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

impl Environment for BTreeMap<String, String> {
    fn variable(&self, name: &str) -> Option<String> {
        self.get(name).cloned()
    }
}

impl Environment for HashMap<String, String> {
    fn variable(&self, name: &str) -> Option<String> {
        self.get(name).cloned()
    }
}

/// A value after substitution.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// At least one part came from the environment: the text may be a secret, whatever its key.
    pub(crate) from_environment: bool,
}

/// Replaces every `${NAME}`. What is inserted is not looked at again. The error lists all that is wrong.
pub(crate) fn expand(raw: &str, environment: &dyn Environment) -> Result<Expanded, Vec<String>> {
    let mut text = String::with_capacity(raw.len());
    let mut problems = Vec::new();
    let mut from_environment = false;
    let mut rest = raw;
    while let Some(at) = rest.find("${") {
        text.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let Some(end) = after.find('}') else {
            problems.push("`${` has no closing `}`; write ${NAME}".to_owned());
            rest = "";
            break;
        };
        let name = &after[..end];
        rest = &after[end + 1..];
        if !is_name(name) {
            problems.push(format!("`${{{name}}}` is not the name of a variable; write ${{NAME}}"));
            continue;
        }
        match environment.variable(name) {
            Some(value) => {
                from_environment = true;
                text.push_str(&value);
            }
            None => problems.push(format!("environment variable {name} is not set; set it or write the value here")),
        }
    }
    text.push_str(rest);
    if problems.is_empty() { Ok(Expanded { text, from_environment }) } else { Err(problems) }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> BTreeMap<String, String> {
        [("A", "one"), ("B_2", "${A}"), ("EMPTY", "")].map(|(name, value)| (name.into(), value.into())).into()
    }

    #[test]
    fn variables_are_inserted_as_they_stand() {
        for (raw, expected, from_environment) in [
            ("plain $A {A} $", "plain $A {A} $", false),
            ("${A}", "one", true),
            ("<${A}-${B_2}>", "<one-${A}>", true),
            ("${EMPTY}", "", true),
        ] {
            assert_eq!(expand(raw, &environment()), Ok(Expanded { text: expected.into(), from_environment }), "{raw}");
        }
    }

    #[test]
    fn every_problem_is_named() {
        let problems = expand("${NONE} ${1} ${A:-x} ${A", &environment()).unwrap_err();
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert_eq!(problems[0], "environment variable NONE is not set; set it or write the value here");
        assert!(problems[1].contains("`${1}`"));
        assert!(problems[2].contains("`${A:-x}`"));
        assert!(problems[3].contains("no closing"));
    }
}
