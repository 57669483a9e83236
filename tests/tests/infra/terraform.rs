//! Reads Terraform modules whose resources are all of the azapi provider.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hcl::expr::{Expression, ObjectKey, Operation, TraversalOperator};
use hcl::structure::{Block, BlockLabel, Body, Structure};
use hcl::template::{Element, Template};

use crate::bicep::{key_of, relative};
use crate::model::{Call, Module, Resource, Value, template};

/// Functions of the language that the files use.
const FUNCTIONS: [&str; 23] = [
    "can",
    "cidrsubnet",
    "coalesce",
    "contains",
    "distinct",
    "file",
    "join",
    "jsondecode",
    "length",
    "max",
    "merge",
    "min",
    "regex",
    "replace",
    "slice",
    "split",
    "strcontains",
    "tonumber",
    "toset",
    "tostring",
    "try",
    "uuidv5",
    "yamldecode",
];

/// Arguments of azapi's resources beside `body`.
const ARGUMENTS: [&str; 9] =
    ["type", "parent_id", "name", "location", "body", "response_export_values", "count", "for_each", "identity"];

/// Reads a folder of `.tf` files.
pub(crate) fn read(folder: &Path) -> Module {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "tf"));
    files.sort();
    assert!(!files.is_empty(), "{} has no .tf file", folder.display());
    let bodies: Vec<Body> = files
        .iter()
        .map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            hcl::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        })
        .collect();
    let mut reader = Reader { folder, module: Module::default(), made: BTreeSet::new(), loops: vec![] };
    let blocks: Vec<&Block> = bodies.iter().flat_map(Body::blocks).collect();
    for block in &blocks {
        reader.declare(block);
    }
    for block in blocks {
        reader.block(block);
    }
    reader.module
}

struct Reader<'a> {
    folder: &'a Path,
    module: Module,
    /// (provider's type, name) of resources.
    made: BTreeSet<(String, String)>,
    loops: Vec<(String, String)>,
}

fn label(block: &Block, at: usize) -> &str {
    match &block.labels[at] {
        BlockLabel::Identifier(name) => name.as_str(),
        BlockLabel::String(name) => name,
    }
}

fn attribute<'a>(body: &'a Body, key: &str) -> Option<&'a Expression> {
    body.attributes().find(|attribute| attribute.key() == key).map(|attribute| attribute.expr())
}

