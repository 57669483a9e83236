//! Functions: folders below the app root that hold a `function.json`.

use std::path::Path;

use serde_json::Value;

use super::binding::{Binding, Output, OutputKind, Trigger};
use super::error::AppError;
use super::json::{self, Reader};
use super::settings::Settings;

/// A function.
#[derive(Debug, Clone)]
pub struct FunctionSpec {
    /// Name of its folder, which is also the path at the handler.
    pub name: String,
    /// What makes it run.
    pub trigger: Trigger,
    /// Where its results go.
    pub outputs: Vec<Output>,
}

impl FunctionSpec {
    pub(super) fn uses_queues(&self) -> bool {
        matches!(self.trigger, Trigger::Queue { .. })
            || self.outputs.iter().any(|output| matches!(output.kind, OutputKind::Queue { .. }))
    }

    /// Name of the binding of the trigger.
    pub fn binding(&self) -> &str {
        match &self.trigger {
            Trigger::Queue { binding, .. } | Trigger::Timer { binding, .. } | Trigger::Http { binding, .. } => binding,
        }
    }
}

/// All functions that are not disabled, by name.
pub(super) fn load_all(root: &Path, settings: &Settings) -> Result<Vec<FunctionSpec>, AppError> {
    let read = |source| AppError::Read { file: root.to_path_buf(), source };
    let mut functions = Vec::new();
    for entry in std::fs::read_dir(root).map_err(read)? {
        let file = entry.map_err(read)?.path().join("function.json");
        if !file.is_file() {
            continue;
        }
        let name = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        if let Some(function) = load(&file, &name, settings)? {
            functions.push(function);
        }
    }
    functions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(functions)
}

fn load(file: &Path, name: &str, settings: &Settings) -> Result<Option<FunctionSpec>, AppError> {
    let object = json::read(file)?;
    let reader = Reader { file, object: &object };
    if !is_function_name(name) {
        let rule = "a letter, then letters, digits, _ and -, at most 128, and not \"host\"";
        return Err(reader.wrong("folder", format!("\"{name}\" is no name of a function: {rule}")));
    }
    let off =
        |setting: &str| settings.get(setting).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"));
    let disabled = off(&format!("AzureWebJobs.{name}.Disabled")) || off(&format!("AzureWebJobs__{name}__Disabled"));
    if disabled || reader.boolean("disabled", false)? {
        return Ok(None);
    }
    if reader.value("retry").is_some() {
        return Err(reader.wrong("retry", "the local host does not do retry policies; remove it"));
    }
    let Some(Value::Array(bindings)) = reader.value("bindings") else {
        return Err(reader.wrong("bindings", "is missing or no list"));
    };
    let (mut triggers, mut outputs) = (Vec::new(), Vec::new());
    for binding in bindings {
        let Value::Object(object) = binding else {
            return Err(reader.wrong("bindings", "holds something else than objects"));
        };
        match Binding::read(Reader { file, object }, name, settings)? {
            Binding::Trigger(trigger) => triggers.push(trigger),
            Binding::Output(output) => outputs.push(output),
        }
    }
    match (triggers.pop(), triggers.pop()) {
        (Some(trigger), None) => Ok(Some(FunctionSpec { name: name.to_owned(), trigger, outputs })),
        (None, _) => Err(reader.wrong("bindings", "holds no trigger")),
        (Some(_), Some(_)) => Err(reader.wrong("bindings", "holds more than one trigger")),
    }
}

