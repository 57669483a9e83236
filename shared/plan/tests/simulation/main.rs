//! Days of writers played against the planner, with fake files and a virtual clock. Each test compares a picture with a file in
//! `golden/`; `FIRN_UPDATE_GOLDEN=1 cargo test -p firn-plan --test simulation` writes them anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

mod curves;
mod layouts;
mod picture;
mod policies;
mod scenarios;
mod world;
mod writers;

use std::path::Path;

/// Compares a text with a file of this crate's folder.
pub fn golden(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("FIRN_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(text, expected, "{} differs; FIRN_UPDATE_GOLDEN=1 writes it anew", path.display());
}
