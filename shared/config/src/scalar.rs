//! What a single value means. YAML's core schema decides what a value without quotes is: `128` is a number, `true` a
//! boolean; a value from the environment is a text and may become any of them.

use std::fmt;

use crate::environment::Expanded;
use crate::yaml::Scalar;

/// How many characters of a wrong value a message shows.
const SHOWN_CHARACTERS: usize = 80;

/// A wrong value as a message quotes it: as it stands in the file, so that nothing from the environment is printed.
pub(crate) struct Shown(String);

impl Shown {
    pub(crate) fn new(scalar: &Scalar, expanded: &Expanded) -> Self {
        let mut text: String = scalar.text.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
        if scalar.text.chars().count() > SHOWN_CHARACTERS {
            text.push('…');
        }
        // `escape_debug` also escapes single quotes, which needs no care between double ones.
        let text = text.replace("\\'", "'");
        Self(if expanded.from_environment { format!("the value of \"{text}\"") } else { format!("\"{text}\"") })
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A whole number: its key, default and limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    pub(crate) key: &'static str,
    /// What is counted, for messages: `megabytes`.
    pub(crate) unit: &'static str,
    pub(crate) default: u64,
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// Reads a number within its limits.
pub(crate) fn whole(scalar: &Scalar, expanded: &Expanded, spec: &Whole) -> Result<u64, String> {
    let Whole { unit, default, least, most, .. } = spec;
    let shown = Shown::new(scalar, expanded);
    let text = expanded.text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return Err(format!("{shown} is not a whole number of {unit}; write for example {default}"));
    }
    if !scalar.plain && !expanded.from_environment {
        return Err(format!("{shown} is a text; write {text} without quotes"));
    }
    match text.parse() {
        Ok(value) if (*least..=*most).contains(&value) => Ok(value),
        Ok(value) if value < *least => Err(format!("{shown} is too small; the least is {least} ({unit})")),
        _ => Err(format!("{shown} is too large; the most is {most} ({unit})")),
    }
}

/// Reads `true` or `false`.
pub(crate) fn flag(scalar: &Scalar, expanded: &Expanded) -> Result<bool, String> {
    match expanded.text.trim() {
        "true" | "True" | "TRUE" if scalar.plain || expanded.from_environment => Ok(true),
        "false" | "False" | "FALSE" if scalar.plain || expanded.from_environment => Ok(false),
        _ => Err(format!("{} is not a boolean; write true or false, without quotes", Shown::new(scalar, expanded))),
    }
}

/// Reads a text without the blanks around it.
pub(crate) fn text<'a>(scalar: &Scalar, expanded: &'a Expanded) -> Result<&'a str, String> {
    exact_text(scalar, expanded).and_then(|text| match text.trim() {
        "" => Err("is empty; remove the key or give a value".into()),
        text => Ok(text),
    })
}

/// Reads a text as it stands.
pub(crate) fn exact_text<'a>(scalar: &Scalar, expanded: &'a Expanded) -> Result<&'a str, String> {
    if expanded.text.is_empty() {
        return Err("is empty; remove it or give a value".into());
    }
    if scalar.plain && !expanded.from_environment && (is_number(&scalar.text) || is_boolean(&scalar.text)) {
        let kind = if is_number(&scalar.text) { "a number" } else { "a boolean" };
        return Err(format!("{} is {kind}, not a text; put it in quotes", Shown::new(scalar, expanded)));
    }
    Ok(&expanded.text)
}

fn is_boolean(text: &str) -> bool {
    matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
}

