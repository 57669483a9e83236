//! The YAML text as a tree in which every key and value knows its line.
//!
//! Built from the parser's events and not from a ready-made map: a map drops the first of two equal keys silently, and
//! a configuration in which one of two values wins by chance must be refused.

use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle};

/// How deep lists and mappings may be nested; a guard for the stack, far above any real file.
const DEPTH_LIMIT: usize = 100;

/// A value and the line (from 1) on which it starts.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// What stands there.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Scalar(Scalar),
    List(Vec<Rc<Node>>),
    Mapping(Vec<Entry>),
}

/// One key of a mapping. Equal keys are kept, so that they can be refused.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// None when the key is a list or a mapping.
    pub(crate) key: Option<String>,
    pub(crate) line: usize,
    pub(crate) node: Rc<Node>,
}

/// A scalar as it was written.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Without quotes, not a block and without the tag `!!str`: null, numbers and booleans are only read from such.
    pub(crate) plain: bool,
}

impl Scalar {
    /// Whether this stands for "nothing written" in YAML's core schema.
    pub(crate) fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.is_null())
    }

    /// What to call this value in a message about a wrong type.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }
}

/// Why the text is not one YAML document, with the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Reads the only document of `text`; None when the text is empty or only comments.
pub(crate) fn parse(text: &str) -> Result<Option<Rc<Node>>, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let line = error.marker().line();
            let variable = text.lines().nth(line.saturating_sub(1)).is_some_and(|text| text.contains("${"));
            let remedy = match variable {
                true => "put quotes around \"${NAME}\", which is needed between { and }",
                false => "indent with spaces and quote texts that contain `: ` or ` #`",
            };
            YamlError { line, message: format!("not YAML: {}; {remedy}", error.info()) }
        })?;
        builder.take(event, span.start.line())?;
    }
    Ok(builder.document)
}

#[derive(Debug)]
struct Open {
    line: usize,
    anchor: usize,
    kind: OpenKind,
}

#[derive(Debug)]
enum OpenKind {
    List(Vec<Rc<Node>>),
    /// Entries so far, and the key that waits for its value.
    Mapping(Vec<Entry>, Option<(Option<String>, usize)>),
}

#[derive(Debug, Default)]
struct Builder {
    open: Vec<Open>,
    anchors: Vec<(usize, Rc<Node>)>,
    document: Option<Rc<Node>>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text_tag = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let plain = style == ScalarStyle::Plain && !text_tag;
                let value = Value::Scalar(Scalar { text: text.into_owned(), plain });
                self.finish(Rc::new(Node { line, value }), line, anchor)
            }
            Event::SequenceStart(anchor, _) => self.start(line, anchor, OpenKind::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.start(line, anchor, OpenKind::Mapping(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                let value = match open.kind {
                    OpenKind::List(items) => Value::List(items),
                    OpenKind::Mapping(entries, _) => Value::Mapping(entries),
                };
                self.finish(Rc::new(Node { line: open.line, value }), open.line, open.anchor)
            }
            Event::Alias(anchor) => {
                let known = self.anchors.iter().rev().find(|(id, _)| *id == anchor).map(|(_, node)| Rc::clone(node));
                let node = known.ok_or_else(|| YamlError {
                    line,
                    message: "an alias (`*name`) stands inside its own anchor".into(),
                })?;
                self.finish(node, line, 0)
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn start(&mut self, line: usize, anchor: usize, kind: OpenKind) -> Result<(), YamlError> {
        if self.open.len() >= DEPTH_LIMIT {
            let message = format!("nested more than {DEPTH_LIMIT} levels deep");
            return Err(YamlError { line, message });
        }
        self.open.push(Open { line, anchor, kind });
        Ok(())
    }

    fn finish(&mut self, node: Rc<Node>, line: usize, anchor: usize) -> Result<(), YamlError> {
        if anchor > 0 {
            self.anchors.push((anchor, Rc::clone(&node)));
        }
        match self.open.last_mut().map(|open| &mut open.kind) {
            Some(OpenKind::List(items)) => items.push(node),
            Some(OpenKind::Mapping(entries, waiting)) => match waiting.take() {
                Some((key, line)) => entries.push(Entry { key, line, node }),
                None => {
                    let key = match &node.value {
                        Value::Scalar(scalar) => Some(scalar.text.clone()),
                        Value::List(_) | Value::Mapping(_) => None,
                    };
                    *waiting = Some((key, line));
                }
            },
            None if self.document.is_some() => {
                let message = "a second YAML document (`---`) begins here; keep one in the file".into();
                return Err(YamlError { line, message });
            }
            None => self.document = Some(node),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(text: &str) -> Vec<(Option<String>, usize)> {
        let node = parse(text).unwrap().unwrap();
        let Value::Mapping(entries) = &node.value else { panic!("{node:?}") };
        entries.iter().map(|entry| (entry.key.clone(), entry.line)).collect()
    }

    #[test]
    fn equal_keys_and_lines_are_kept() {
        let text = "# first\na: 1\n\nb: {c: 2,\n  d: 3}\na: 4\n? [x]\n: 5\n";
        let expected = [(Some("a"), 2), (Some("b"), 4), (Some("a"), 6), (None, 7)];
        assert_eq!(entries(text), expected.map(|(key, line)| (key.map(str::to_owned), line)));
    }

    #[test]
    fn aliases_stand_for_their_anchor() {
        let node = parse("a: &x [1, 2]\nb: *x\n").unwrap().unwrap();
        let Value::Mapping(entries) = &node.value else { panic!("{node:?}") };
        assert!(matches!(&entries[1].node.value, Value::List(items) if items.len() == 2));
        assert_eq!(entries[1].line, 2);
        assert!(parse("a: &x [*x]\n").is_err());
    }

    #[test]
    fn only_plain_scalars_can_be_null() {
        let node = parse("[~, '', null, \"null\", !!str null, '~', ]").unwrap().unwrap();
        let Value::List(items) = &node.value else { panic!("{node:?}") };
        let nulls: Vec<bool> = items.iter().map(|item| item.is_null()).collect();
        assert_eq!(nulls, [true, false, true, false, false, false]);
    }

    #[test]
    fn what_is_not_one_document_is_refused_with_its_line() {
        assert!(parse("").unwrap().is_none());
        assert!(parse("# nothing\n").unwrap().is_none());
        assert_eq!(parse("a: 1\n---\nb: 2\n").unwrap_err().line, 3);
        let error = parse("a: 1\nb:\n\t- 2\n").unwrap_err();
        assert_eq!(error.line, 3, "{error:?}");
        assert!(error.message.starts_with("not YAML: "), "{error:?}");
        assert!(parse(&"[".repeat(200)).unwrap_err().message.contains("100 levels"));
    }

    proptest! {
        #[test]
        fn any_text_ends_in_a_tree_or_an_error(text in "[ \\n\\t:\\-\\[\\]{}&*!|>'\"%@`a-c0-9#,?~<.]{0,60}") {
            let _ = parse(&text);
        }
    }
}
