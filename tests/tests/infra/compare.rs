//! The two deployments say the same, each in its own language.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Module, Value, template};
use crate::{Deployment, bicep_deployment, terraform_deployment};

/// What only Terraform's modules are given: Bicep knows where it deploys to.
const PARENT: &str = "parent_id";
/// Terraform is told where to deploy to.
const ONLY_TERRAFORM: [&str; 2] = ["resource_group", "subscription_id"];
/// How a location in a text is cut up differs too much between the languages.
const OTHER_WORDS: [&str; 6] =
    ["containers", "data_account_ids", "warehouse_parts", "warehouse_containers", "firn", "alerts"];

/// Whether two expressions say the same. Functions differ between the languages, so of those only what goes in is compared.
fn same(left: &Value, right: &Value) -> bool {
    let all = |left: &[Value], right: &[Value]| {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
    };
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.keys().eq(right.keys()) && left.iter().all(|(key, value)| same_at(key, value, &right[key]))
        }
        (Value::Array(left), Value::Array(right)) | (Value::Template(left), Value::Template(right)) => all(left, right),
        (Value::Each(left, left_body), Value::Each(right, right_body)) => {
            same(left, right) && same(left_body, right_body)
        }
        (Value::Conditional(left), Value::Conditional(right)) => all(left.as_slice(), right.as_slice()),
        (Value::Operation(left, left_parts), Value::Operation(right, right_parts)) => {
            left == right && all(left_parts, right_parts)
        }
        // These take the same in both, in the same order.
        (Value::Call(left, left_parts), Value::Call(right, right_parts))
            if left == right && ["min", "max", "replace"].contains(&left.as_str()) =>
        {
            all(left_parts, right_parts)
        }
        (Value::Call(..), Value::Call(..)) => left.references() == right.references(),
        _ => left == right,
    }
}

fn same_at(key: &str, left: &Value, right: &Value) -> bool {
    // Bicep has a function for the id of a role, Terraform writes the path.
    let role = |value: &Value| -> BTreeSet<String> {
        value.references().into_iter().filter(|name| name.starts_with("roles.")).collect()
    };
    match key {
        "roleDefinitionId" => role(left).len() == 1 && role(left) == role(right),
        _ => same(left, right),
    }
}

/// Names both sides of the first difference.
fn assert_same(what: &str, left: &Value, right: &Value) {
    if let (Value::Object(left), Value::Object(right)) = (left, right) {
        let keys = |side: &BTreeMap<String, Value>| side.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(left), keys(right), "{what}");
        for (key, value) in left {
            if !same_at(key, value, &right[key]) {
                assert_same(&format!("{what}.{key}"), value, &right[key]);
                panic!("{what}.{key}: Bicep has {value:?}, Terraform {:?}", right[key]);
            }
        }
        return;
    }
    assert!(same(left, right), "{what}: Bicep has {left:?}, Terraform {right:?}");
}

fn names<T>(of: &BTreeMap<String, T>) -> Vec<&str> {
    of.keys().map(String::as_str).collect()
}

fn both(check: impl Fn(&str, &Module, &Module)) {
    let (Deployment(bicep), Deployment(terraform)) = (bicep_deployment(), terraform_deployment());
    assert_eq!(names(&bicep), names(&terraform), "the files");
    for (name, module) in &bicep {
        check(name, module, &terraform[name]);
    }
}

#[test]
fn modules_ask_for_the_same_and_give_the_same() {
    both(|file, bicep, terraform| {
        let mut asked = terraform.parameters.clone();
        asked.remove(PARENT);
        for name in ONLY_TERRAFORM {
            asked.remove(name);
        }
        let kinds = |of: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            // The configuration: as a whole for Bicep, as a path for Terraform.
            of.iter().filter(|(name, _)| *name != "firn").map(|(name, kind)| (name.clone(), kind.clone())).collect()
        };
        assert_eq!(kinds(&bicep.parameters), kinds(&asked), "{file}");
        assert_eq!(names(&bicep.outputs), names(&terraform.outputs), "{file}");
        for (name, value) in &bicep.outputs {
            assert_same(&format!("{file}: output {name}"), value, &terraform.outputs[name]);
        }
        assert_eq!(bicep.loads, terraform.loads, "{file} reads");
    });
}

