//! What belongs into a package.

use std::path::Path;

use serde_json::Value;

use super::Entry;

const HOST_FILE: &str = "host.json";
const FUNCTIONS: &str = "functions";
const FUNCTION_FILE: &str = "function.json";
const SETTINGS_FILE: &str = "local.settings.json";
/// The name under which the handler looks for its configuration.
pub(super) const CONFIG_FILE: &str = "firn.yaml";

/// What a configuration must not hold in a package: it is copied to Azure and kept with every version.
const SECRETS: [&str; 3] = ["accountkey=", "sharedaccesssignature=", "sig="];

/// The files of the app in `source`, sorted by name, with this handler and configuration.
///
/// # Errors
/// A sentence with file and remedy.
pub(crate) fn gather(source: &Path, handler: Vec<u8>, config: &Path) -> Result<Vec<Entry>, String> {
    let host = read(&source.join(HOST_FILE))?;
    let name = executable_name(&host).map_err(|problem| format!("{}: {problem}", source.join(HOST_FILE).display()))?;
    let mut entries = functions(&source.join(FUNCTIONS))?;
    entries.push(file(HOST_FILE, host));
    entries.push(file(CONFIG_FILE, configuration(config)?));
    entries.push(Entry { name, bytes: handler, executable: true });
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some(twice) = entries.windows(2).find(|two| two[0].name == two[1].name) {
        let name = &twice[0].name;
        return Err(format!("\"{name}\" would stand twice in the package; rename the handler in {HOST_FILE}"));
    }
    Ok(entries)
}

/// What a folder for Core Tools has beside the package: settings of a local run.
///
/// # Errors
/// A sentence with file and remedy.
pub(crate) fn local_settings(source: &Path) -> Result<Option<Entry>, String> {
    let path = source.join(SETTINGS_FILE);
    if path.is_file() { Ok(Some(file(SETTINGS_FILE, read(&path)?))) } else { Ok(None) }
}

/// One folder a function, and only those: code lies beside them.
fn functions(folder: &Path) -> Result<Vec<Entry>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut entries = Vec::new();
    for found in std::fs::read_dir(folder).map_err(failed)? {
        let found = found.map_err(failed)?;
        let path = found.path().join(FUNCTION_FILE);
        if path.is_file() {
            let name = found.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8; rename it"))?;
            entries.push(file(format!("{name}/{FUNCTION_FILE}"), read(&path)?));
        }
    }
    if entries.is_empty() {
        return Err(format!("{} holds no function; run this inside the source tree", folder.display()));
    }
    Ok(entries)
}

/// `customHandler.description.defaultExecutablePath`, which must be the name of a file at the root: that is how the host finds it.
fn executable_name(host: &[u8]) -> Result<String, String> {
    let json: Value = serde_json::from_slice(host).map_err(|error| format!("is not JSON: {error}"))?;
    let key = "customHandler.description.defaultExecutablePath";
    let name = json.pointer("/customHandler/description/defaultExecutablePath").and_then(Value::as_str);
    match name {
        Some(name) if !name.is_empty() && !name.contains(['/', '\\', '%']) => Ok(name.to_owned()),
        Some(name) => Err(format!("{key} \"{name}\" is not the name of a file at the root; write for example handler")),
        None => Err(format!("{key} is missing; write for example handler")),
    }
}

fn configuration(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = std::fs::read(path)
        .map_err(|error| format!("{}: {error}; name the configuration with --config", path.display()))?;
    let text =
        std::str::from_utf8(&bytes).map_err(|_| format!("{} is not UTF-8 text; save it as UTF-8", path.display()))?;
    for (index, line) in text.lines().enumerate() {
        let (line, number) = (line.to_ascii_lowercase(), index + 1);
        if !line.trim_start().starts_with('#') && SECRETS.iter().any(|secret| line.contains(secret)) {
            return Err(format!(
                "{}:{number}: a key or signature would go into the package; write ${{NAME}} and set it as an app setting, or use \
                 an identity",
                path.display()
            ));
        }
    }
    Ok(bytes)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn file(name: impl Into<String>, bytes: Vec<u8>) -> Entry {
    Entry { name: name.into(), bytes, executable: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("host.json", "{\"customHandler\":{\"description\":{\"defaultExecutablePath\":\"work\"}}}");
        write("functions/plan/function.json", "{}");
        write("functions/compact/function.json", "{}");
        write("functions/handler/Cargo.toml", "");
        write("firn.yaml", "catalog: {}\n# AccountKey=explained\n");
        folder
    }

    #[test]
    fn functions_configuration_and_handler_by_its_name() {
        let folder = source();
        let config = folder.path().join("firn.yaml");
        let entries = gather(folder.path(), b"ELF".to_vec(), &config).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.executable)).collect();
        assert_eq!(
            names,
            [
                ("compact/function.json", false),
                ("firn.yaml", false),
                ("host.json", false),
                ("plan/function.json", false),
                ("work", true),
            ]
        );
        assert_eq!(local_settings(folder.path()), Ok(None));
    }

    #[test]
    fn what_cannot_run_is_refused() {
        let folder = source();
        let config = folder.path().join("firn.yaml");
        let gathered = || gather(folder.path(), Vec::new(), &config).unwrap_err();
        std::fs::write(&config, "storage:\n  connectionString: AccountName=a;AccountKey=hunter2\n").unwrap();
        let error = gathered();
        assert!(error.contains("firn.yaml:2: a key or signature would go into the package"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        std::fs::remove_file(&config).unwrap();
        assert!(gathered().contains("name the configuration with --config"));
        for (executable, problem) in
            [("bin/work", "is not the name of a file at the root"), ("host.json", "would stand twice")]
        {
            std::fs::write(&config, "").unwrap();
            let host =
                format!("{{\"customHandler\":{{\"description\":{{\"defaultExecutablePath\":\"{executable}\"}}}}}}");
            std::fs::write(folder.path().join("host.json"), host).unwrap();
            let error = gathered();
            assert!(error.contains(problem), "{error}");
        }
    }
}
