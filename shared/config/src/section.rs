//! Typed access to one mapping of the file. Every problem is noted with key and line, and reading goes on with the
//! default, so that all problems are found in one go.

use std::rc::Rc;

use crate::environment::{Expanded, expand};
use crate::home::{self, Stands};
use crate::nearest::{edit_distance, nearest};
use crate::reader::Reader;
use crate::scalar::{self, Shown, Whole};
use crate::secret::Secret;
use crate::yaml::{Entry, Node, Scalar, Value};

/// What to do with keys that are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// They are errors that name the nearest known key.
    Refuse,
    /// They belong to somebody else, unless within two edits of one of ours.
    TolerateDistant,
    /// They belong to somebody else; one of ours, or within two edits of one, is worth a warning.
    Ignore,
    /// Sections belong to somebody else; a single value or a list under the name of one of our keys does not.
    IgnoreSections,
}

/// How near an unknown key must be to count as a slip of ours (design section 3).
const SLIP_EDITS: usize = 2;

/// A mapping, or what stands for one that is not there.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    reader: &'a Reader<'a>,
    path: String,
    entries: &'a [Entry],
    /// Something else than a mapping stands there: what was noted about it is enough.
    broken: bool,
}

impl<'a> Section<'a> {
    /// The mapping `node`; a missing or empty one has no keys, anything else is an error.
    pub(crate) fn new(reader: &'a Reader<'a>, path: impl Into<String>, node: Option<&'a Node>) -> Self {
        let path = path.into();
        let mut broken = false;
        let entries: &[Entry] = match node.map(|node| &node.value) {
            Some(Value::Mapping(entries)) => entries,
            Some(_) if node.is_some_and(Node::is_null) => &[],
            Some(_) => {
                let kind = node.map_or("", Node::kind);
                broken = true;
                reader.fault(&path, format!("is {kind}, not a mapping; write keys below it as `key: value`"));
                &[]
            }
            None => &[],
        };
        Self { reader, path, entries, broken }
    }

    pub(crate) fn reader(&self) -> &'a Reader<'a> {
        self.reader
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The dotted path of a key of this mapping.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Notes a problem of one key.
    pub(crate) fn fault(&self, key: &str, message: impl Into<String>) {
        self.reader.fault(&self.path_of(key), message.into());
    }

    /// The value of a key; None when it is absent or null. A key that stands twice is an error.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Rc<Node>> {
        let mut found = self.entries.iter().filter(|entry| entry.key.as_deref() == Some(key));
        let first = found.next()?;
        let path = self.path_of(key);
        self.reader.note_line(&path, first.line);
        for again in found {
            self.reader.fault_at(
                again.line,
                &path,
                format!("stands a second time, first on line {}; keep one", first.line),
            );
        }
        (!first.node.is_null()).then_some(&first.node)
    }

