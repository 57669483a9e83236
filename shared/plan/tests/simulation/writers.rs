//! Who writes: streams in micro-batches, late data, bursts, several at once.

use crate::world::{DAY, SERIES, SimFile};

/// One writer of a scenario.
#[derive(Debug, Clone, Copy)]
pub enum Writer {
    /// A file every so many minutes with what came since.
    Stream { every: i64, bytes: u64, series: (u16, u16) },
    /// A file every so many minutes with rows of days that are over.
    Late { every: i64, bytes: u64, days_back: i64, series: (u16, u16) },
    /// So many files at one minute.
    Burst { at: i64, files: usize, bytes: u64 },
    /// A stream whose clock runs ahead by so many minutes.
    Ahead { every: i64, bytes: u64, minutes: i64 },
}

/// Every series.
pub const ALL: (u16, u16) = (0, SERIES - 1);

impl Writer {
    /// The commits of one minute, each with its files.
    pub fn commits(self, minute: i64) -> Vec<Vec<SimFile>> {
        match self {
            Writer::Stream { every, bytes, series } if minute % every == 0 => {
                vec![vec![file(minute, bytes, series, (minute - every + 1, minute))]]
            }
            Writer::Late { every, bytes, days_back, series } if minute % every == 0 && minute >= days_back * DAY => {
                let then = minute - days_back * DAY;
                vec![vec![file(then, bytes, series, (then, then))]]
            }
            Writer::Burst { at, files, bytes } if minute == at => {
                (0..files).map(|_| vec![file(minute, bytes, ALL, (minute, minute))]).collect()
            }
            Writer::Ahead { every, bytes, minutes } if minute % every == 0 => {
                let ahead = minute + minutes;
                vec![vec![file(ahead, bytes, ALL, (ahead, ahead))]]
            }
            _ => Vec::new(),
        }
    }
}

fn file(minute: i64, bytes: u64, series: (u16, u16), minutes: (i64, i64)) -> SimFile {
    let day = minute.div_euclid(DAY);
    let minutes = (minutes.0.max(day * DAY), minutes.1);
    SimFile { path: String::new(), day, number: 0, bytes, series, minutes, proved: false, again: (0, 0) }
}
