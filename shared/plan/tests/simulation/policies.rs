//! Firn's rules and the naive policies that it is compared with, each asked every 15 minutes.

use firn_model::Rule;
use firn_plan::{
    PartitionDecision, PartitionFiles, PlanSettings, TableRules, expected_outputs, plan_by_strongest, tick_rules,
};

use crate::world::{DAY, MB, World, row_order};

/// Who decides what is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The rules of this crate, with their defaults.
    Firn,
    /// More than a hundred small files in a day: all of them are merged.
    Threshold,
    /// Every night at two, every day of more than one file is written again.
    NightlyFull,
    /// Spark's `rewrite_data_files` with its default bin-packing, every night at two: files outside 75 % to 180 % of the target, in groups of
    /// five or of more than a target.
    SparkBinPack,
}

pub const POLICIES: [Policy; 4] = [Policy::Firn, Policy::Threshold, Policy::SparkBinPack, Policy::NightlyFull];

impl Policy {
    pub fn name(self) -> &'static str {
        match self {
            Policy::Firn => "Firn",
            Policy::Threshold => "threshold only",
            Policy::NightlyFull => "nightly full rewrite",
            Policy::SparkBinPack => "Spark bin-pack, nightly",
        }
    }

    /// What is done at a minute; merges are instant.
    pub fn tick(self, world: &mut World, minute: i64, settings: &PlanSettings) {
        if minute % 15 != 0 {
            return;
        }
        let night = minute % DAY == 120;
        let days: Vec<i64> = world.days.keys().copied().collect();
        for day in days {
            match self {
                Policy::Firn => firn(world, day, settings, night),
                Policy::Threshold => {
                    let small = paths(world, day, |bytes| bytes < settings.min_file_bytes);
                    if small.len() > settings.backlog_file_threshold {
                        world.merge(day, &small, settings, None, Rule::Backlog);
                    }
                }
                Policy::NightlyFull if night => {
                    let all = paths(world, day, |_| true);
                    if all.len() > 1 {
                        world.merge(day, &all, settings, None, Rule::Full);
                    }
                }
                Policy::SparkBinPack if night => {
                    let (low, high) = (settings.target_bytes / 4 * 3, settings.target_bytes / 10 * 18);
                    let odd = paths(world, day, |bytes| bytes < low || bytes > high);
                    let bytes: u64 =
                        world.days[&day].iter().filter(|file| odd.contains(&file.path)).map(|file| file.bytes).sum();
                    if odd.len() >= 5 || odd.len() > 1 && bytes > settings.target_bytes {
                        world.merge(day, &odd, settings, None, Rule::Schedule);
                    }
                }
                Policy::NightlyFull | Policy::SparkBinPack => {}
            }
        }
    }
}

fn paths(world: &World, day: i64, is_taken: impl Fn(u64) -> bool) -> Vec<String> {
    world.days[&day].iter().filter(|file| is_taken(file.bytes)).map(|file| file.path.clone()).collect()
}

/// Plans a day by the rules of a tick and does what they say. Planned again at once, the same rule finds nothing.
fn firn(world: &mut World, day: i64, settings: &PlanSettings, night: bool) {
    let order = row_order();
    let plan = |world: &World, rules: &[Rule]| {
        let files = world.facts(day);
        let table = TableRules { format_version: 2, enabled: true, order: &order };
        plan_by_strongest(
            PartitionFiles { files: &files, deletes: &[], time: world.time(day) },
            &table,
            settings,
            rules,
        )
    };
    let (rule, PartitionDecision::Selected { groups, .. }) = plan(world, tick_rules(night)) else { return };
    for group in &groups {
        let paths: Vec<String> = group.files().iter().map(|file| file.path.clone()).collect();
        world.merge(day, &paths, settings, group.target_bytes(), rule);
    }
    let (_, again) = plan(world, &[rule]);
    assert!(matches!(again, PartitionDecision::Left(_)), "day {day} again by {rule}: {again}");
}

/// The defaults of a dataset with a time column.
pub fn defaults() -> PlanSettings {
    PlanSettings::default().with_times(Some(8), Some(3_600_000_000))
}

/// Files that a perfect rewrite of a day would have.
pub fn ideal(bytes: u64) -> usize {
    expected_outputs(bytes, 128 * MB, 32 * MB).len()
}
