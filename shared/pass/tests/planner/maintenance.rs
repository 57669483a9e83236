//! The timers of maintenance: one table after the other, in time, and the next run goes on where the last one ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use firn_compact::HostServices;
use firn_pass::{MaintainTick, expire_tick, orphans_tick};
use firn_state::{EXPIRE_TICKS, MaintenanceTick, ORPHAN_TICKS, StateStore};
use firn_storage::Clock;
use firn_table::{Catalog, LoadedTable, SwapError, TableError, TableIdent};
use iceberg::{TableRequirement, TableUpdate};

use crate::lake::Lake;

const START: &str = "2026-11-01T00:00:00Z";

async fn with_tables(tables: &[&str]) -> Lake {
    let lake = Lake::new(START, "", &["a", "b", "c"]).await;
    for table in tables {
        lake.create(table, &[]).await;
    }
    lake
}

async fn record(state: &StateStore, name: &str) -> Option<MaintenanceTick> {
    state.read(&state.root().maintenance_tick(name)).await.unwrap().map(|read| read.value)
}

/// Tables looked at, failed and waiting, and the next one.
fn told(done: &MaintainTick) -> (u64, u64, u64, Option<&str>) {
    (done.summary.tables, done.summary.failed, done.summary.waiting, done.next.as_deref())
}

#[tokio::test]
async fn each_table_has_its_turn_when_the_interval_has_passed() {
    let lake = with_tables(&["a", "b", "c"]).await;
    for name in [EXPIRE_TICKS, ORPHAN_TICKS] {
        let run = || async {
            match name {
                EXPIRE_TICKS => expire_tick(&lake.host, "i").await.unwrap(),
                _ => orphans_tick(&lake.host, "i").await.unwrap(),
            }
        };
        let first = run().await;
        assert!(first.due);
        assert_eq!(told(&first), (3, 0, 0, None), "{name}");
        lake.clock.advance(Duration::from_secs(59 * 60));
        assert!(!run().await.due, "{name}");
        lake.clock.advance(Duration::from_secs(60));
        assert!(run().await.due, "{name}");
        assert_eq!(record(&lake.host.state, name).await.unwrap().last_tick, Some(lake.clock.now()));
    }
}

/// A table that fails is counted, and the others have their turn.
#[tokio::test]
async fn a_table_that_fails_is_passed_over() {
    let lake = with_tables(&["a", "c"]).await;
    assert_eq!(told(&expire_tick(&lake.host, "i").await.unwrap()), (3, 1, 0, None));
    assert_eq!(told(&orphans_tick(&lake.host, "i").await.unwrap()), (3, 1, 0, None));
}

/// A run without time does one table, however little of it, and the next goes on behind it without waiting for the interval.
#[tokio::test]
async fn a_run_whose_time_is_used_up_goes_on_at_the_next_table() {
    let lake = with_tables(&["a", "b", "c"]).await;
    let host = HostServices { run_limit: Some(Duration::ZERO), ..lake.host.clone() };
    for (next, waiting) in [(Some("b"), 3), (Some("c"), 2), (None, 1)] {
        let done = orphans_tick(&host, "i").await.unwrap();
        assert!(done.due);
        assert_eq!(told(&done), (1, 0, waiting, next));
        assert_eq!(record(&host.state, ORPHAN_TICKS).await.unwrap().next.as_deref(), next);
    }
    assert!(!orphans_tick(&host, "i").await.unwrap().due, "all of them had their turn");
    let sweeps = lake.events("sweepFinished").into_iter();
    let ended: Vec<(String, String)> = sweeps
        .map(|event| (event["dataset"].as_str().unwrap().into(), event["outcome"].as_str().unwrap().into()))
        .collect();
    assert_eq!(ended, ["a", "b", "c"].map(|dataset| (dataset.to_owned(), "unfinished".to_owned())));
}

/// The process ends: what was not begun is the next run's.
#[tokio::test]
async fn a_run_that_is_stopped_goes_on_at_the_table_that_was_not_begun() {
    let lake = with_tables(&["a", "b", "c"]).await;
    lake.host.compact.stop.stop();
    let done = expire_tick(&lake.host, "i").await.unwrap();
    assert_eq!(told(&done), (0, 0, 3, Some("a")));
    let host = fresh(&lake);
    assert_eq!(told(&expire_tick(&host, "i").await.unwrap()), (3, 0, 0, None));
}

/// The services without the stop.
fn fresh(lake: &Lake) -> HostServices {
    let compact = firn_compact::Services { stop: Default::default(), ..lake.host.compact.clone() };
    HostServices { compact, ..lake.host.clone() }
}

/// A run that was killed twice in one table is not held up by it a third time.
#[tokio::test]
async fn a_table_that_kills_its_runs_is_passed_over() {
    let lake = with_tables(&["a", "b", "c"]).await;
    let address = lake.host.state.root().maintenance_tick(EXPIRE_TICKS);
    let killed = MaintenanceTick { last_tick: Some(lake.clock.now()), next: Some("b".into()), starts: 2 };
    lake.host.state.write(&address, &killed).await.unwrap();
    assert_eq!(told(&expire_tick(&lake.host, "i").await.unwrap()), (1, 0, 0, None), "only c");
}

/// Another run wrote the record meanwhile: both work to their ends, and the other's record counts.
#[tokio::test]
async fn a_run_that_lost_its_cursor_works_on_and_writes_nothing() {
    let lake = with_tables(&["a", "b", "c"]).await;
    let other = MaintenanceTick { last_tick: Some(lake.clock.now()), next: Some("c".into()), starts: 1 };
    let catalog = Overtaken {
        real: Arc::clone(&lake.host.compact.catalog),
        state: Arc::clone(&lake.host.state),
        writes: other.clone(),
        clock: lake.clock.clone(),
    };
    let compact = firn_compact::Services { catalog: Arc::new(catalog), ..lake.host.compact.clone() };
    let host = HostServices { compact, ..lake.host.clone() };
    assert_eq!(told(&expire_tick(&host, "i").await.unwrap()), (3, 0, 0, None));
    assert_eq!(record(&host.state, EXPIRE_TICKS).await, Some(other));
}

/// A catalog before whose loads another run writes its tick.
struct Overtaken {
    real: Arc<dyn Catalog>,
    state: Arc<StateStore>,
    writes: MaintenanceTick,
    clock: Clock,
}

impl fmt::Debug for Overtaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Overtaken")
    }
}

#[async_trait]
impl Catalog for Overtaken {
    fn name(&self) -> &str {
        self.real.name()
    }

    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError> {
        self.clock.advance(Duration::from_secs(1));
        self.state.write(&self.state.root().maintenance_tick(EXPIRE_TICKS), &self.writes).await.unwrap();
        self.real.load(ident).await
    }

    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        self.real.list_namespaces().await
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        self.real.list_tables(namespace).await
    }

    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError> {
        self.real.swap(table, updates, requirements).await
    }
}
