//! Standard output that remembers what it could not write.

use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;

/// The first failure that matters.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

/// Standard output. Whoever writes may drop errors, so that an answer that cannot be told stops no work; the exit code says it in the
/// end ([`failure`]).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        noted(io::stdout().lock().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        noted(io::stdout().lock().flush())
    }
}

/// Why part of the answer was lost: a full disk, for example. A reader that has gone away (`| head`) has read what it wanted.
pub(crate) fn failure() -> Option<String> {
    let _ = Stdout.flush();
    FAILURE.lock().ok().and_then(|mut failure| failure.take())
}

fn noted<T>(result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result
        && !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted)
        && let Ok(mut failure) = FAILURE.lock()
    {
        failure.get_or_insert_with(|| error.to_string());
    }
    result
}
