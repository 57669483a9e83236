//! `handler`: started by the Functions host, never by a person.

use std::process::ExitCode;

fn main() -> ExitCode {
    firn_handler::process::main()
}
