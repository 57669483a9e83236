//! A table of fake files: sizes, key ranges and how often their bytes were written again. No bytes, no clock but a virtual one.

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_model::{Bounds, FileFacts, FileFormat, KeyRange, Moment, OrderColumn, PartitionKey, RowOrder, Rule};
use firn_plan::{PartitionTime, PlanSettings, expected_outputs};

pub const KB: u64 = 1 << 10;
pub const MB: u64 = 1 << 20;
/// Minutes of a day.
pub const DAY: i64 = 24 * 60;
/// Series are numbers below this; every writer writes some of them.
pub const SERIES: u16 = 64;

/// A file of one day. Keys are (series, minute); both ends are included.
#[derive(Debug, Clone)]
pub struct SimFile {
    pub path: String,
    pub day: i64,
    pub number: i64,
    pub bytes: u64,
    pub series: (u16, u16),
    pub minutes: (i64, i64),
    /// Written by Firn, so that its composite key range is known.
    pub proved: bool,
    /// The most times that a byte of it was written again by the routine rules, and by cold or full rewrites.
    pub again: (u32, u32),
}

impl SimFile {
    pub fn first(&self) -> (u16, i64) {
        (self.series.0, self.minutes.0)
    }

    pub fn last(&self) -> (u16, i64) {
        (self.series.1, self.minutes.1)
    }

    fn facts(&self) -> FileFacts {
        let series = |at: u16| at.to_be_bytes().to_vec();
        let minute = |at: i64| at.to_be_bytes().to_vec();
        let key = |(of, at): (u16, i64)| [series(of), minute(at)].concat();
        FileFacts {
            path: self.path.clone(),
            partition: Arc::new(PartitionKey::unpartitioned(0)),
            data_sequence_number: self.number,
            added_snapshot_id: None,
            added_position: Some(self.number.unsigned_abs()),
            size: self.bytes,
            rows: self.bytes / 100,
            format: FileFormat::Parquet,
            sort_order_id: None,
            key_bounds: vec![
                Some(Bounds { lower: series(self.series.0), upper: series(self.series.1) }),
                Some(Bounds { lower: minute(self.minutes.0), upper: minute(self.minutes.1) }),
            ],
            key_range: self.proved.then(|| KeyRange { first: key(self.first()), last: key(self.last()) }),
        }
    }
}

/// Rows in the order of series and time, the last write of a key wins.
pub fn row_order() -> RowOrder {
    let column =
        |field_id, name: &str| OrderColumn { field_id, name: name.into(), descending: false, nulls_first: true };
    RowOrder {
        columns: vec![column(1, "series"), column(2, "time")],
        dedup_columns: Some(2),
        keeps_commit_order: true,
        key_columns: 2,
        table_sort_order_id: None,
    }
}

/// A table partitioned by day.
#[derive(Debug, Default)]
pub struct World {
    pub days: BTreeMap<i64, Vec<SimFile>>,
    pub ingested: u64,
    pub rewritten: u64,
    pub merges: u64,
    pub most_again: (u32, u32),
    /// The minute that it is.
    pub now: i64,
    commits: i64,
    outputs: u64,
}

impl World {
    /// One commit of a writer, a file a day that it touches.
    pub fn commit(&mut self, files: Vec<SimFile>) {
        self.commits += 1;
        for (at, file) in files.into_iter().enumerate() {
            self.ingested += file.bytes;
            let path = format!("in-{:06}-{at}", self.commits);
            self.days.entry(file.day).or_default().push(SimFile { path, number: self.commits, ..file });
        }
    }

    pub fn facts(&self, day: i64) -> Vec<FileFacts> {
        self.days.get(&day).map(|files| files.iter().map(SimFile::facts).collect()).unwrap_or_default()
    }

    /// When a day ends, and how far the table is.
    pub fn time(&self, day: i64) -> PartitionTime {
        let micros = |minute: i64| Moment(minute * 60_000_000);
        let highest = self.days.values().flatten().map(|file| file.minutes.1).max();
        PartitionTime { end: Some(micros((day + 1) * DAY)), highest: highest.map(micros), now: Some(micros(self.now)) }
    }

    /// Replaces files of a day by what a merge of them writes.
    pub fn merge(&mut self, day: i64, paths: &[String], settings: &PlanSettings, target: Option<u64>, rule: Rule) {
        let files = self.days.get_mut(&day).unwrap();
        let (inputs, kept): (Vec<SimFile>, Vec<SimFile>) = files.drain(..).partition(|file| paths.contains(&file.path));
        assert_eq!(inputs.len(), paths.len(), "a plan names live files");
        *files = kept;
        let bytes: u64 = inputs.iter().map(|file| file.bytes).sum();
        let sizes = expected_outputs(bytes, target.unwrap_or(settings.target_bytes), settings.min_file_bytes);
        let low = inputs.iter().map(|file| file.series.0).min().unwrap();
        let high = inputs.iter().map(|file| file.series.1).max().unwrap();
        let minutes = (
            inputs.iter().map(|file| file.minutes.0).min().unwrap(),
            inputs.iter().map(|file| file.minutes.1).max().unwrap(),
        );
        let is_cold = matches!(rule, Rule::Cold | Rule::Full);
        let most = |of: fn(&SimFile) -> u32| inputs.iter().map(of).max().unwrap();
        let again = (most(|file| file.again.0) + u32::from(!is_cold), most(|file| file.again.1) + u32::from(is_cold));
        self.most_again = (self.most_again.0.max(again.0), self.most_again.1.max(again.1));
        self.rewritten += bytes;
        self.merges += 1;
        // A file ends where the series changes.
        let spread = u64::from(high - low) + 1;
        let count = (sizes.len() as u64).min(spread);
        for at in 0..count {
            let edge = |at: u64| low + u16::try_from(spread * at / count).unwrap();
            self.outputs += 1;
            files.push(SimFile {
                path: format!("out-{:06}", self.outputs),
                day,
                number: inputs.iter().map(|file| file.number).max().unwrap(),
                bytes: if count == sizes.len() as u64 { sizes[at as usize] } else { bytes / count },
                series: (edge(at), edge(at + 1) - 1),
                minutes,
                proved: true,
                again,
            });
        }
    }

    pub fn files(&self) -> usize {
        self.days.values().map(Vec::len).sum()
    }

    /// The most files of one day that a reader has to merge to find the last write of a key.
    pub fn depth(&self) -> usize {
        self.days.values().map(|files| depth(files)).max().unwrap_or(0)
    }

    /// Bytes written again for each byte that came in.
    pub fn amplification(&self) -> f64 {
        self.rewritten as f64 / self.ingested.max(1) as f64
    }
}

/// The most files whose key ranges hold one key.
pub fn depth(files: &[SimFile]) -> usize {
    let at = |file: &SimFile| {
        files.iter().filter(|other| other.first() <= file.first() && file.first() <= other.last()).count()
    };
    files.iter().map(at).max().unwrap_or(0)
}
