//! Reads Bicep: strict about what it does not know, so that nothing is passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tree_sitter::{Node, Parser};

use crate::model::{Call, Module, Resource, Value, snake, template};

/// Functions of the language that the files use.
const FUNCTIONS: [&str; 23] = [
    "cidrSubnet",
    "contains",
    "empty",
    "environment",
    "guid",
    "items",
    "join",
    "loadJsonContent",
    "loadYamlContent",
    "map",
    "max",
    "min",
    "replace",
    "resourceGroup",
    "resourceId",
    "split",
    "string",
    "subscription",
    "subscriptionResourceId",
    "toObject",
    "union",
    "startsWith",
    "length",
];

/// Reads `main.bicep`, or a module.
pub(crate) fn read(path: &Path) -> Module {
    let source = std::fs::read_to_string(path).unwrap();
    // The grammar asks every parameter for its type, which values in a .bicepparam do not have.
    let values = path.extension().is_some_and(|extension| extension == "bicepparam");
    let source = if values { source.replace("\nparam ", "\nvar ") } else { source };
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bicep::LANGUAGE.into()).unwrap();
    let tree = parser.parse(&source, None).unwrap();
    assert!(!tree.root_node().has_error(), "{}: {}", path.display(), first_error(tree.root_node(), &source));
    let mut reader = Reader {
        source: &source,
        path,
        module: Module::default(),
        existing: BTreeMap::new(),
        loops: vec![],
        over_pairs: false,
    };
    reader.file(tree.root_node());
    reader.module
}

fn first_error(node: Node<'_>, source: &str) -> String {
    if node.is_error() || node.is_missing() {
        let line = node.start_position().row + 1;
        return format!("line {line}: {:?}", source.lines().nth(line - 1).unwrap_or_default());
    }
    let mut cursor = node.walk();
    let broken = node.children(&mut cursor).find(Node::has_error);
    broken.map(|child| first_error(child, source)).unwrap_or_default()
}

struct Reader<'a> {
    source: &'a str,
    path: &'a Path,
    module: Module,
    /// Name -> the id of what is there already or made here.
    existing: BTreeMap<String, Vec<Value>>,
    /// Variables of the loops and lambdas around, each with what it is called in both languages.
    loops: Vec<(String, String)>,
    /// Whether the lambda that is read goes over `items(…)`.
    over_pairs: bool,
}

