//! A package as a folder, for Azure Functions Core Tools (`func start`) and for a look.

use std::path::Path;

use super::Entry;

/// Writes the entries below `folder`, which is empty, not there yet, or an older package; that is replaced.
///
/// # Errors
/// A sentence with path and remedy.
pub(crate) fn write(folder: &Path, entries: &[Entry]) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    if is_strange(folder).map_err(|error| failed(folder, error))? {
        let shown = folder.display();
        return Err(format!(
            "{shown} holds other files and no host.json; name an empty folder, or a file that ends in .zip"
        ));
    }
    for entry in entries {
        let path = folder.join(&entry.name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        }
        // A new file: the old one may be a program that runs.
        if path.exists() {
            std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
        }
        std::fs::write(&path, &entry.bytes).map_err(|error| failed(&path, error))?;
        if entry.executable {
            allow_to_run(&path).map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}

/// Whether something lies there that is no package.
fn is_strange(folder: &Path) -> std::io::Result<bool> {
    if !folder.exists() || folder.join("host.json").is_file() {
        return Ok(false);
    }
    Ok(std::fs::read_dir(folder)?.next().is_some())
}

#[cfg(unix)]
fn allow_to_run(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn allow_to_run(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, text: &str, executable: bool) -> Entry {
        Entry { name: name.into(), bytes: text.into(), executable }
    }

    #[test]
    fn an_older_package_is_replaced_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("app");
        write(&folder, &[entry("host.json", "1", false), entry("plan/function.json", "{}", false)]).unwrap();
        write(&folder, &[entry("host.json", "2", false), entry("handler", "x", true)]).unwrap();
        assert_eq!(std::fs::read_to_string(folder.join("host.json")).unwrap(), "2");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |name: &str| std::fs::metadata(folder.join(name)).unwrap().permissions().mode();
            assert_eq!((mode("handler") & 0o111, mode("host.json") & 0o111), (0o111, 0));
        }
        std::fs::write(root.path().join("letter.txt"), "").unwrap();
        let error = write(root.path(), &[]).unwrap_err();
        assert!(error.contains("holds other files and no host.json"), "{error}");
    }
}
