//! Pictures in characters that a person reads without knowing the code.

use std::fmt::Write;

use crate::policies::{POLICIES, Policy, defaults};
use crate::world::{DAY, MB, SERIES, SimFile, World, depth};
use crate::writers::Writer;

/// A table over some days.
pub struct Scenario {
    pub what: &'static str,
    pub writers: Vec<Writer>,
    pub days: i64,
}

impl Scenario {
    /// Plays it; `look` sees the world after each minute.
    pub fn play(&self, policy: Policy, mut look: impl FnMut(i64, &World)) -> World {
        let mut world = World::default();
        let settings = defaults();
        for minute in 0..self.days * DAY {
            world.now = minute;
            for commit in self.writers.iter().flat_map(|writer| writer.commits(minute)) {
                world.commit(commit);
            }
            policy.tick(&mut world, minute, &settings);
            look(minute, &world);
        }
        world
    }

    /// The number of files every six hours as bars, then the end of each policy.
    pub fn picture(&self) -> String {
        let mut text = format!("{}\n\n", self.what);
        let mut rows = Vec::new();
        let world = self.play(Policy::Firn, |minute, world| {
            if (minute + 1) % 360 == 0 {
                rows.push((minute + 1, world.files(), world.depth(), world.amplification()));
            }
        });
        let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1);
        let per_mark = most.div_ceil(50);
        writeln!(text, "Firn: files in the table every six hours (one # for {per_mark}),").unwrap();
        writeln!(text, "the most files a reader merges for one key, bytes written again for each byte that came\n")
            .unwrap();
        for (minute, files, depth, amplification) in rows {
            let (day, hour) = (minute / DAY + 1, minute % DAY / 60);
            let bar = "#".repeat(files.div_ceil(per_mark));
            writeln!(
                text,
                "day {day:2} {hour:02}:00 {files:5} files  depth {depth:3}  again {amplification:4.1}  {bar}"
            )
            .unwrap();
        }
        let (routine, cold) = world.most_again;
        writeln!(text, "\nNo byte was written again more than {routine} times by routine and {cold} by cold rewrites.")
            .unwrap();
        writeln!(text, "\nAt the end, by policy:\n").unwrap();
        text.push_str(&self.table());
        text
    }

    /// A line a policy.
    pub fn table(&self) -> String {
        let mut text = String::new();
        writeln!(
            text,
            "| policy | files at the end | most files | mean files | depth at the end | mean depth | written again |"
        )
        .unwrap();
        writeln!(text, "|---|--:|--:|--:|--:|--:|--:|").unwrap();
        for policy in POLICIES {
            let (mut most, mut sum, mut depths, mut count) = (0, 0, 0, 0);
            let world = self.play(policy, |minute, world| {
                most = most.max(world.files());
                if minute % 60 == 59 {
                    sum += world.files();
                    depths += world.depth();
                    count += 1;
                }
            });
            writeln!(
                text,
                "| {} | {} | {} | {:.0} | {} | {:.0} | {:.1} |",
                policy.name(),
                world.files(),
                most,
                sum as f64 / f64::from(count),
                world.depth(),
                f64::from(u32::try_from(depths).unwrap()) / f64::from(count),
                world.amplification()
            )
            .unwrap();
        }
        text
    }
}

/// Files of one day, a line each, over the series that they hold.
pub fn layout(files: &[SimFile]) -> String {
    let mut sorted: Vec<&SimFile> = files.iter().collect();
    sorted.sort_by_key(|file| (file.number, file.first()));
    let mut text = format!("{:9} {:>8}  series 0 to {}\n", "", "", SERIES - 1);
    for file in sorted {
        let marks: String =
            (0..SERIES).map(|at| if file.series.0 <= at && at <= file.series.1 { '=' } else { ' ' }).collect();
        let size = match file.bytes {
            bytes if bytes >= MB => format!("{:.1} MB", bytes as f64 / MB as f64),
            bytes => format!("{} KB", bytes >> 10),
        };
        writeln!(text, "commit {:2} {size:>8}  |{marks}|", file.number).unwrap();
    }
    writeln!(text, "{} files, at most {} for one key", files.len(), depth(files)).unwrap();
    text
}