    /// Whether a key stands in the file with a value, be it right or wrong.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.as_deref() == Some(key) && !entry.node.is_null())
    }

    /// Notes a key that must be there and is not.
    pub(crate) fn require(&self, key: &str, remedy: &str) {
        if !self.has(key) && !self.broken {
            self.fault(key, format!("is missing; {remedy}"));
        }
    }

    pub(crate) fn section(&self, key: &str) -> Section<'a> {
        Section::new(self.reader, self.path_of(key), self.get(key).map(|node| node.as_ref()))
    }

    fn scalar(&self, key: &str) -> Option<(&'a Scalar, Expanded)> {
        let node = self.get(key)?;
        let path = self.path_of(key);
        let line = self.reader.line_of(&path).unwrap_or(node.line);
        self.expanded(&path, line, node)
    }

    fn expanded(&self, path: &str, line: usize, node: &'a Node) -> Option<(&'a Scalar, Expanded)> {
        let Value::Scalar(scalar) = &node.value else {
            self.reader.fault_at(line, path, format!("is {}, not a single value", node.kind()));
            return None;
        };
        match expand(&scalar.text, self.reader.environment()) {
            Ok(expanded) => Some((scalar, expanded)),
            Err(problems) => {
                for problem in problems {
                    self.reader.fault_at(line, path, problem);
                }
                None
            }
        }
    }

    /// A text, trimmed; never empty.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let (scalar, expanded) = self.scalar(key)?;
        self.checked(key, scalar::text(scalar, &expanded).map(str::to_owned))
    }

    /// A text exactly as it stands; never empty.
    pub(crate) fn exact_text(&self, key: &str) -> Option<String> {
        let (scalar, expanded) = self.scalar(key)?;
        self.checked(key, scalar::exact_text(scalar, &expanded).map(str::to_owned))
    }

    /// A text that must not be printed, trimmed; never empty.
    pub(crate) fn secret(&self, key: &str) -> Option<Secret> {
        let (_, expanded) = self.scalar(key)?;
        let text = expanded.text.trim();
        if text.is_empty() {
            self.fault(key, "is empty; remove the key or give a value");
            return None;
        }
        Some(Secret::new(text))
    }

    /// A whole number; the default when it is absent or wrong.
    pub(crate) fn whole(&self, spec: &Whole) -> u64 {
        self.whole_if_set(spec).unwrap_or(spec.default)
    }

    /// A whole number that may be absent.
    pub(crate) fn whole_if_set(&self, spec: &Whole) -> Option<u64> {
        let (scalar, expanded) = self.scalar(spec.key)?;
        self.checked(spec.key, scalar::whole(scalar, &expanded, spec))
    }

    /// A whole number, or None for the word `off`.
    pub(crate) fn whole_or_off(&self, spec: &Whole) -> Option<Option<u64>> {
        let (scalar, expanded) = self.scalar(spec.key)?;
        if expanded.text.trim() == "off" {
            return Some(None);
        }
        self.checked(spec.key, scalar::whole(scalar, &expanded, spec).map_err(|problem| format!("{problem}, or off")))
            .map(Some)
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &str, default: bool) -> bool {
        let Some((scalar, expanded)) = self.scalar(key) else { return default };
        self.checked(key, scalar::flag(scalar, &expanded)).unwrap_or(default)
    }

    /// One of some fixed words.
    pub(crate) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let (scalar, expanded) = self.scalar(key)?;
        let found = words.iter().find(|(word, _)| *word == expanded.text).map(|(_, value)| *value);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let shown = Shown::new(scalar, &expanded);
            self.fault(key, format!("{shown} is not known; write one of {}", known.join(", ")));
        }
        found
    }

    /// A text that `read` turns into a value; its error completes the sentence that starts with the quoted text.
    pub(crate) fn parsed<T>(&self, key: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let (scalar, expanded) = self.scalar(key)?;
        let text = self.checked(key, scalar::text(scalar, &expanded))?;
        let shown = Shown::new(scalar, &expanded);
        self.checked(key, read(text).map_err(|problem| format!("{shown} {problem}")))
    }

    /// A list of texts, each exactly as it stands, none empty, none twice.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Value::List(items) = &node.value else {
            self.fault(key, format!("is {}, not a list; write for example [a, b]", node.kind()));
            return Vec::new();
        };
        let mut texts: Vec<String> = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.path_of(key));
            let Some((scalar, expanded)) = self.expanded(&path, item.line, item) else { continue };
            let read =
                scalar::exact_text(scalar, &expanded).and_then(|text| match texts.iter().any(|other| other == text) {
                    true => Err(format!("{} stands twice in the list; keep one", Shown::new(scalar, &expanded))),
                    false => Ok(text.to_owned()),
                });
            match read {
                Ok(text) => texts.push(text),
                Err(problem) => self.reader.fault_at(item.line, &path, problem),
            }
        }
        texts
    }

    /// As [`Self::texts`], but a single text may stand for a list of one.
    pub(crate) fn text_or_texts(&self, key: &str) -> Vec<String> {
        match self.get(key).map(|node| &node.value) {
            Some(Value::Scalar(_)) => self.exact_text(key).into_iter().collect(),
            _ => self.texts(key),
        }
    }

    /// The entries of a list.
    pub(crate) fn list(&self, key: &str) -> &'a [Rc<Node>] {
        match self.get(key).map(|node| (&node.value, node.kind())) {
            Some((Value::List(items), _)) => items,
            Some((_, kind)) => {
                self.fault(key, format!("is {kind}, not a list; begin each entry with `- `"));
                &[]
            }
            None => &[],
        }
    }

    /// Keys and secret values of a mapping whose keys the user chooses.
    pub(crate) fn secrets(&self, key: &str) -> Vec<(String, Secret)> {
        let inner = self.section(key);
        let names: Vec<&str> = inner.entries.iter().filter_map(|entry| entry.key.as_deref()).collect();
        let mut pairs: Vec<(String, Secret)> = Vec::with_capacity(names.len());
        for name in names {
            if pairs.iter().any(|(known, _)| known == name) {
                continue;
            }
            if let Some(secret) = inner.secret(name) {
                pairs.push((name.to_owned(), secret));
            }
        }
        pairs
    }

    fn checked<T>(&self, key: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|problem| self.fault(key, problem)).ok()
    }

    /// Judges the keys that are not known. To be called once for every section.
    pub(crate) fn finish(&self, known: &[&str], unknown: Unknown) {
        self.finish_with(known, known, unknown);
    }

    /// As [`Self::finish`], where some known keys were already judged and are not to be suggested.
    pub(crate) fn finish_with(&self, suggested: &[&str], known: &[&str], unknown: Unknown) {
        for entry in self.entries {
            let Some(key) = entry.key.as_deref() else {
                if unknown == Unknown::Refuse {
                    self.reader.fault_at(entry.line, &self.path, "has a key that is not a text".into());
                }
                continue;
            };
            if known.contains(&key) {
                continue;
            }
            let path = self.path_of(key);
            if key == "<<" {
                let message = "merge keys are not part of YAML 1.2 and would be lost; write the keys out".into();
                self.reader.fault_at(entry.line, &path, message);
                continue;
            }
            if let Some((message, refused)) = self.stands_elsewhere(key, &entry.node, unknown) {
                match refused {
                    true => self.reader.fault_at(entry.line, &path, message),
                    false => self.reader.warn_at(entry.line, &path, message),
                }
                continue;
            }
            let near = nearest(key, suggested.iter().copied());
            let slip = near.filter(|(_, edits)| *edits <= SLIP_EDITS);
            match (unknown, near, slip) {
                (Unknown::Refuse, Some((near, _)), _) => {
                    let message = format!("unknown key; the nearest known key is {}", self.path_of(near));
                    self.reader.fault_at(entry.line, &path, message);
                }
                (Unknown::TolerateDistant, _, Some((near, _))) => {
                    let message = format!("unknown key, very near to {near}; write {near} or choose another name");
                    self.reader.fault_at(entry.line, &path, message);
                }
                (Unknown::Ignore | Unknown::IgnoreSections, _, Some((near, _))) => {
                    let message = format!("not a section of Firn and ignored; did you mean {}?", self.path_of(near));
                    self.reader.warn_at(entry.line, &path, message);
                }
                _ => {}
            }
        }
    }

    /// What to say of a key of Firn's that belongs into another place, and whether it is refused.
    fn stands_elsewhere(&self, key: &str, node: &Node, unknown: Unknown) -> Option<(String, bool)> {
        let is_section = matches!(node.value, Value::Mapping(_)) || node.is_null();
        match unknown {
            Unknown::Refuse => home::remedy(key, Stands::InOurs).map(|remedy| (remedy, true)),
            Unknown::TolerateDistant => home::remedy(key, Stands::InADataset).map(|remedy| (remedy, true)),
            Unknown::Ignore | Unknown::IgnoreSections if is_section => None,
            Unknown::Ignore => {
                home::remedy(key, Stands::Outside).map(|remedy| (format!("is ignored here, and {remedy}"), false))
            }
            Unknown::IgnoreSections => match home::remedy(key, Stands::Outside) {
                Some(remedy) => Some((remedy, true)),
                None => self.slip_of_another_place(key),
            },
        }
    }

    /// A single value at the top level that is nearly a key of Firn's.
    fn slip_of_another_place(&self, key: &str) -> Option<(String, bool)> {
        let (_, near) = home::unmistakable()
            .filter(|(known, _)| known.len() > 2 * SLIP_EDITS && edit_distance(key, known) <= SLIP_EDITS)
            .min_by_key(|(known, _)| edit_distance(key, known))?;
        Some((format!("is no key of Firn and ignored; did you mean {near}?"), false))
    }
}
