//! What both languages come to: files with parameters, resources, calls of other files and outputs. Names are written as Terraform
//! writes them (`principal_id`), keys of bodies as they stand.

use std::collections::{BTreeMap, BTreeSet};

/// An expression. Two that say the same are equal, as far as the two languages allow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Null,
    /// A number, a boolean or a text without holes.
    Literal(String),
    /// A text with holes.
    Template(Vec<Value>),
    /// `account.id`, `var.name`: without the words that only one language needs.
    Reference(Vec<String>),
    Object(BTreeMap<String, Value>),
    Array(Vec<Value>),
    /// The collection, and what becomes of each element; its key is `index`, its value `each`.
    Each(Box<Value>, Box<Value>),
    Conditional(Box<[Value; 3]>),
    Operation(String, Vec<Value>),
    Call(String, Vec<Value>),
}

impl Value {
    pub(crate) fn walk(&self, visit: &mut impl FnMut(&Value)) {
        visit(self);
        match self {
            Value::Null | Value::Literal(_) | Value::Reference(_) => {}
            Value::Template(parts) | Value::Array(parts) | Value::Operation(_, parts) | Value::Call(_, parts) => {
                parts.iter().for_each(|part| part.walk(visit));
            }
            Value::Object(parts) => parts.values().for_each(|part| part.walk(visit)),
            Value::Each(collection, body) => [collection, body].iter().for_each(|part| part.walk(visit)),
            Value::Conditional(parts) => parts.iter().for_each(|part| part.walk(visit)),
        }
    }

    /// Everything that it refers to, without a closing `.id`.
    pub(crate) fn references(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.walk(&mut |value| {
            if let Value::Reference(path) = value {
                let path = path.join(".");
                found.insert(path.strip_suffix(".id").unwrap_or(&path).to_owned());
            }
        });
        found
    }

    /// The text, when it is one without holes.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Value::Literal(text) => Some(text),
            _ => None,
        }
    }

    /// The value below a dotted path of keys.
    pub(crate) fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(self, |value, key| match value {
            Value::Object(parts) => parts.get(key),
            _ => None,
        })
    }
}

/// A resource that the file makes or changes.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Type and version of its interface.
    pub(crate) kind: String,
    pub(crate) name: Value,
    /// The id of what it lies in or is about, down to what the file is given; None: the group that is deployed to.
    pub(crate) parent: Option<Vec<Value>>,
    pub(crate) body: Value,
    /// It is only there when this holds.
    pub(crate) condition: Option<Value>,
    pub(crate) repeated: bool,
}

/// A call of another file.
#[derive(Debug)]
pub(crate) struct Call {
    /// Folder or file name.
    pub(crate) module: String,
    pub(crate) arguments: BTreeMap<String, Value>,
    pub(crate) after: BTreeSet<String>,
    /// Where Bicep deploys it to; Terraform's modules are told by an argument.
    pub(crate) place: Option<Value>,
    /// It is only made when this holds.
    pub(crate) condition: Option<Value>,
    pub(crate) repeated: bool,
}

/// One module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Name, and type in Terraform's words.
    pub(crate) parameters: BTreeMap<String, String>,
    /// Parameters that a caller may leave out.
    pub(crate) optional: BTreeSet<String>,
    /// What those are then.
    pub(crate) defaults: BTreeMap<String, Value>,
    pub(crate) locals: BTreeMap<String, Value>,
    pub(crate) resources: BTreeMap<String, Resource>,
    pub(crate) calls: BTreeMap<String, Call>,
    pub(crate) outputs: BTreeMap<String, Value>,
    /// Other files whose text it reads, relative to `infra`.
    pub(crate) loads: BTreeSet<String>,
    /// What was referred to and is not declared.
    pub(crate) unknown: BTreeSet<String>,
    /// (call, output) that were asked for.
    pub(crate) asked: BTreeSet<(String, String)>,
}

/// `storageRoles` as `storage_roles`, `instanceMemoryMB` as `instance_memory_mb`.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let after_small = at > 0 && !letters[at - 1].is_ascii_uppercase() && letters[at - 1] != '_';
        if letter.is_ascii_uppercase() && after_small {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// Joins neighbours of text, so that equal texts are equal however they were cut.
pub(crate) fn template(parts: Vec<Value>) -> Value {
    let mut joined: Vec<Value> = Vec::new();
    let flat = parts.into_iter().flat_map(|part| match part {
        Value::Template(inner) => inner,
        other => vec![other],
    });
    for part in flat {
        match (joined.last_mut(), part) {
            (Some(Value::Literal(before)), Value::Literal(text)) => before.push_str(&text),
            (_, part) => joined.push(part),
        }
    }
    match joined.as_slice() {
        [] => Value::Literal(String::new()),
        [Value::Literal(text)] => Value::Literal(text.clone()),
        _ => Value::Template(joined),
    }
}
