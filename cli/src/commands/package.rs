//! `firn package`: what Azure takes, as a zip or as a folder for Core Tools.

use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::args::{Format, PackageArgs, WithConfig};
use crate::as_handler::App;
use crate::commands::{Context, complain, config_path};
use crate::exit::Exit;
use crate::output::stdout::Stdout;
use crate::output::table::size;
use crate::package::elf::{Glibc, needed_glibc};
use crate::package::{Entry, build, config_check, content, folder, zip};
use std::io::Write;

/// The configuration where nothing names one.
const DEFAULT_CONFIG: &str = "firn.yaml";

/// Why there is no package.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// A person writes something else.
    Usage(String),
    /// Something did not work.
    Failed(String),
}

pub(crate) fn run(args: &PackageArgs, context: &Context) -> Exit {
    match make(args) {
        Ok(made) => {
            made.show(context.format);
            Exit::Done
        }
        Err(Failure::Usage(message)) => {
            complain(message);
            Exit::Usage
        }
        Err(Failure::Failed(message)) => {
            complain(message);
            Exit::Failed
        }
    }
}

/// What was written.
struct Made {
    out: PathBuf,
    entries: usize,
    /// Of the zip, or of all files of the folder.
    bytes: u64,
    /// Of the zip.
    sha256: Option<String>,
    glibc: Option<Glibc>,
}

fn make(args: &PackageArgs) -> Result<Made, Failure> {
    let app = App::find().map_err(Failure::Usage)?;
    let config = config(&args.config);
    let handler = match &args.handler {
        Some(path) => path.clone(),
        None => build::handler(app.source()).map_err(Failure::Failed)?,
    };
    let program =
        std::fs::read(&handler).map_err(|error| Failure::Usage(format!("--handler {}: {error}", handler.display())))?;
    let glibc = needed_glibc(&program).map_err(|error| Failure::Usage(format!("{} {error}", handler.display())))?;
    let verdict = too_new(&handler, glibc);
    match verdict {
        Some(message) if args.check || args.handler.is_none() => return Err(Failure::Failed(message)),
        Some(message) => tracing::warn!("{message}"),
        None => {}
    }
    let mut entries = content::gather(app.source(), program, &config).map_err(Failure::Usage)?;
    if is_zip(&args.out) {
        for problem in config_check::problems(&entries) {
            tracing::warn!("{}: {problem}", config.display());
        }
    }
    let made = |entries: &[Entry], bytes: u64, sha256| Made {
        out: args.out.clone(),
        entries: entries.len(),
        bytes,
        sha256,
        glibc,
    };
    if is_zip(&args.out) {
        let bytes = zip::archive(&entries).map_err(Failure::Failed)?;
        std::fs::write(&args.out, &bytes)
            .map_err(|error| Failure::Failed(format!("{}: {error}", args.out.display())))?;
        let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(made(&entries, bytes.len() as u64, Some(hash)))
    } else {
        entries.extend(content::local_settings(app.source()).map_err(Failure::Failed)?);
        folder::write(&args.out, &entries).map_err(Failure::Failed)?;
        let bytes = entries.iter().map(|entry| entry.bytes.len() as u64).sum();
        Ok(made(&entries, bytes, None))
    }
}

fn config(args: &WithConfig) -> PathBuf {
    config_path(args, std::env::var("FIRN_CONFIG").ok()).unwrap_or_else(|_| DEFAULT_CONFIG.into())
}

fn is_zip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}

/// What is said of a handler that the hosts in Azure may not be able to start.
fn too_new(handler: &Path, glibc: Option<Glibc>) -> Option<String> {
    let needed = glibc.filter(|needed| *needed > build::GLIBC)?;
    Some(format!(
        "{} needs glibc {needed}, and what runs in Azure is only known to have {}: leave --handler out, then it is built for that",
        handler.display(),
        build::GLIBC
    ))
}

impl Made {
    fn show(&self, format: Format) {
        let mut out = Stdout;
        let glibc = self.glibc.map(|glibc| glibc.to_string());
        let _ = match format {
            Format::Json => writeln!(
                out,
                "{}",
                json!({
                    "summary": true, "ok": true, "out": self.out.display().to_string(), "files": self.entries,
                    "bytes": self.bytes, "sha256": self.sha256, "glibc": glibc,
                })
            ),
            Format::Text => writeln!(
                out,
                "{}: {} files, {}, needs glibc {}{}",
                self.out.display(),
                self.entries,
                size(self.bytes),
                glibc.as_deref().unwrap_or("of no version"),
                self.sha256.as_ref().map(|hash| format!("\nSHA-256 {hash}")).unwrap_or_default()
            ),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zip_by_its_name() {
        assert!(is_zip(Path::new("a/firn.zip")) && is_zip(Path::new("F.ZIP")));
        assert!(!is_zip(Path::new("firn")) && !is_zip(Path::new("zip")));
    }

    #[test]
    fn a_handler_for_a_newer_machine_is_told() {
        let path = Path::new("/t/handler");
        assert_eq!((too_new(path, None), too_new(path, Some(build::GLIBC))), (None, None));
        let message = too_new(path, Some(Glibc(2, 34))).unwrap();
        assert!(
            message.starts_with("/t/handler needs glibc 2.34, and what runs in Azure is only known to have 2.28"),
            "{message}"
        );
    }
}
