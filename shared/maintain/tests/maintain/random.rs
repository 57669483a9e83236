//! Whatever writers, merges, expiry, sweeps, rollbacks, branches, tags, cherry-picks and clocks do in any order: no retained snapshot ever misses a
//! file, and files only go from live over replaced and unreferenced to deleted.
//!
//! `FIRN_RANDOM_STEPS` asks for more steps (10,000 in the nightly run), `FIRN_RANDOM_SEED` for a certain run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use firn_maintain::sweep::SweepStop;
use firn_maintain::{FileState, SweepOutcome, Verdict};
use firn_storage::Clock;
use iceberg::spec::SnapshotRetention;

use crate::lake::{Change, Lake, WAREHOUSE, name};

/// Steps of a run that nobody asked more of.
const STEPS: u64 = 500;
/// All data files of the test are read through after so many steps.
const CHECKED_EVERY: u64 = 10;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// A small generator, so that a seed means the same run for ever (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.below(from.len())) }
    }
}

struct World {
    lake: Lake,
    random: Random,
    files: u64,
    /// Files that were uploaded and not committed, with the hour of their upload.
    uploads: Vec<(String, i64)>,
    /// What Firn's own steps saw of each file last.
    states: BTreeMap<String, FileState>,
    deleted: u64,
    /// Whether the last expiry removed a branch or tag.
    reference_went: bool,
}

impl World {
    fn fresh(&mut self) -> String {
        self.files += 1;
        format!("f{:06}.parquet", self.files)
    }

    fn hour(&self) -> i64 {
        self.lake.now().timestamp() / 3600
    }

    async fn head(&self, branch: &str) -> Vec<String> {
        let table = self.lake.load("t").await;
        let Some(id) = table.metadata.snapshot_for_ref(branch).map(|head| head.snapshot_id()) else { return vec![] };
        self.lake.live("t").await.remove(&id).unwrap_or_default().into_iter().collect()
    }

    async fn snapshots(&self) -> Vec<i64> {
        self.lake.load("t").await.history().unwrap().snapshots.iter().map(|one| one.id).collect()
    }

    async fn branches(&self) -> Vec<String> {
        let refs = self.lake.load("t").await.history().unwrap().refs;
        refs.into_iter().filter(|one| one.branch.is_some()).map(|one| one.name).collect()
    }

    async fn branch(&mut self) -> String {
        let branches = self.branches().await;
        self.random.pick(&branches).cloned().unwrap_or_else(|| "main".into())
    }

    async fn commit(&mut self, branch: &str, add: Vec<String>, remove: Vec<String>, staged: bool) {
        let add: Vec<&str> = add.iter().map(String::as_str).collect();
        let remove: Vec<&str> = remove.iter().map(String::as_str).collect();
        self.lake.commit("t", branch, Change { add: &add, remove: &remove, staged, ..Change::default() }).await;
    }

    /// The states of all data files by the table itself, not by what a sweep says.
    async fn observed(&self) -> BTreeMap<String, FileState> {
        let table = self.lake.load("t").await;
        let heads: BTreeSet<i64> = table.history().unwrap().refs.iter().map(|one| one.snapshot_id).collect();
        let mut states = BTreeMap::new();
        for (snapshot, files) in self.lake.live("t").await {
            for file in files {
                let state = if heads.contains(&snapshot) { FileState::Live } else { FileState::Replaced };
                states.entry(file).and_modify(|known: &mut FileState| *known = state.min(*known)).or_insert(state);
            }
        }
        for key in self.lake.below(&format!("{WAREHOUSE}/t/data/")).await {
            states.entry(name(&key)).or_insert(FileState::Unreferenced);
        }
        states
    }

    /// After a step of Firn's: every file went on by one state or stayed; after anybody's: what is observed now counts.
    async fn note(&mut self, own: bool, step: &str, reference_went: bool) {
        let now = self.observed().await;
        if own {
            for (file, before) in &self.states {
                let after = now.get(file).copied().unwrap_or(FileState::Deleted);
                // With a branch or tag that goes, two steps are one commit: its files are nobody's current ones, and then nobody's at all.
                let two = reference_went && before.next().and_then(FileState::next) == Some(after);
                let goes_on = after == *before || before.next() == Some(after) || two;
                assert!(goes_on, "{step}: {file} went from {before:?} to {after:?}");
            }
        }
        self.states = now;
    }

