//! The queue stands in two files: the configuration says where messages go, `function.json` says where they are taken from.

use std::path::Path;

use firn_config::Config;
use serde_json::Value;

use crate::function::Function;

/// Refuses a configuration whose messages nobody would receive. A name that the host fills in from a setting, and a file that is not
/// there, are left to the host.
pub(crate) fn check_queue_names(config: &Config, app_root: &Path) -> Result<(), String> {
    let Some(storage) = &config.storage else { return Ok(()) };
    for (function, expected) in
        [(Function::Compact, storage.queue.clone()), (Function::CompactPoison, storage.poison_queue())]
    {
        let file = app_root.join(function.name()).join("function.json");
        let Some(listens) = queue_of(&file).filter(|name| !name.contains('%') && *name != expected) else { continue };
        return Err(format!(
            "storage.queue \"{}\": {} listens to \"{listens}\"; write \"{expected}\" there, or the other name here",
            storage.queue,
            file.display()
        ));
    }
    Ok(())
}

fn queue_of(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let json: Value = serde_json::from_str(&text).ok()?;
    let bindings = json.get("bindings")?.as_array()?;
    bindings.iter().find_map(|binding| Some(binding.get("queueName")?.as_str()?.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn config(queue: &str) -> Config {
        let text = format!(
            "storage: {{connectionString: UseDevelopmentStorage=true, queue: {queue}}}\n\
             catalog: {{type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'abfss://lake@devstoreaccount1.dfs.core.windows.net/wh'}}\n\
             ingestion: {{datasets: [{{name: readings, table: a.b}}]}}"
        );
        Config::load(&text, &HashMap::new()).unwrap()
    }

    #[test]
    fn both_files_name_the_same_queue() {
        let folder = tempfile::tempdir().unwrap();
        let listen = |function: &str, queue: &str| {
            std::fs::create_dir_all(folder.path().join(function)).unwrap();
            let file = folder.path().join(function).join("function.json");
            std::fs::write(file, format!("{{\"bindings\":[{{\"queueName\":\"{queue}\"}}]}}")).unwrap();
        };
        assert_eq!(check_queue_names(&config("mine"), folder.path()), Ok(()), "nothing to compare");
        listen("compact", "firn-compact");
        listen("compact-poison", "firn-compact-poison");
        assert_eq!(check_queue_names(&config("firn-compact"), folder.path()), Ok(()));
        let wrong = check_queue_names(&config("mine"), folder.path()).unwrap_err();
        assert!(
            wrong.starts_with("storage.queue \"mine\":") && wrong.contains("listens to \"firn-compact\""),
            "{wrong}"
        );
        listen("compact", "mine");
        let wrong = check_queue_names(&config("mine"), folder.path()).unwrap_err();
        assert!(wrong.contains("write \"mine-poison\" there"), "{wrong}");
        listen("compact-poison", "%FIRN_QUEUE%-poison");
        assert_eq!(check_queue_names(&config("mine"), folder.path()), Ok(()));
    }
}
