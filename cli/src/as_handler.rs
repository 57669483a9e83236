//! The program as the handler: under the handler's name `firn` is what the local host starts, so that one program is enough on
//! a developer's machine. Azure gets the handler alone.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use firn_local_host::stage::{find_app, stage};

/// The handler's name in host.json, as a file of this system.
const NAME: &str = if cfg!(windows) { "handler.exe" } else { "handler" };

/// Whether the program was started under the handler's name.
pub(crate) fn is_asked_for() -> bool {
    std::env::args_os().next().is_some_and(|program| is_handler(&program))
}

fn is_handler(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(NAME))
}

/// The app of the source tree with this program as its handler.
#[derive(Debug)]
pub(crate) struct App {
    source: PathBuf,
    program: PathBuf,
}

impl App {
    /// Looks for it above this program and above the working directory.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn find() -> Result<App, String> {
        let program =
            std::env::current_exe().map_err(|error| format!("the path of this program is unknown: {error}"))?;
        let here = std::env::current_dir().map_err(|error| format!("the working directory is unknown: {error}"))?;
        let source = find_app(&[program.clone(), here]).map_err(|error| error.to_string())?;
        Ok(App { source, program })
    }

    /// The folder of the source tree.
    pub(crate) fn source(&self) -> &Path {
        &self.source
    }

    /// Fills the app root of a host.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn stage(&self, root: &Path) -> Result<(), String> {
        stage(&self.source, &self.program, NAME, root).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides() {
        for (program, expected) in
            [("/tmp/app/handler", true), ("handler", true), ("/usr/bin/firn", false), ("", false)]
        {
            assert_eq!(is_handler(OsStr::new(program)), expected && !cfg!(windows), "{program}");
        }
    }
}