    /// One step; true for one of Firn's own.
    async fn step(&mut self, kind: usize) -> (bool, &'static str) {
        match kind {
            0..=19 => {
                let branch = self.branch().await;
                let add = (0..=self.random.below(3)).map(|_| self.fresh()).collect();
                self.commit(&branch, add, vec![], false).await;
                (false, "append")
            }
            20..=31 => {
                let branch = self.branch().await;
                let live = self.head(&branch).await;
                if live.len() < 2 {
                    return (false, "nothing to merge");
                }
                let take = 2 + self.random.below(live.len() - 1);
                let output = self.fresh();
                self.commit(&branch, vec![output], live.into_iter().take(take).collect(), false).await;
                (true, "merge")
            }
            32..=37 => {
                let file = self.fresh();
                self.lake.put(&format!("{WAREHOUSE}/t/data/{file}"), b"x").await;
                self.uploads.push((file, self.hour()));
                (false, "upload")
            }
            38..=42 => {
                // A writer commits what it uploaded; it never takes longer than the age protects.
                let hour = self.hour();
                self.uploads.retain(|(_, uploaded)| hour - uploaded < 24);
                if let Some((file, _)) = self.uploads.pop() {
                    assert!(self.lake.exists(&format!("{WAREHOUSE}/t/data/{file}")).await, "{file} is gone");
                    self.commit("main", vec![file], vec![], false).await;
                }
                (false, "late commit")
            }
            43..=46 => {
                let file = self.fresh();
                self.commit("main", vec![file], vec![], true).await;
                (false, "staged")
            }
            47..=49 => {
                // A cherry-pick: the files of some snapshot come to main again.
                let snapshots: Vec<(i64, BTreeSet<String>)> = self.lake.live("t").await.into_iter().collect();
                if let Some((_, files)) = self.random.pick(&snapshots).cloned() {
                    let main: BTreeSet<String> = self.head("main").await.into_iter().collect();
                    let add: Vec<String> = files.difference(&main).cloned().collect();
                    for file in &add {
                        assert!(self.lake.exists(&format!("{WAREHOUSE}/t/data/{file}")).await, "{file} is gone");
                    }
                    if !add.is_empty() {
                        self.commit("main", add, vec![], false).await;
                    }
                }
                (false, "cherry-pick")
            }
            50..=53 => {
                let snapshots = self.snapshots().await;
                if let Some(id) = self.random.pick(&snapshots).copied() {
                    self.lake.move_branch("t", "main", id).await;
                }
                (false, "rollback")
            }
            54..=57 => {
                let snapshots = self.snapshots().await;
                let number = self.random.below(3);
                if let Some(id) = self.random.pick(&snapshots).copied() {
                    let age = [None, Some(3_600_000 * 40)][self.random.below(2)];
                    self.lake
                        .set_ref("t", &format!("b{number}"), id, SnapshotRetention::branch(Some(2), None, age))
                        .await;
                }
                (false, "branch")
            }
            58..=61 => {
                let snapshots = self.snapshots().await;
                let number = self.random.below(3);
                if let Some(id) = self.random.pick(&snapshots).copied() {
                    let max_ref_age_ms = [None, Some(3_600_000 * 30)][self.random.below(2)];
                    self.lake.set_ref("t", &format!("t{number}"), id, SnapshotRetention::Tag { max_ref_age_ms }).await;
                }
                (false, "tag")
            }
            62..=71 => {
                self.reference_went = !self.lake.expire("t").await.plan.refs.is_empty();
                (true, "expire")
            }
            72..=73 => {
                let (one, other) = tokio::join!(self.lake.sweep("t"), self.lake.sweep("t"));
                for (swept, heard) in [one, other] {
                    assert!(matches!(swept.outcome, SweepOutcome::Done), "{swept:?}");
                    self.deleted += heard.names(Verdict::Deleted).len() as u64;
                }
                (true, "two sweeps")
            }
            74..=75 => {
                // A machine whose clock is wrong: by minutes it may be, by more nothing goes.
                let minutes = [-600_000, -11, -9, 9, 11, 600_000][self.random.below(6)];
                let wrong = Clock::manual(self.lake.now() + TimeDelta::minutes(minutes));
                let (swept, heard) = self.lake.sweep_with("t", &self.lake.catalog, &wrong, false).await;
                let far = matches!(swept.outcome, SweepOutcome::Stopped(SweepStop::Clock { .. }));
                assert_eq!(far, minutes.abs() > 10, "{minutes}: {swept:?}");
                self.deleted += heard.names(Verdict::Deleted).len() as u64;
                assert!(!far || heard.0.is_empty());
                (true, "a wrong clock")
            }
            76..=84 => {
                let (swept, heard) = self.lake.sweep("t").await;
                assert!(matches!(swept.outcome, SweepOutcome::Done), "{swept:?}");
                self.deleted += heard.names(Verdict::Deleted).len() as u64;
                (true, "sweep")
            }
            85..=97 => {
                let minutes = 1 + self.random.below(6 * 60) as u64;
                self.lake.clock.advance(Duration::from_secs(minutes * 60));
                (false, "time passes")
            }
            _ => {
                let hours = 24 + self.random.below(80) as u64;
                self.lake.hours(hours);
                (false, "the clock jumps")
            }
        }
    }
}

#[tokio::test]
async fn no_retained_snapshot_ever_misses_a_file() {
    let steps = variable("FIRN_RANDOM_STEPS").unwrap_or(STEPS);
    let seed = variable("FIRN_RANDOM_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
    println!("FIRN_RANDOM_SEED={seed} FIRN_RANDOM_STEPS={steps}");
    let lake = Lake::with_settings("orphanMetadata: true").await;
    lake.create("t", &[("write.metadata.previous-versions-max", "5")]).await;
    lake.append("t", &["f000000.parquet"]).await;
    let mut world = World {
        lake,
        random: Random(seed),
        files: 0,
        uploads: vec![],
        states: BTreeMap::new(),
        deleted: 0,
        reference_went: false,
    };
    world.note(false, "start", false).await;
    let mut done: BTreeMap<&'static str, u64> = BTreeMap::new();
    for number in 1..=steps {
        let kind = world.random.below(100);
        world.reference_went = false;
        let (own, step) = world.step(kind).await;
        *done.entry(step).or_default() += 1;
        world.note(own, step, world.reference_went).await;
        if number % CHECKED_EVERY == 0 {
            world.lake.check_whole("t").await;
        }
    }
    world.lake.check_whole("t").await;
    println!("{done:?}, {} files deleted", world.deleted);
    if steps >= STEPS {
        assert!(world.deleted > 0, "a run that deletes nothing shows nothing: {done:?}");
    }
}
