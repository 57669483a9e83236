//! Every name that is used is declared, every file that is called gets what it asks for.

use crate::model::Module;
use crate::{Deployment, bicep_deployment, bicep_values, terraform_deployment};

fn check(Deployment(files): &Deployment) {
    for (file, module) in files {
        assert!(module.unknown.is_empty(), "{file} uses what is not declared: {:?}", module.unknown);
        for resource in module.resources.values() {
            let version = resource.kind.split_once('@').map(|(_, version)| version);
            let dated = |version: &str| version.len() == 10 && version.starts_with("20");
            assert!(version.is_some_and(dated), "{file}: {} has no released version", resource.kind);
        }
        for (name, call) in &module.calls {
            let called = files.get(&call.module).unwrap_or_else(|| panic!("{file}: {name} calls nothing"));
            let given = |parameter: &String| call.arguments.contains_key(parameter);
            for argument in call.arguments.keys() {
                assert!(called.parameters.contains_key(argument), "{file}: {name} knows no {argument}");
            }
            for parameter in called.parameters.keys() {
                assert!(given(parameter) || called.optional.contains(parameter), "{file}: {name} lacks {parameter}");
            }
        }
        for (call, output) in &module.asked {
            let called = &files[&module.calls[call].module];
            assert!(called.outputs.contains_key(output), "{file}: {call} has no output {output}");
        }
        if file != "main" {
            let called = files["main"].calls.values().any(|call| call.module == *file);
            assert!(called, "{file} is called by nobody");
        }
    }
    unused(&files["main"]);
}

/// A parameter that changes nothing misleads.
fn unused(main: &Module) {
    let mut text = String::new();
    for call in main.calls.values() {
        text.push_str(&format!("{:?}{:?}", call.arguments, call.place));
    }
    text.push_str(&format!("{:?}{:?}", main.locals, main.outputs));
    for name in main.parameters.keys() {
        // In conditions and loops alone.
        let elsewhere = ["operators", "private_network"];
        assert!(text.contains(&format!("{name:?}")) || elsewhere.contains(&name.as_str()), "{name} is not used");
    }
}

#[test]
fn bicep_refers_to_what_is_there() {
    check(&bicep_deployment());
}

#[test]
fn terraform_refers_to_what_is_there() {
    check(&terraform_deployment());
}

#[test]
fn examples_of_values_name_parameters() {
    let (Deployment(bicep), Deployment(terraform)) = (bicep_deployment(), terraform_deployment());
    let example = std::fs::read_to_string(crate::infra().join("terraform/terraform.tfvars.example")).unwrap();
    let example = hcl::parse(&example).unwrap();
    let given: Vec<&str> = example.attributes().map(hcl::Attribute::key).collect();
    for (main, given) in [
        (&bicep["main"], bicep_values().locals.keys().cloned().collect::<Vec<_>>()),
        (&terraform["main"], given.into_iter().map(str::to_owned).collect()),
    ] {
        for name in &given {
            assert!(main.parameters.contains_key(name), "{name} is no parameter");
        }
        for name in main.parameters.keys() {
            assert!(given.contains(name) || main.optional.contains(name), "the example lacks {name}");
        }
    }
}
