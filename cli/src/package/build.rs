//! The handler for an old glibc, with zig as the linker: the machine that builds is usually newer than the one that runs.
//!
//! Cargo needs no root and no container for it: `cargo-zigbuild` and `ziglang` come from PyPI into the folder for tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use firn_local_host::azurite::install::{ToolError, install_once, run_installer, target_dir};

use super::elf::Glibc;

/// What the handler may need at most. The images of the Functions host are Debian 11 and 12 (2.31, 2.36) and Azure Linux 3 (2.38);
/// 2.28 is what older hosts and most distributions in support have.
pub(crate) const GLIBC: Glibc = Glibc(2, 28);
const TARGET: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "ship";
/// Versions that the package was built and measured with.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];

const PYTHON_REMEDY: &str = "install Python 3.10 or later with its venv module (Debian: python3 python3-venv)";
const CARGO_REMEDY: &str = "install Rust (https://rustup.rs), or give a handler that is built already with --handler";

/// Builds the handler of the source tree and says where it is. Takes minutes the first time.
///
/// # Errors
/// A sentence: a tool is missing, or what the compiler said.
pub(crate) fn handler(source: &Path) -> Result<PathBuf, String> {
    let tools = tools().map_err(|error| error.to_string())?.join("bin");
    let target = target_dir();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tools.clone()).chain(std::env::split_paths(&path));
    let paths = std::env::join_paths(paths).map_err(|error| format!("PATH: {error}"))?;
    tracing::info!("building the handler for glibc {GLIBC}; the first time takes minutes");
    let status = Command::new(tools.join("cargo-zigbuild"))
        .args(["zigbuild", "--locked", "--profile", PROFILE, "--package", "firn-handler", "--bin", "handler"])
        .args(["--target", &format!("{TARGET}.{GLIBC}")])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(source)
        .env("PATH", paths)
        .env("CARGO_ENCODED_RUSTFLAGS", without_places(source))
        .env("CARGO_ZIGBUILD_PYTHON_PATH", tools.join("python"))
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| format!("cargo-zigbuild cannot be started ({error}): {CARGO_REMEDY}"))?;
    if !status.success() {
        return Err(format!(
            "the handler was not built (cargo-zigbuild ended with {status}); where the target is missing: rustup target add {TARGET}"
        ));
    }
    Ok(target.join(TARGET).join(PROFILE).join("handler"))
}

/// Flags that keep the folders of this machine out of the program: the same source makes the same bytes wherever it lies.
fn without_places(source: &Path) -> String {
    let home = |name: &str| std::env::home_dir().map(|home| home.join(name));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| home(".cargo"));
    let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from).or_else(|| home(".rustup"));
    let named = [(cargo, "/cargo"), (rustup, "/rustup"), (Some(source.to_owned()), "/firn")];
    let mapped = named.into_iter().filter_map(|(place, name)| {
        // A registry's folder has its host in its name.
        let place = place?;
        let registry = std::fs::read_dir(place.join("registry/src")).into_iter().flatten().flatten();
        let registries = registry.map(|entry| (entry.path(), "/crates"));
        Some(std::iter::once((place.clone(), name)).chain(registries).collect::<Vec<_>>())
    });
    let flags = mapped.flatten().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    flags.collect::<Vec<_>>().join("\u{1f}")
}

fn tools() -> Result<PathBuf, ToolError> {
    install_once("zig", &TOOLS.join("\n"), |environment| {
        run_installer(Command::new("python3").args(["-m", "venv"]).arg(environment), PYTHON_REMEDY)?;
        run_installer(
            Command::new(environment.join("bin/python"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(TOOLS),
            PYTHON_REMEDY,
        )
    })
}
