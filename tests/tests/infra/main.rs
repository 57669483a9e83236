//! The same deployment twice, in Bicep and in Terraform: both are read, held against each other, and against the files and names that
//! run in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alerts;
mod bicep;
mod compare;
mod docs;
mod model;
mod names;
mod references;
mod terraform;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::Module;

/// Modules by the name of their file or folder; the first of all is `main`.
struct Deployment(BTreeMap<String, Module>);

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn infra() -> PathBuf {
    repository().join("infra")
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| if entry.is_dir() { files(&entry) } else { vec![entry] }).collect()
}

fn bicep_deployment() -> Deployment {
    let mut found = files(&infra().join("bicep"));
    found.retain(|file| file.extension().is_some_and(|extension| extension == "bicep"));
    let name = |file: &Path| file.file_stem().unwrap().to_str().unwrap().to_owned();
    Deployment(found.iter().map(|file| (name(file), bicep::read(file))).collect())
}

/// The values that the example for Bicep gives, as locals.
fn bicep_values() -> Module {
    // It reads firn.yaml, which is the reader's to write.
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(infra().join("bicep/main.bicepparam")).unwrap();
    let file = folder.path().join("infra/bicep/main.bicepparam");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(folder.path().join("firn.yaml"), "").unwrap();
    std::fs::write(&file, text).unwrap();
    bicep::read(&file)
}

fn terraform_deployment() -> Deployment {
    let root = infra().join("terraform");
    let mut modules = BTreeMap::from([("main".to_owned(), terraform::read(&root))]);
    for entry in std::fs::read_dir(root.join("modules")).unwrap() {
        let folder = entry.unwrap().path();
        modules.insert(folder.file_name().unwrap().to_str().unwrap().to_owned(), terraform::read(&folder));
    }
    Deployment(modules)
}
