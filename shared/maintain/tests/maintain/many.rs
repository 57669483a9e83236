//! A listing of very many files. `FIRN_LISTED_FILES` asks for more of them (5,000,000 is the measured size).

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use firn_maintain::identity::Fingerprint;
use firn_maintain::sweep::class::FileClass;
use firn_maintain::sweep::listing::{ListingBuilder, Referred};
use firn_maintain::{Neighbours, SweepOutcome, SweepTools, Unheard, sweep_table};
use firn_model::BlobId;
use firn_state::{StateRoot, StateStore};
use firn_storage::{Clock, ListedBlob, LocalStore};

use crate::double::Generated;
use crate::lake::{Lake, WAREHOUSE};

/// Files when nobody asked for more.
const FILES: u64 = 50_000;
/// Bytes that a listed file may cost, the growth of its vectors counted.
const BYTES_EACH: u64 = 80;

fn blob(number: u64, time: DateTime<Utc>) -> ListedBlob {
    let key =
        format!("warehouse/iot/readings/data/time_hour_day=2026-11-{:02}/00000-{number}-0ff6eabd.parquet", number % 28);
    let id = BlobId { account: "acct".into(), container: "lake".into(), key };
    ListedBlob { id, size: number, etag: String::new(), last_modified: time }
}

fn files() -> u64 {
    std::env::var("FIRN_LISTED_FILES").map_or(FILES, |text| text.parse().unwrap())
}

fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn millions_of_listed_files_fit() {
    let files = files();
    let time: DateTime<Utc> = "2026-11-01T00:00:00Z".parse().unwrap();
    let before = resident_kb();
    let mut builder = ListingBuilder::default();
    for number in 0..files {
        builder.add(&blob(number, time), FileClass::Data);
    }
    let listing = builder.finish();
    // Half of them are referred to.
    for number in (0..files).step_by(2) {
        let place = listing.find(Fingerprint::of(&blob(number, time).id)).unwrap();
        listing.mark_referred(place, Referred::Current);
    }
    let unreferenced = listing.iter().filter(|(_, file)| file.state == firn_maintain::FileState::Unreferenced).count();
    assert_eq!((listing.objects, unreferenced as u64), (files, files / 2));
    if let (Some(before), Some(after)) = (before, resident_kb()) {
        let grown = (after - before) * 1024;
        println!("{files} files: resident set at most {} MB, {} MB of them for the listing", after / 1024, grown >> 20);
        if files >= 1_000_000 {
            assert!(grown < files * BYTES_EACH, "{} bytes a file", grown / files);
            assert!(after < 512 * 1024, "{after} kB");
        }
    }
}

/// Whole sweeps of a table in which nothing refers to all these files: the second reads what the first one saw, and writes it again.
#[tokio::test]
async fn sweeps_of_millions_of_orphans_fit() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    let time = Utc::now() - TimeDelta::hours(48);
    let folder = lake.id(&format!("{WAREHOUSE}/t/"));
    *lake.store.generated.lock().unwrap() = Some(Generated { folder, files: files(), time });
    // What a sweep writes down lies on disk, as it would elsewhere.
    let disk = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::new());
    let root = StateRoot::new(BlobId::local(disk.path().join("state").to_string_lossy()));
    let state = StateStore::new(store.clone(), store, root);
    let before = resident_kb();
    for (kept, reason) in [("in grace: the first sweep of a table deletes nothing", true), ("in grace", false)] {
        let tools = SweepTools {
            catalog: &lake.catalog,
            state: &state,
            settings: &lake.config.maintenance,
            clock: &Clock::system(),
            configured: &[],
            deadline: None,
            dry_run: false,
        };
        let swept = sweep_table(tools, &lake.job("t"), &mut Neighbours::default(), &mut Unheard).await;
        assert!(matches!(swept.outcome, SweepOutcome::Done), "{swept:?}");
        assert_eq!(swept.receipt.rules.first_sweep, reason);
        assert_eq!(swept.receipt.kept.get(kept), Some(&files()), "{swept:?}");
        assert_eq!(swept.receipt.states.unreferenced, files());
    }
    if let (Some(before), Some(after)) = (before, resident_kb()) {
        println!("{} orphans: resident set at most {} MB, {} MB before", files(), after / 1024, before / 1024);
        if files() >= 1_000_000 {
            assert!(after < 512 * 1024, "{after} kB");
        }
    }
}