impl Reader<'_> {
    fn declare(&mut self, block: &Block) {
        match block.identifier() {
            "variable" => {
                let name = label(block, 0).to_owned();
                let kind = attribute(block.body(), "type").unwrap_or_else(|| panic!("{name} has no type"));
                let kind = match kind {
                    Expression::Variable(name) => name.as_str().to_owned(),
                    Expression::FuncCall(call) => match call.name.name.as_str() {
                        "map" | "object" => "object".to_owned(),
                        _ => "array".to_owned(),
                    },
                    other => panic!("{name}: {other:?} is no type"),
                };
                if attribute(block.body(), "default").is_some() {
                    self.module.optional.insert(name.clone());
                }
                self.module.parameters.insert(name, kind);
            }
            "locals" => {
                for local in block.body().attributes() {
                    self.module.locals.insert(local.key().to_owned(), Value::Null);
                }
            }
            "resource" => {
                self.made.insert((label(block, 0).to_owned(), label(block, 1).to_owned()));
            }
            "module" => {
                let source = attribute(block.body(), "source").map(|source| self.value(source));
                let source = source.as_ref().and_then(Value::literal).unwrap().to_owned();
                assert!(self.folder.join(&source).is_dir(), "{source} is not there");
                let module = source.rsplit('/').next().unwrap().to_owned();
                let call = Call {
                    module,
                    arguments: BTreeMap::new(),
                    after: BTreeSet::new(),
                    place: None,
                    condition: None,
                    repeated: false,
                };
                self.module.calls.insert(label(block, 0).to_owned(), call);
            }
            "output" | "terraform" | "provider" => {}
            other => panic!("{}: block {other} is not known to this reader", self.folder.display()),
        }
    }

    fn block(&mut self, block: &Block) {
        match block.identifier() {
            "variable" => {
                for validation in block.body().blocks() {
                    self.value(attribute(validation.body(), "condition").unwrap());
                }
                if let Some(default) = attribute(block.body(), "default") {
                    let value = self.value(default);
                    self.module.defaults.insert(label(block, 0).to_owned(), value);
                }
            }
            "locals" => {
                let locals: Vec<_> = block.body().attributes().cloned().collect();
                for local in locals {
                    let value = self.value(local.expr());
                    self.module.locals.insert(local.key().to_owned(), value);
                }
            }
            "output" => {
                let value = self.value(attribute(block.body(), "value").unwrap());
                self.module.outputs.insert(label(block, 0).to_owned(), value);
            }
            "resource" => self.resource(block),
            "module" => self.call(block),
            _ => {}
        }
    }

    fn resource(&mut self, block: &Block) {
        let symbol = label(block, 1).to_owned();
        let body = block.body();
        for structure in body.iter() {
            let key = match structure {
                Structure::Attribute(attribute) => attribute.key(),
                Structure::Block(block) => block.identifier(),
            };
            assert!(ARGUMENTS.contains(&key), "{symbol}: {key} is not known to this reader");
        }
        let given = |reader: &mut Self, key: &str| attribute(body, key).map(|value| reader.value(value));
        let condition = given(self, "count").map(|count| counted(&symbol, count));
        let repeated = given(self, "for_each").is_some();
        let kind = given(self, "type").as_ref().and_then(Value::literal).unwrap().to_owned();
        let name = given(self, "name").unwrap();
        let parent = given(self, "parent_id").unwrap();
        let mut whole = match given(self, "body") {
            Some(Value::Object(whole)) => whole,
            None => BTreeMap::new(),
            Some(other) => panic!("{symbol}: {other:?} is no body"),
        };
        whole.extend(given(self, "location").map(|location| ("location".to_owned(), location)));
        for identity in body.blocks().filter(|block| block.identifier() == "identity") {
            let kind = self.value(attribute(identity.body(), "type").unwrap());
            let Value::Array(ids) = self.value(attribute(identity.body(), "identity_ids").unwrap()) else {
                unreachable!()
            };
            let ids = ids.iter().map(|id| (key_of(id), Value::Object(BTreeMap::new()))).collect();
            let parts = [("type".to_owned(), kind), ("userAssignedIdentities".to_owned(), Value::Object(ids))];
            whole.insert("identity".into(), Value::Object(parts.into()));
        }
        let parent = (parent != Value::Reference(vec!["parent_id".into()])).then(|| self.expanded(&parent));
        let body = Value::Object(whole);
        self.module.resources.insert(symbol, Resource { kind, name, parent, body, condition, repeated });
    }

    /// An id with every local put in its place.
    fn expanded(&self, value: &Value) -> Vec<Value> {
        match value {
            Value::Template(parts) => parts.iter().flat_map(|part| self.expanded(part)).collect(),
            Value::Reference(path) => match path.as_slice() {
                [name] if self.module.locals.contains_key(name) => self.expanded(&self.module.locals[name]),
                _ => vec![value.clone()],
            },
            other => vec![other.clone()],
        }
    }

    fn call(&mut self, block: &Block) {
        let mut arguments = BTreeMap::new();
        let (mut after, mut condition, mut repeated) = (BTreeSet::new(), None, false);
        for attribute in block.body().attributes() {
            let value = self.value(attribute.expr());
            match attribute.key() {
                "source" => {}
                "depends_on" => after = value.references(),
                "count" => condition = Some(counted(attribute.key(), value)),
                "for_each" => {
                    repeated = true;
                    // A loop with a condition, which Bicep writes as one more word.
                    if let Expression::ForExpr(each) = attribute.expr()
                        && let Some(only) = &each.cond_expr
                    {
                        condition = Some(self.value(only));
                    }
                }
                key => {
                    arguments.insert(key.to_owned(), value);
                }
            }
        }
        let call = self.module.calls.get_mut(label(block, 0)).unwrap();
        (call.arguments, call.after, call.condition, call.repeated) = (arguments, after, condition, repeated);
    }

    fn value(&mut self, expression: &Expression) -> Value {
        match expression {
            Expression::Null => Value::Null,
            Expression::Bool(value) => Value::Literal(value.to_string()),
            Expression::Number(value) => Value::Literal(value.to_string()),
            Expression::String(text) => Value::Literal(text.clone()),
            Expression::Array(parts) => Value::Array(parts.iter().map(|part| self.value(part)).collect()),
            Expression::Object(parts) => {
                let pair = |reader: &mut Self, (key, value): (&ObjectKey, &Expression)| {
                    let key = match key {
                        ObjectKey::Identifier(name) => name.as_str().to_owned(),
                        ObjectKey::Expression(key) => key_of(&reader.value(key)),
                        other => panic!("key {other:?}"),
                    };
                    (key, reader.value(value))
                };
                Value::Object(parts.iter().map(|part| pair(self, part)).collect())
            }
            Expression::TemplateExpr(text) => {
                let parsed = Template::from_expr(text).unwrap();
                let part = |reader: &mut Self, element: &Element| match element {
                    Element::Literal(text) => Value::Literal(text.clone()),
                    Element::Interpolation(hole) => reader.value(&hole.expr),
                    Element::Directive(_) => panic!("a directive in {text:?}"),
                };
                template(parsed.elements().iter().map(|element| part(self, element)).collect())
            }
            Expression::Variable(name) => self.reference(vec![name.as_str().to_owned()]),
            Expression::Traversal(traversal) => self.traversal(traversal),
            Expression::Parenthesis(inner) => self.value(inner),
            Expression::Conditional(parts) => Value::Conditional(Box::new(
                [&parts.cond_expr, &parts.true_expr, &parts.false_expr].map(|part| self.value(part)),
            )),
            Expression::Operation(operation) => match operation.as_ref() {
                Operation::Unary(unary) => Value::Operation(unary.operator.to_string(), vec![self.value(&unary.expr)]),
                Operation::Binary(binary) => Value::Operation(
                    binary.operator.to_string(),
                    [&binary.lhs_expr, &binary.rhs_expr].map(|side| self.value(side)).into(),
                ),
            },
            Expression::ForExpr(each) => {
                let collection = self.value(&each.collection_expr);
                let depth = self.loops.len();
                self.loops.push((each.value_var.as_str().to_owned(), "each".into()));
                if let Some(key) = &each.key_var {
                    self.loops.push((key.as_str().to_owned(), "index".into()));
                }
                let key = each.key_expr.as_ref().map(|key| self.value(key));
                let condition = each.cond_expr.as_ref().map(|condition| self.value(condition));
                let body = self.value(&each.value_expr);
                self.loops.truncate(depth);
                drop((key, condition));
                Value::Each(Box::new(collection), Box::new(body))
            }
            Expression::FuncCall(call) => {
                let name = call.name.name.as_str();
                // Words that describe types look like functions.
                if !FUNCTIONS.contains(&name) {
                    self.module.unknown.insert(format!("{name}()"));
                }
                if let ("file", [Expression::TemplateExpr(_)]) = (name, call.args.as_slice()) {
                    let argument = self.value(&call.args[0]);
                    let Value::Template(parts) = &argument else { unreachable!() };
                    let [Value::Reference(module), Value::Literal(file)] = parts.as_slice() else {
                        panic!("{parts:?}")
                    };
                    assert_eq!(module.join("."), "path.module");
                    let file = file.trim_start_matches('/');
                    self.module.loads.insert(relative(&self.folder.join("main.tf"), file));
                    return argument;
                }
                let arguments: Vec<Value> = call.args.iter().map(|argument| self.value(argument)).collect();
                match name {
                    "try" => Value::Operation("??".into(), arguments),
                    "jsondecode" | "yamldecode" => Value::Call("load".into(), vec![]),
                    "tostring" => Value::Call("string".into(), arguments),
                    "merge" => Value::Call("union".into(), arguments),
                    "cidrsubnet" => Value::Call("cidr_subnet".into(), arguments),
                    "uuidv5" => Value::Call("guid".into(), arguments),
                    _ => Value::Call(name.to_owned(), arguments),
                }
            }
            other => panic!("{}: {other:?} is not known to this reader", self.folder.display()),
        }
    }

    fn traversal(&mut self, traversal: &hcl::expr::Traversal) -> Value {
        let Expression::Variable(root) = &traversal.expr else {
            let inner = self.value(&traversal.expr);
            return Value::Call("[]".into(), vec![inner]);
        };
        let mut path = vec![root.as_str().to_owned()];
        let mut indexed = None;
        for operator in &traversal.operators {
            match operator {
                TraversalOperator::GetAttr(name) => path.push(name.as_str().to_owned()),
                // The only instance of what has a count.
                TraversalOperator::Index(Expression::Number(at))
                    if at.as_u64() == Some(0) && ["module", "azapi_resource"].contains(&path[0].as_str()) => {}
                TraversalOperator::Index(at) => indexed = Some(self.value(at)),
                other => panic!("{}: {other:?} is not known to this reader", self.folder.display()),
            }
        }
        let reference = self.reference(path);
        match indexed {
            None => reference,
            Some(at) => Value::Call("[]".into(), vec![reference, at]),
        }
    }

    fn reference(&mut self, path: Vec<String>) -> Value {
        let written = path.join(".");
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let module = &mut self.module;
        if let Some((_, called)) = self.loops.iter().rev().find(|(name, _)| *name == path[0]) {
            return self::named(std::iter::once(called.as_str()).chain(words[1..].iter().copied()));
        }
        let (known, kept) = match words.as_slice() {
            ["var", name, ..] => (module.parameters.contains_key(*name), &words[1..]),
            ["local", name, ..] => (module.locals.contains_key(*name), &words[1..]),
            ["module", name] => (module.calls.contains_key(*name), &words[1..]),
            ["module", name, output, ..] => {
                module.asked.insert(((*name).to_owned(), (*output).to_owned()));
                (module.calls.contains_key(*name), &words[1..])
            }
            [provider @ ("azapi_resource" | "azapi_update_resource"), name, ..] => {
                (self.made.contains(&((*provider).to_owned(), (*name).to_owned())), &words[1..])
            }
            ["each", "value", rest @ ..] => return self::named(std::iter::once("each").chain(rest.iter().copied())),
            ["each", "key"] => return self::named(["index"].into_iter()),
            ["path", "module"] => (true, &words[..]),
            _ => (false, &words[..]),
        };
        if !known {
            module.unknown.insert(written);
        }
        // What azapi was asked to export stands below `output`.
        self::named(kept.iter().copied().filter(|word| *word != "output"))
    }
}

/// The condition in `condition ? 1 : 0`, which is how a count says `if`.
fn counted(what: &str, count: Value) -> Value {
    let number = |value: &Value, expected: &str| value.literal() == Some(expected);
    match count {
        Value::Conditional(parts) if number(&parts[1], "1") && number(&parts[2], "0") => parts[0].clone(),
        other => panic!("{what}: count {other:?} is no condition"),
    }
}

fn named<'a>(words: impl Iterator<Item = &'a str>) -> Value {
    Value::Reference(words.map(crate::model::snake).collect())
}
