//! The end of the pipe: counts what is handed over and names what goes wrong.

use std::io::{self, Write};
use std::ops::Range;

use crc_fast::{CrcAlgorithm, Digest};
use parquet::errors::ParquetError;

use crate::ColumnarError;

/// Counts the bytes that a sink took.
#[derive(Debug)]
pub(super) struct CountedSink<W> {
    pub(super) sink: W,
    pub(super) bytes: u64,
    pub(super) captured: Captured,
    /// The checksum of a part of the file.
    pub(super) watched: Option<Watched>,
}

/// Takes the checksum of the bytes at a place of the file.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) place: Range<u64>,
    pub(super) digest: Digest,
}

impl Watched {
    pub(super) fn new(place: Range<u64>) -> Watched {
        Watched { place, digest: copied_digest() }
    }

    /// Bytes pass by, the first of them at `at`.
    fn see(&mut self, at: u64, bytes: &[u8]) {
        let start = self.place.start.max(at);
        let end = self.place.end.min(at + bytes.len() as u64);
        if start < end {
            self.digest.update(&bytes[(start - at) as usize..(end - at) as usize]);
        }
    }
}

/// The checksum of what is copied.
pub(crate) fn copied_digest() -> Digest {
    Digest::new(CrcAlgorithm::Crc64Nvme)
}

impl<W: Write> Write for CountedSink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.captured.see(self.bytes, &bytes[..written]);
        if let Some(watched) = &mut self.watched {
            watched.see(self.bytes, &bytes[..written]);
        }
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Copies of the parts of the file that somebody wants.
#[derive(Debug, Default)]
pub(super) struct Captured {
    /// Places in the file, ascending, each with what has come of it.
    parts: Vec<(Range<u64>, Vec<u8>)>,
}

impl Captured {
    /// From now on wants the bytes of `places`, which are still to come.
    pub(super) fn want(&mut self, places: Vec<Range<u64>>) {
        self.parts = places
            .into_iter()
            .map(|place| {
                let length = usize::try_from(place.end - place.start).unwrap_or(0);
                (place, Vec::with_capacity(length))
            })
            .collect();
    }

    /// Bytes pass by, the first of them at `at`.
    fn see(&mut self, at: u64, bytes: &[u8]) {
        for (place, copy) in &mut self.parts {
            let start = place.start.max(at);
            let end = place.end.min(at + bytes.len() as u64);
            if start < end {
                copy.extend_from_slice(&bytes[(start - at) as usize..(end - at) as usize]);
            }
        }
    }

    /// What was wanted, each part with its place; None when something of it did not come.
    pub(super) fn take(&mut self) -> Option<Vec<(u64, Vec<u8>)>> {
        let parts = std::mem::take(&mut self.parts);
        let whole = parts.iter().all(|(place, copy)| copy.len() as u64 == place.end - place.start);
        whole.then(|| parts.into_iter().map(|(place, copy)| (place.start, copy)).collect())
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
    fn what_is_wanted_is_copied_however_it_is_written() {
        let bytes: Vec<u8> = (0..100).collect();
        for step in [1, 7, 100] {
            let mut sink = CountedSink { sink: Vec::new(), bytes: 0, captured: Captured::default(), watched: None };
            sink.captured.want(vec![10..20, 20..21, 50..90]);
            bytes.chunks(step).for_each(|part| sink.write_all(part).unwrap());
            let taken = sink.captured.take().unwrap();
            assert_eq!(taken, [(10, bytes[10..20].to_vec()), (20, vec![20]), (50, bytes[50..90].to_vec())]);
            assert_eq!((sink.sink.len(), sink.captured.take()), (100, Some(vec![])));
        }
        let mut sink = CountedSink { sink: Vec::new(), bytes: 0, captured: Captured::default(), watched: None };
        let only = std::iter::once(0..4).collect();
        sink.captured.want(only);
        sink.write_all(&[1, 2]).unwrap();
        assert_eq!(sink.captured.take(), None);
    }

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