impl<'a> Reader<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        &self.source[node.byte_range()]
    }

    fn file(&mut self, root: Node<'_>) {
        let declarations: Vec<Node<'_>> =
            children(root).into_iter().filter(|node| node.kind() != "decorators").collect();
        for node in &declarations {
            self.declare(*node);
        }
        for node in declarations {
            self.declaration(node);
        }
    }

    /// Names first: they may be used before they stand.
    fn declare(&mut self, node: Node<'_>) {
        let parts = children(node);
        match node.kind() {
            "parameter_declaration" => {
                let name = snake(self.text(parts[0]));
                let kind = match self.text(parts[1]) {
                    "int" => "number",
                    other => other,
                };
                if parts.len() > 2 {
                    self.module.optional.insert(name.clone());
                }
                self.module.parameters.insert(name, kind.to_owned());
            }
            "variable_declaration" => {
                self.module.locals.insert(snake(self.text(parts[0])), Value::Null);
            }
            "resource_declaration" => {
                self.existing.insert(snake(self.text(parts[0])), Vec::new());
            }
            "module_declaration" => {
                let module =
                    Path::new(self.text(parts[1]).trim_matches('\'')).file_stem().unwrap().to_str().unwrap().to_owned();
                let call = Call {
                    module,
                    arguments: BTreeMap::new(),
                    after: BTreeSet::new(),
                    place: None,
                    condition: None,
                    repeated: false,
                };
                self.module.calls.insert(snake(self.text(parts[0])), call);
            }
            "output_declaration" | "using_statement" | "comment" => {}
            other => panic!("{}: {other} is not known to this reader", self.path.display()),
        }
    }

    fn declaration(&mut self, node: Node<'_>) {
        let parts = children(node);
        let name = snake(self.text(parts[0]));
        match node.kind() {
            "variable_declaration" => {
                let value = self.value(parts[1]);
                self.module.locals.insert(name, value);
            }
            "output_declaration" => {
                let value = self.value(parts[2]);
                self.module.outputs.insert(name, value);
            }
            "parameter_declaration" if parts.len() > 2 => {
                let value = self.value(parts[2]);
                self.module.defaults.insert(name, value);
            }
            "resource_declaration" => self.resource(node, &parts, name),
            "module_declaration" => self.call(&parts, &name),
            _ => {}
        }
    }

    /// The object behind `if` and `for`, the condition of the `if`, whether there was a `for`.
    fn unwrapped<'t>(&mut self, node: Node<'t>) -> (Node<'t>, Option<Value>, bool) {
        match node.kind() {
            "object" => (node, None, false),
            "if_statement" => {
                let parts = children(node);
                let condition = self.value(parts[0]);
                (parts[1], Some(condition), false)
            }
            "for_statement" => {
                self.enter(node);
                let (body, condition, _) = self.unwrapped(node.child_by_field_name("body").unwrap());
                (body, condition, true)
            }
            other => panic!("{}: {other} where an object belongs", self.path.display()),
        }
    }

    fn resource(&mut self, node: Node<'_>, parts: &[Node<'_>], symbol: String) {
        let kind = self.text(parts[1]).trim_matches('\'').to_owned();
        let depth = self.loops.len();
        let (object, condition, repeated) = self.unwrapped(parts[2]);
        let Value::Object(mut body) = self.value(object) else { unreachable!() };
        self.loops.truncate(depth);
        let name = body.remove("name").unwrap_or_else(|| panic!("{symbol} has no name"));
        let within = body.remove("parent").or_else(|| body.remove("scope"));
        let parent = within.map(|within| self.id_of(&within));
        let path = kind.split('@').next().unwrap();
        let mut id = match &parent {
            Some(parent) => parent.clone(),
            None => vec![Value::Reference(vec!["parent_id".into()])],
        };
        let step = match kind.matches('/').count() {
            1 => format!("/providers/{path}/"),
            _ => format!("/{}/", path.rsplit('/').next().unwrap()),
        };
        id.extend([Value::Literal(step), name.clone()]);
        self.existing.insert(symbol.clone(), id);
        let mut cursor = node.walk();
        if !node.children(&mut cursor).any(|child| child.kind() == "existing") {
            let body = Value::Object(body);
            self.module.resources.insert(symbol, Resource { kind, name, parent, body, condition, repeated });
        }
    }

    fn id_of(&self, value: &Value) -> Vec<Value> {
        let Value::Reference(path) = value else { panic!("{value:?} is no resource") };
        let [symbol] = path.as_slice() else { panic!("{path:?} is no resource") };
        // What is made here is known by its own id.
        if self.module.resources.contains_key(symbol) {
            return vec![Value::Reference(vec![symbol.clone(), "id".into()])];
        }
        let id = self.existing.get(symbol).filter(|id| !id.is_empty());
        id.unwrap_or_else(|| panic!("{}: {symbol} must stand above what lies in it", self.path.display())).clone()
    }

    fn call(&mut self, parts: &[Node<'_>], symbol: &str) {
        let depth = self.loops.len();
        let (object, condition, repeated) = self.unwrapped(parts[2]);
        let Value::Object(mut body) = self.value(object) else { unreachable!() };
        self.loops.truncate(depth);
        let arguments = match body.remove("params") {
            Some(Value::Object(arguments)) => arguments.into_iter().map(|(key, value)| (snake(&key), value)).collect(),
            _ => BTreeMap::new(),
        };
        let after = body.remove("dependsOn").map(|value| value.references()).unwrap_or_default();
        let place = body.remove("scope");
        let call = self.module.calls.get_mut(symbol).unwrap();
        call.place = place;
        (call.arguments, call.after, call.condition, call.repeated) = (arguments, after, condition, repeated);
    }

    /// Names the variables of a loop: over `items(…)` the element is a pair.
    fn enter(&mut self, node: Node<'_>) -> Value {
        let collection = children(node).into_iter().find(|child| {
            child.kind() != "for_loop_parameters" && Some(*child) != node.child_by_field_name("initializer")
        });
        let collection = collection.unwrap();
        let pairs = collection.kind() == "call_expression" && self.text(collection).starts_with("items(");
        let value = self.value(collection);
        let (element, index) = match node.child_by_field_name("initializer") {
            Some(name) => (name, None),
            None => {
                let parameters = children(children(node)[0]);
                (parameters[0], Some(parameters[1]))
            }
        };
        let called = if pairs { "(pair)" } else { "each" };
        self.loops.push((self.text(element).to_owned(), called.into()));
        if let Some(index) = index {
            self.loops.push((self.text(index).to_owned(), "index".into()));
        }
        value
    }

    fn value(&mut self, node: Node<'_>) -> Value {
        let parts = children(node);
        match node.kind() {
            "null" => Value::Null,
            "number" | "boolean" => Value::Literal(self.text(node).to_owned()),
            "string" => self.string(node),
            "identifier" | "member_expression" => self.reference(node),
            "parenthesized_expression" => self.value(parts[0]),
            "array" => Value::Array(parts.into_iter().map(|part| self.value(part)).collect()),
            "object" => {
                let pair = |reader: &mut Self, part: Node<'_>| {
                    assert_eq!(part.kind(), "object_property", "{}", reader.text(part));
                    let sides = children(part);
                    let key = match sides[0].kind() {
                        "string" => key_of(&reader.string(sides[0])),
                        _ => reader.text(sides[0]).to_owned(),
                    };
                    (key, reader.value(sides[1]))
                };
                Value::Object(parts.into_iter().map(|part| pair(self, part)).collect())
            }
            "ternary_expression" => {
                let sides = ["condition", "consequence", "alternative"];
                Value::Conditional(Box::new(sides.map(|side| self.value(node.child_by_field_name(side).unwrap()))))
            }
            "binary_expression" | "unary_expression" => {
                let operator = self.text(node.child_by_field_name("operator").unwrap()).to_owned();
                Value::Operation(operator, parts.into_iter().map(|part| self.value(part)).collect())
            }
            "subscript_expression" => {
                Value::Call("[]".into(), parts.into_iter().map(|part| self.value(part)).collect())
            }
            "for_statement" => {
                let depth = self.loops.len();
                let collection = self.enter(node);
                let body = self.value(node.child_by_field_name("body").unwrap());
                self.loops.truncate(depth);
                Value::Each(Box::new(collection), Box::new(body))
            }
            "lambda_expression" => {
                let depth = self.loops.len();
                // Elements of `items(…)` are pairs.
                let called = if self.over_pairs { "(pair)" } else { "each" };
                self.loops.push((self.text(parts[0]).to_owned(), called.into()));
                let body = self.value(parts[1]);
                self.loops.truncate(depth);
                body
            }
            "call_expression" => self.function(&parts),
            other => panic!("{}: {other} is not known to this reader: {}", self.path.display(), self.text(node)),
        }
    }

    fn function(&mut self, parts: &[Node<'_>]) -> Value {
        let name = self.text(parts[0]);
        if !FUNCTIONS.contains(&name) {
            self.module.unknown.insert(format!("{name}()"));
        }
        let before = self.over_pairs;
        self.over_pairs = children(parts[1]).first().is_some_and(|first| self.text(*first).starts_with("items("));
        let mut arguments: Vec<Value> = children(parts[1]).into_iter().map(|part| self.value(part)).collect();
        self.over_pairs = before;
        match (name, arguments.as_slice()) {
            ("toObject", [_, _, _]) => {
                let body = arguments.remove(2);
                Value::Each(Box::new(arguments.remove(0)), Box::new(body))
            }
            ("items", [_]) => arguments.remove(0),
            ("loadJsonContent" | "loadYamlContent", [Value::Literal(file)]) => {
                self.module.loads.insert(relative(self.path, file));
                Value::Call("load".into(), vec![])
            }
            _ => Value::Call(snake(name), arguments),
        }
    }

    fn reference(&mut self, node: Node<'_>) -> Value {
        self.member_of(node, Vec::new())
    }

    /// `path` below what `node` says.
    fn member(&mut self, node: Node<'_>, path: Vec<String>) -> Value {
        let part = |name: &str| node.child_by_field_name(name).unwrap();
        match node.kind() {
            "identifier" => self.named(self.text(node), path),
            // The grammar takes `!a.b` for `(!a).b`, and so with every operator; the language does not.
            "unary_expression" => {
                let operator = self.text(part("operator")).to_owned();
                Value::Operation(operator, vec![self.member_of(part("argument"), path)])
            }
            "binary_expression" => {
                let operator = self.text(part("operator")).to_owned();
                let left = self.value(part("left"));
                Value::Operation(operator, vec![left, self.member_of(part("right"), path)])
            }
            "ternary_expression" => {
                let (condition, yes) = (self.value(part("condition")), self.value(part("consequence")));
                Value::Conditional(Box::new([condition, yes, self.member_of(part("alternative"), path)]))
            }
            // A property of what a function answers.
            _ => Value::Call(format!(".{}", path.join(".")), vec![self.value(node)]),
        }
    }

    fn member_of(&mut self, node: Node<'_>, below: Vec<String>) -> Value {
        let mut path = Vec::new();
        let mut at = node;
        while at.kind() == "member_expression" {
            path.push(self.text(at.child_by_field_name("property").unwrap()).to_owned());
            at = at.child_by_field_name("object").unwrap();
        }
        path.reverse();
        path.extend(below);
        self.member(at, path)
    }

    fn named(&mut self, root: &str, mut path: Vec<String>) -> Value {
        if let Some((_, called)) = self.loops.iter().rev().find(|(name, _)| name == root) {
            let called: Vec<String> = match (called.as_str(), path.first().map(String::as_str)) {
                ("(pair)", Some("value")) => {
                    std::iter::once("each".to_owned()).chain(path.into_iter().skip(1)).collect()
                }
                ("(pair)", Some("key")) => vec!["index".into()],
                (called, _) => std::iter::once(called.to_owned()).chain(path).collect(),
            };
            return Value::Reference(called.iter().map(|part| snake(part)).collect());
        }
        let name = snake(root);
        let module = &mut self.module;
        if module.calls.contains_key(&name) && path.first().is_some_and(|first| first == "outputs") {
            path.remove(0);
            module.asked.insert((name.clone(), snake(&path[0])));
        }
        let declared = module.parameters.contains_key(&name)
            || module.locals.contains_key(&name)
            || module.calls.contains_key(&name)
            || self.existing.contains_key(&name);
        if !declared {
            module.unknown.insert(root.to_owned());
        }
        Value::Reference(std::iter::once(name).chain(path.iter().map(|part| snake(part))).collect())
    }

    /// From the source's bytes: the grammar takes blanks at the edge of a hole for space between words.
    fn string(&mut self, node: Node<'_>) -> Value {
        let (mut at, end) = (node.start_byte() + 1, node.end_byte() - 1);
        let mut parts = Vec::new();
        for hole in children(node).into_iter().filter(|child| child.kind() == "interpolation") {
            parts.push(Value::Literal(unescaped(&self.source[at..hole.start_byte()])));
            parts.push(self.value(children(hole)[0]));
            at = hole.end_byte();
        }
        parts.push(Value::Literal(unescaped(&self.source[at..end])));
        parts.retain(|part| *part != Value::Literal(String::new()));
        template(parts)
    }
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| !child.kind().ends_with("comment")).collect()
}

fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\'", "'").replace("\\$", "$").replace("\\\\", "\\")
}

/// A key with a hole, as both readers write it.
pub(crate) fn key_of(value: &Value) -> String {
    value.literal().map_or_else(|| format!("{:?}", value.references()), str::to_owned)
}

/// `file` beside `path`, from the folder `infra` on.
pub(crate) fn relative(path: &Path, file: &str) -> String {
    let whole = path.parent().unwrap().join(file).canonicalize();
    let whole = whole.unwrap_or_else(|error| panic!("{}: {file}: {error}", path.display()));
    let whole = whole.to_str().unwrap();
    whole.rsplit_once("/infra/").map_or(whole, |(_, inside)| inside).to_owned()
}