#[test]
fn resources_are_the_same() {
    let mut compared = 0;
    both(|file, bicep, terraform| {
        assert_eq!(names(&bicep.resources), names(&terraform.resources), "{file}");
        for (name, left) in &bicep.resources {
            let right = &terraform.resources[name];
            let what = format!("{file}: {name}");
            assert_eq!(left.kind, right.kind, "{what}");
            assert_eq!((&left.condition, left.repeated), (&right.condition, right.repeated), "{what}");
            if left.kind.starts_with("Microsoft.Authorization/") {
                // A name is a GUID made of these; the languages make others of them.
                assert_eq!(left.name.references(), right.name.references(), "{what}: name");
                assert_eq!(left.name.references().len(), 3, "{what}: of whom, what and where");
            } else {
                assert_same(&format!("{what}: name"), &left.name, &right.name);
            }
            let joined = |parent: &Option<Vec<Value>>| parent.clone().map(template);
            assert_eq!(joined(&left.parent), joined(&right.parent), "{what}: where");
            assert_same(&what, &left.body, &right.body);
        }
    });
    let Deployment(bicep) = bicep_deployment();
    compared += bicep.values().map(|module| module.resources.len()).sum::<usize>();
    assert!(compared > 25, "only {compared} resources were found");
}

#[test]
fn calls_and_derived_values_are_the_same() {
    both(|file, bicep, terraform| {
        assert_eq!(names(&bicep.calls), names(&terraform.calls), "{file}");
        for (name, left) in &bicep.calls {
            let right = &terraform.calls[name];
            let what = format!("{file}: {name}");
            assert_eq!(left.module, right.module, "{what}");
            assert_eq!(left.after, right.after, "{what} waits");
            assert_eq!((&left.condition, left.repeated), (&right.condition, right.repeated), "{what}");
            let mut arguments = right.arguments.clone();
            arguments.remove(PARENT);
            assert_same(&what, &Value::Object(left.arguments.clone()), &Value::Object(arguments));
        }
        for (name, value) in &bicep.locals {
            if !OTHER_WORDS.contains(&name.as_str()) {
                let other = terraform.locals.get(name);
                let other = other.unwrap_or_else(|| panic!("{file}: Terraform has no local {name}"));
                assert_same(&format!("{file}: {name}"), value, other);
            }
        }
    });
}

#[test]
fn a_difference_is_found() {
    let text = |text: &str| Value::Literal(text.into());
    let of = |name: &str| Value::Reference(vec![name.into()]);
    for (left, right) in [
        (text("a"), text("b")),
        (of("a"), of("b")),
        (text("a"), of("a")),
        (Value::Array(vec![text("a")]), Value::Array(vec![])),
        (Value::Template(vec![of("a"), text("-x")]), Value::Template(vec![of("a"), text("-y")])),
        (Value::Call("f".into(), vec![of("a")]), Value::Call("f".into(), vec![of("b")])),
        (Value::Call("max".into(), vec![text("1")]), Value::Call("max".into(), vec![text("2")])),
        (Value::Operation("==".into(), vec![of("a")]), Value::Operation("!=".into(), vec![of("a")])),
        (Value::Object([("a".into(), text("1"))].into()), Value::Object([("b".into(), text("1"))].into())),
        (
            Value::Object([("roleDefinitionId".into(), of("roles.a"))].into()),
            Value::Object([("roleDefinitionId".into(), of("roles.b"))].into()),
        ),
    ] {
        assert!(!same(&left, &right), "{left:?} {right:?}");
        assert!(same(&left, &left.clone()) && same(&right, &right.clone()));
    }
}