fn is_function_name(name: &str) -> bool {
    name.len() <= 128
        && !name.eq_ignore_ascii_case("host")
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::app::AuthLevel;

    fn load_one(name: &str, file: Value, settings: &[(&str, &str)]) -> Result<Vec<FunctionSpec>, AppError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("function.json"), file.to_string()).unwrap();
        std::fs::create_dir(folder.path().join("assets")).unwrap();
        let extra: BTreeMap<String, String> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        load_all(folder.path(), &Settings::load(folder.path(), &extra, []).unwrap())
    }

    fn one(binding: Value) -> Value {
        json!({ "bindings": [binding] })
    }

    #[test]
    fn triggers() {
        let storage = [("AzureWebJobsStorage", "UseDevelopmentStorage=true"), ("FIRN_TIMER", "0 */5 * * * *")];
        let queue = one(
            json!({"type": "queueTrigger", "direction": "in", "name": "job", "queueName": "Firn-Compact", "dataType": "binary"}),
        );
        let functions = load_one("compact", queue, &storage).unwrap();
        assert!(
            matches!(&functions[0].trigger, Trigger::Queue { binding, queue, connection, binary: true }
                if binding == "job" && queue == "firn-compact" && connection.0 == "UseDevelopmentStorage=true"),
            "{functions:?}"
        );
        let timer = one(json!({"type": "timerTrigger", "name": "tick", "schedule": "%FIRN_TIMER%"}));
        let functions = load_one("plan", timer, &storage).unwrap();
        assert!(
            matches!(&functions[0].trigger, Trigger::Timer { use_monitor: true, run_on_startup: false, .. }),
            "{functions:?}"
        );
        let often = one(json!({"type": "timerTrigger", "name": "tick", "schedule": "*/20 * * * * *"}));
        let functions = load_one("plan", often, &storage).unwrap();
        assert!(matches!(&functions[0].trigger, Trigger::Timer { use_monitor: false, .. }), "{functions:?}");
        let http = json!({"bindings": [
            {"type": "httpTrigger", "name": "req", "methods": ["get"], "authLevel": "admin"},
            {"type": "http", "direction": "out", "name": "res"},
        ]});
        let functions = load_one("status", http, &storage).unwrap();
        assert!(
            matches!(&functions[0].trigger, Trigger::Http { auth_level: AuthLevel::Admin, methods, route, .. }
                if methods == &["GET"] && route == "status"),
            "{functions:?}"
        );
        assert_eq!(functions[0].outputs.len(), 1);
    }

    #[test]
    fn disabled_functions_are_left_out() {
        let timer = || one(json!({"type": "timerTrigger", "name": "tick", "schedule": "0 0 * * * *"}));
        let mut disabled = timer();
        disabled["disabled"] = true.into();
        assert_eq!(load_one("plan", timer(), &[]).unwrap().len(), 1);
        assert_eq!(load_one("plan", disabled, &[]).unwrap().len(), 0);
        assert_eq!(load_one("plan", timer(), &[("AzureWebJobs.plan.Disabled", "true")]).unwrap().len(), 0);
    }

    #[test]
    fn what_is_refused() {
        let queue = json!({"type": "queueTrigger", "name": "job", "queueName": "q"});
        for (name, file, part) in [
            ("host", one(queue.clone()), "\"host\" is no name of a function"),
            ("1st", one(queue.clone()), "\"1st\" is no name of a function"),
            ("f", one(queue.clone()), "app setting \"AzureWebJobsStorage\" is missing (function f, queue q)"),
            ("f", one(json!({"type": "queueTrigger", "name": "a_b", "queueName": "q"})), "bindings.name: \"a_b\""),
            ("f", one(json!({"type": "blobTrigger", "name": "b"})), "\"blobTrigger\" in: the local host knows"),
            (
                "f",
                one(json!({"type": "timerTrigger", "name": "t", "schedule": "%NONE%"})),
                "app setting \"NONE\" is missing",
            ),
            ("f", one(json!({"type": "timerTrigger", "name": "t", "schedule": "soon"})), "bindings.schedule: \"soon\""),
            ("f", json!({"bindings": []}), "holds no trigger"),
            ("f", json!({"retry": {"strategy": "fixedDelay"}, "bindings": []}), "retry: the local host"),
        ] {
            let error = load_one(name, file.clone(), &[]).unwrap_err().to_string();
            assert!(error.contains(part), "{file}: {error}");
        }
    }
}
