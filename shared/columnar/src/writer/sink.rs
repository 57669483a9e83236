//! The end of the pipe: counts what is handed over and names what goes wrong.

use std::io::{self, Write};

use parquet::errors::ParquetError;

use crate::ColumnarError;

/// Counts the bytes that a sink took.
#[derive(Debug)]
pub(super) struct CountedSink<W> {
    pub(super) sink: W,
    pub(super) bytes: u64,
}

impl<W: Write> Write for CountedSink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// What the caller shall know of a failed write. A [`ColumnarError`] that the sink wrapped into its I/O error comes out as it
/// was; otherwise the kind of the I/O error tells whether trying again may help.
pub(super) fn write_error(file: &str, error: ParquetError) -> ColumnarError {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => io_error(file, *error),
            Err(source) => ColumnarError::Write { file: file.to_owned(), source, retryable: false },
        },
        other => ColumnarError::Write { file: file.to_owned(), source: Box::new(other), retryable: false },
    }
}

/// As [`write_error`], for an error of the sink itself.
pub(super) fn io_error(file: &str, error: io::Error) -> ColumnarError {
    let error = match error.downcast::<ColumnarError>() {
        Ok(error) => return error,
        Err(error) => error,
    };
    match error.kind() {
        io::ErrorKind::StorageFull => ColumnarError::Disk { path: file.to_owned(), source: error },
        kind => {
            let retryable = matches!(
                kind,
                io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::NetworkDown
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::NotConnected
                    | io::ErrorKind::TimedOut
            );
            ColumnarError::Write { file: file.to_owned(), source: Box::new(error), retryable }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_sink_keeps_its_meaning() {
        let named = ColumnarError::NoFieldIds { file: "inner".into() };
        let error = write_error("outer", ParquetError::from(io::Error::other(named)));
        assert!(matches!(error, ColumnarError::NoFieldIds { file } if file == "inner"));

        let error = write_error("outer", io::Error::from(io::ErrorKind::TimedOut).into());
        assert!(error.is_retryable());
        assert_eq!(error.file(), Some("outer"));

        let error = write_error("outer", io::Error::from(io::ErrorKind::StorageFull).into());
        assert!(matches!(error, ColumnarError::Disk { path, .. } if path == "outer"));

        let error = write_error("outer", ParquetError::General("no".into()));
        assert!(!error.is_retryable());
    }
}
