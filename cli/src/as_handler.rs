//! The program as the handler: under the handler's name `firn` is what the local host starts, so that one program is enough on
//! a developer's machine. Azure gets the handler alone.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// The handler's name in host.json, as a file of this system.
pub(crate) const NAME: &str = if cfg!(windows) { "handler.exe" } else { "handler" };

/// Whether the program was started under the handler's name.
pub(crate) fn is_asked_for() -> bool {
    std::env::args_os().next().is_some_and(|program| is_handler(&program))
}

fn is_handler(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(NAME))
}

/// The program that a host stages as its handler: this one.
///
/// # Errors
/// When the system does not tell the path.
pub(crate) fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
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
