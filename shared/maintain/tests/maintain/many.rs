//! A listing of very many files. `FIRN_LISTED_FILES` asks for more of them (5,000,000 is the measured size).

use chrono::{DateTime, Utc};
use firn_maintain::identity::Fingerprint;
use firn_maintain::sweep::class::FileClass;
use firn_maintain::sweep::listing::ListingBuilder;
use firn_model::BlobId;
use firn_storage::ListedBlob;

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

fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn millions_of_listed_files_fit() {
    let files = std::env::var("FIRN_LISTED_FILES").map_or(FILES, |text| text.parse().unwrap());
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
        listing.mark_referred(place, true);
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