fn is_number(text: &str) -> bool {
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return !hexadecimal.is_empty() && hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    }
    let unsigned = text.trim_start_matches(['+', '-']);
    let named = matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN");
    // Rust also reads `inf` and `nan`, which are texts in YAML.
    let starts_as_number = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    named || (starts_as_number && text.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Whole = Whole { key: "targetSizeMb", unit: "megabytes", default: 128, least: 1, most: 1000 };

    fn plain(text: &str) -> (Scalar, Expanded) {
        (Scalar { text: text.into(), plain: true }, Expanded { text: text.into(), from_environment: false })
    }

    fn quoted(text: &str) -> (Scalar, Expanded) {
        let (scalar, expanded) = plain(text);
        (Scalar { plain: false, ..scalar }, expanded)
    }

    fn variable(value: &str) -> (Scalar, Expanded) {
        let scalar = Scalar { text: "${SECRET}".into(), plain: false };
        (scalar, Expanded { text: value.into(), from_environment: true })
    }

    #[test]
    fn whole_numbers() {
        let read = |(scalar, expanded): (Scalar, Expanded)| whole(&scalar, &expanded, &SPEC);
        assert_eq!(read(plain("64")), Ok(64));
        assert_eq!(read(variable(" 64\n")), Ok(64));
        let not_whole = |shown: &str| Err(format!("{shown} is not a whole number of megabytes; write for example 128"));
        for text in ["abc", "1.5", "-1", "1e2", "0x10", "064", "1_000", "+5"] {
            assert_eq!(read(plain(text)), not_whole(&format!("\"{text}\"")), "{text}");
        }
        assert_eq!(read(variable("hunter2")), not_whole("the value of \"${SECRET}\""));
        assert_eq!(read(quoted("64")), Err("\"64\" is a text; write 64 without quotes".into()));
        assert_eq!(read(plain("0")), Err("\"0\" is too small; the least is 1 (megabytes)".into()));
        assert_eq!(read(plain("1001")), Err("\"1001\" is too large; the most is 1000 (megabytes)".into()));
        let huge = "99999999999999999999999";
        assert_eq!(read(plain(huge)), Err(format!("\"{huge}\" is too large; the most is 1000 (megabytes)")));
    }

    #[test]
    fn flags() {
        let read = |(scalar, expanded): (Scalar, Expanded)| flag(&scalar, &expanded);
        assert_eq!(read(plain("true")), Ok(true));
        assert_eq!(read(plain("False")), Ok(false));
        assert_eq!(read(variable("true")), Ok(true));
        for wrong in [plain("yes"), plain("1"), quoted("true"), variable("on")] {
            assert!(read(wrong).unwrap_err().ends_with("write true or false, without quotes"));
        }
    }

    #[test]
    fn texts() {
        let read = |(scalar, expanded): (Scalar, Expanded)| text(&scalar, &expanded).map(str::to_owned);
        for good in ["readings", "nan", "inf", "infinity", "off", "no", "1h", "2026-01-01", "12ab", "-", "."] {
            assert_eq!(read(plain(good)), Ok(good.into()));
        }
        assert_eq!(read(quoted(" 12 ")), Ok("12".into()));
        assert_eq!(read(variable("12")), Ok("12".into()));
        for number in ["12", "1e5", "0x1F", "0o17", "-.5", ".inf", "1."] {
            assert_eq!(read(plain(number)), Err(format!("\"{number}\" is a number, not a text; put it in quotes")));
        }
        assert_eq!(read(plain("true")), Err("\"true\" is a boolean, not a text; put it in quotes".into()));
        assert!(read(quoted("")).unwrap_err().starts_with("is empty"));
        assert!(read(variable(" ")).unwrap_err().starts_with("is empty"));
    }

    #[test]
    fn long_and_odd_values_are_shown_short_and_escaped() {
        let (scalar, expanded) = quoted(&"x".repeat(200));
        assert_eq!(Shown::new(&scalar, &expanded).to_string(), format!("\"{}…\"", "x".repeat(80)));
        let (scalar, expanded) = quoted("it's\n\"new\"");
        assert_eq!(Shown::new(&scalar, &expanded).to_string(), "\"it's\\n\\\"new\\\"\"");
    }
}
