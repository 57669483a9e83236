//! Whole files in, models or problems out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use firn_config::*;

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn load(text: &str) -> Config {
    Config::load(text, &environment(&[])).unwrap_or_else(|errors| panic!("{errors}"))
}

fn problems_with(text: &str, pairs: &[(&str, &str)]) -> Vec<String> {
    let errors = Config::load(text, &environment(pairs)).expect_err("must be refused");
    errors.to_string().lines().map(str::to_owned).collect()
}

fn problems(text: &str) -> Vec<String> {
    problems_with(text, &[])
}

const CATALOG: &str =
    "catalog: {type: sql, uri: 'sqlite:////data/catalog.db', name: lake, warehouse: 'file:///data/wh'}\n";
const INGESTION: &str = "ingestion: {datasets: [{name: readings, table: iot.readings}]}\n";

/// A sound file with `more` below it; `more` begins on line 3.
fn with(more: &str) -> String {
    format!("{CATALOG}{INGESTION}{more}")
}

/// A sound file whose only dataset has these keys on line 4.
fn with_dataset(keys: &str) -> String {
    format!("{CATALOG}ingestion:\n  datasets:\n    - {{name: readings, table: iot.readings, {keys}}}\n")
}

const LOCAL_FOLDER: &str = "\
catalog:
  type: sql                    # SQLite or PostgreSQL, the schema that PyIceberg and Iceberg's JDBC catalog share
  uri: sqlite:////data/catalog.db
  name: lake
  warehouse: file:///data/warehouse
ingestion:
  datasets:
    - { name: readings, table: iot.readings, seriesColumns: [name], timeColumn: time, dedup: true }
";

#[test]
fn the_local_folder_example_loads_with_every_default() {
    let config = load(LOCAL_FOLDER);
    assert_eq!(config.storage, None);
    let catalog = SqlCatalog {
        name: "lake".into(),
        database: Database::Sqlite("/data/catalog.db".into()),
        warehouse: Some("file:///data/warehouse".into()),
    };
    assert_eq!(config.catalog, Catalog::Sql(catalog));
    assert_eq!(config.catalog.warehouse_folder(), Some(PathBuf::from("/data/warehouse")));
    let settings = CompactionSettings {
        backlog_file_threshold: 100,
        min_file_size_mb: 32,
        target_size_mb: 128,
        commit_retry_max: 5,
        snapshot_retention_hours: 24,
        compact_min_files: Some(8),
        compact_cold_after: Some(Duration::from_secs(3600)),
        memory_mb: 512,
        temp_disk_mb: 400,
        group_budget_mb: 1024,
        message_budget_mb: None,
        max_target_size_mb: None,
        max_partitions_per_pass: 500,
        row_group_mb: 32,
        read_batch_kb: 1024,
        encodings: firn_config::Encodings::Compatible,
        verify: Verify::Stream,
        cooldown_hours: 6,
        dedup_operation: DedupOperation::Overwrite,
    };
    assert_eq!(settings.min_file_bytes(), 33_554_432);
    assert_eq!(settings.read_batch_bytes(), 1_048_576);
    let compaction = Compaction {
        backlog_check_interval_minutes: 15,
        schedule: Schedule::parse("0 2 * * *").unwrap(),
        schedule_catch_up_hours: 12,
        runtime_deadline_hours: 6,
        settings: settings.clone(),
    };
    assert_eq!(config.compaction, compaction);
    let maintenance = Maintenance {
        expire_snapshots_interval_minutes: 60,
        orphan_cleanup_interval_minutes: 60,
        orphan_min_age_hours: 24,
        orphan_grace_hours: 1,
        orphan_metadata: false,
        receipt_days: 90,
    };
    assert_eq!(config.maintenance, maintenance);
    let [dataset] = config.datasets.as_slice() else { panic!("{:?}", config.datasets) };
    assert_eq!(dataset.name, "readings");
    assert_eq!(dataset.table, TableName { namespace: vec!["iot".into()], name: "readings".into() });
    assert_eq!(dataset.table.to_string(), "iot.readings");
    assert_eq!(dataset.branch, "main");
    assert_eq!(dataset.series_columns, ["name"]);
    assert_eq!(dataset.time_column.as_deref(), Some("time"));
    assert_eq!(dataset.insertion_time_column, None);
    assert!(dataset.dedup);
    assert!(dataset.sort_columns.is_empty() && dataset.indexing_columns.is_empty());
    assert!(dataset.bloom_filter_columns.is_empty() && dataset.ndv_columns.is_empty() && !dataset.table_statistics);
    assert!(dataset.backfill_writers.is_empty());
    assert_eq!(dataset.compaction, settings);
    assert_eq!(config.warnings, []);
    assert_eq!(config.dataset("readings"), Some(dataset));
    assert_eq!(config.dataset("Readings"), None);
}

#[test]
fn the_azurite_form_loads() {
    let text = "\
storage:
  connectionString: UseDevelopmentStorage=true
catalog:
  type: sql
  uri: sqlite:////data/catalog.db
  name: lake
  warehouse: abfss://lake@devstoreaccount1.dfs.core.windows.net/wh
ingestion:
  datasets:
    - { name: readings, table: iot.readings, seriesColumns: [name], timeColumn: time, dedup: true }
";
    let config = load(text);
    let storage = config.storage.as_ref().unwrap();
    assert_eq!(storage.credential, Credential::ConnectionString);
    assert_eq!(storage.connection_string.as_ref().unwrap().expose(), "UseDevelopmentStorage=true");
    assert_eq!((storage.state_container.as_str(), storage.queue.as_str()), ("firn-state", "firn-compact"));
    assert!(storage.is_emulator());
    assert_eq!(config.catalog.warehouse_folder(), None);
    // A Functions host on a developer's machine may use the emulator and SQLite, Azure itself may not.
    assert!(Config::load(text, &environment(&[("FUNCTIONS_WORKER_RUNTIME", "custom")])).is_ok());
    assert_eq!(problems_with(text, &[("WEBSITE_INSTANCE_ID", "x")]).len(), 1);
}

#[test]
fn every_key_can_be_set() {
    let text = "\
storage: {account: lake01, blobServiceUri: 'https://b.example', queueServiceUri: 'https://q.example', credential: managedIdentity, clientId: abc, stateContainer: state, queue: work}
catalog: {type: rest, uri: 'https://catalog.example/', name: n, warehouse: w, auth: oauth2, token: t, credential: 'id:secret', oauth2ServerUri: 'https://login.example', scope: s, headers: {X-A: one, X-B: '2'}, vendedCredentials: false}
compaction: {backlogCheckIntervalMinutes: 5, schedule: '30 4 * * 1-5', scheduleCatchUpHours: 3, runtimeDeadlineHours: 2, backlogFileThreshold: 50, minFileSizeMb: 16, targetSizeMb: 64, maxTargetSizeMb: 256, commitRetryMax: 0, snapshotRetentionHours: 48, compactMinFiles: off, compactColdAfter: off, memoryMb: 360, tempDiskMb: 0, groupBudgetMb: 256, messageBudgetMb: 2048, maxPartitionsPerPass: 7, rowGroupMb: 8, readBatchKb: 512, encodings: modern, verify: reread, cooldownHours: 0, dedupOperation: replace}
maintenance: {expireSnapshotsIntervalMinutes: 10, orphanCleanupIntervalMinutes: 20, orphanMinAgeHours: 3, orphanGraceHours: 0, orphanMetadata: true, receiptDays: 14}
ingestion:
  datasets:
    - {name: spans, table: a.b.spans, branch: audit, seriesColumns: [s], timeColumn: t, insertionTimeColumn: i, dedup: true, sortColumns: [s, t], tantivy: {indexingColumns: [m]}, bloomFilterColumns: [b], ndvColumns: [n], tableStatistics: true, backfillWriters: tracelake, compaction: {targetSizeMb: 32, compactColdAfter: 1h30m, compactMinFiles: 4}}
";
    let config = load(text);
    let storage = config.storage.clone().unwrap();
    assert_eq!(storage.account.as_deref(), Some("lake01"));
    assert_eq!(storage.blob_service_uri.as_deref(), Some("https://b.example"));
    assert_eq!(storage.queue_service_uri.as_deref(), Some("https://q.example"));
    assert_eq!(storage.client_id.as_deref(), Some("abc"));
    assert_eq!((storage.state_container.as_str(), storage.queue.as_str()), ("state", "work"));
    let Catalog::Rest(rest) = &config.catalog else { panic!("{:?}", config.catalog) };
    assert_eq!((rest.uri.as_str(), rest.name.as_deref()), ("https://catalog.example", Some("n")));
    assert_eq!((rest.warehouse.as_deref(), rest.auth), (Some("w"), RestAuth::Oauth2));
    assert_eq!(rest.token, Some(Secret::new("t")));
    assert_eq!(rest.credential, Some(Secret::new("id:secret")));
    assert_eq!(rest.oauth2_server_uri.as_deref(), Some("https://login.example"));
    assert_eq!(rest.scope.as_deref(), Some("s"));
    assert_eq!(rest.headers, [("X-A".into(), Secret::new("one")), ("X-B".into(), Secret::new("2"))]);
    assert!(!rest.vended_credentials);
    let settings = CompactionSettings {
        backlog_file_threshold: 50,
        min_file_size_mb: 16,
        target_size_mb: 64,
        commit_retry_max: 0,
        snapshot_retention_hours: 48,
        compact_min_files: None,
        compact_cold_after: None,
        memory_mb: 360,
        temp_disk_mb: 0,
        group_budget_mb: 256,
        message_budget_mb: Some(2048),
        max_target_size_mb: Some(256),
        max_partitions_per_pass: 7,
        row_group_mb: 8,
        read_batch_kb: 512,
        encodings: firn_config::Encodings::Modern,
        verify: Verify::Reread,
        cooldown_hours: 0,
        dedup_operation: DedupOperation::Replace,
    };
    let compaction = Compaction {
        backlog_check_interval_minutes: 5,
        schedule: Schedule::parse("30 4 * * 1-5").unwrap(),
        schedule_catch_up_hours: 3,
        runtime_deadline_hours: 2,
        settings: settings.clone(),
    };
    assert_eq!(config.compaction, compaction);
    let maintenance = Maintenance {
        expire_snapshots_interval_minutes: 10,
        orphan_cleanup_interval_minutes: 20,
        orphan_min_age_hours: 3,
        orphan_grace_hours: 0,
        orphan_metadata: true,
        receipt_days: 14,
    };
    assert_eq!(config.maintenance, maintenance);
    let dataset = config.dataset("spans").unwrap();
    assert_eq!(dataset.table.namespace, ["a", "b"]);
    assert_eq!(dataset.branch, "audit");
    assert_eq!(dataset.insertion_time_column.as_deref(), Some("i"));
    assert_eq!(dataset.sort_columns, ["s", "t"]);
    assert_eq!(dataset.indexing_columns, ["m"]);
    assert_eq!(dataset.bloom_filter_columns, ["b"]);
    assert_eq!(dataset.ndv_columns, ["n"]);
    assert!(dataset.table_statistics);
    assert_eq!(dataset.backfill_writers, ["tracelake"]);
    let own = CompactionSettings {
        target_size_mb: 32,
        compact_cold_after: Some(Duration::from_secs(5400)),
        compact_min_files: Some(4),
        ..settings
    };
    assert_eq!(dataset.compaction, own);
}

#[test]
fn empty_values_stand_for_defaults() {
    let text = with("compaction:\n  targetSizeMb:\n  schedule: ~\nmaintenance:\nstorage:\n");
    assert_eq!(load(&text).compaction.settings, CompactionSettings::default());
    assert_eq!(load(&text).storage, None);
    let dataset = load(&with_dataset("branch: , seriesColumns: null, compaction: ")).datasets.remove(0);
    assert_eq!((dataset.branch.as_str(), dataset.series_columns.len()), ("main", 0));
}

#[test]
fn writers_are_named_by_patterns() {
    let of = |keys: &str| load(&with_dataset(keys)).datasets.remove(0);
    let by_default = of("dedup: false");
    assert!(by_default.backfills_files_of("firn version 0.1.0 (build parquet-rs version 58.4.1)"));
    assert!(by_default.backfills_files_of("TraceLake ingestor 7"));
    assert!(!by_default.backfills_files_of("parquet-cpp-arrow version 24.0.0"));
    assert!(!by_default.backfills_files_of(""));
    let named = of("backfillWriters: [parquet-cpp, '^trino']");
    assert!(named.backfills_files_of("parquet-cpp-arrow version 24.0.0") && named.backfills_files_of("Trino 480"));
    assert!(!named.backfills_files_of("firn version 0.1.0") && !named.backfills_files_of("not trino"));
    assert!(of("backfillWriters: .*").backfills_files_of(""));
}

#[test]
fn what_belongs_to_the_ingestor_is_ignored() {
    let text = format!(
        "{CATALOG}gateway: {{port: x, port: y, secret: '${{NOT_SET}}'}}\n1: 2\n? [a]\n: b\n\
         ingestion:\n  wal: {{path: '${{NOT_SET}}'}}\n  datasets:\n    - name: readings\n      table: iot.readings\n      \
         labels: {{a: 1, a: 2}}\n      maximumAge: ${{NOT_SET}}\n      tantivy: {{heapSizeMb: 15, indexingColumns: [m]}}\n"
    );
    let config = load(&text);
    assert_eq!(config.datasets[0].indexing_columns, ["m"]);
    assert_eq!(config.warnings, []);
}

#[test]
fn an_ignored_section_that_looks_like_ours_is_a_warning() {
    let config = load(&with("compactoin: {targetSizeMb: 1}\n"));
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["firn.yaml:3: compactoin: not a section of Firn and ignored; did you mean compaction?"]);
}

#[test]
fn a_key_in_the_wrong_place_says_where_it_belongs() {
    let block = "belongs into section compaction, or a dataset's own compaction block; write it as compaction";
    let wrong = |text: String| problems(&text).join("\n");
    assert_eq!(wrong(with("memoryMb: 1\n")), format!("firn.yaml:3: memoryMb: {block}.memoryMb"));
    let keys = [
        "backlogFileThreshold",
        "minFileSizeMb",
        "targetSizeMb",
        "commitRetryMax",
        "snapshotRetentionHours",
        "compactMinFiles",
        "compactColdAfter",
        "memoryMb",
        "tempDiskMb",
        "groupBudgetMb",
        "messageBudgetMb",
        "maxTargetSizeMb",
        "maxPartitionsPerPass",
        "rowGroupMb",
        "readBatchKb",
        "verify",
        "encodings",
        "cooldownHours",
        "dedupOperation",
    ];
    for key in keys {
        assert_eq!(wrong(with(&format!("{key}: 1\n"))), format!("firn.yaml:3: {key}: {block}.{key}"));
        assert!(wrong(with(&format!("storage: {{account: lake01, {key}: 1}}\n"))).ends_with(&format!("{block}.{key}")));
        assert!(wrong(with_dataset(&format!("{key}: 1"))).contains("belongs into the dataset's compaction block"));
    }
    for (text, line, key, says) in [
        (
            with("schedule: 0 2 * * *\n"),
            3,
            "schedule",
            "belongs into section compaction; write it as compaction.schedule",
        ),
        (with("orphanMinAgeHours: 48\n"), 3, "orphanMinAgeHours", "write it as maintenance.orphanMinAgeHours"),
        (with("seriesColumns: [a]\n"), 3, "seriesColumns", "write it as ingestion.datasets[].seriesColumns"),
        (with("connectionString: x\n"), 3, "connectionString", "write it as storage.connectionString"),
        (with("datasets: [{name: a, table: b.c}]\n"), 3, "datasets", "write it as ingestion.datasets"),
        (with("compaction: {timeColumn: t}\n"), 3, "compaction.timeColumn", "belongs into a dataset; write it as"),
        (with("compaction: {orphanGraceHours: 1}\n"), 3, "compaction.orphanGraceHours", "section maintenance"),
        (with("maintenance: {memoryMb: 64}\n"), 3, "maintenance.memoryMb", "write it as compaction.memoryMb"),
        (with("compaction: {uri: x}\n"), 3, "compaction.uri", "belongs into section catalog; write it as catalog.uri"),
        (
            with_dataset("compaction: {dedup: true}"),
            4,
            "ingestion.datasets[readings].compaction.dedup",
            "write it as ingestion.datasets[].dedup",
        ),
        (with_dataset("receiptDays: 7"), 4, "ingestion.datasets[readings].receiptDays", "maintenance.receiptDays"),
        (with_dataset("indexingColumns: [m]"), 4, "ingestion.datasets[readings].indexingColumns", "block tantivy"),
    ] {
        let problem = wrong(text);
        assert!(problem.starts_with(&format!("firn.yaml:{line}: {key}: ")) && problem.contains(says), "{problem}");
    }
}

/// A sweep whose receipt is gone cannot be undone; a grace that always begins anew deletes nothing.
#[test]
fn settings_of_maintenance_that_defeat_each_other_are_warned_of() {
    let warnings = |section: &str, dataset: &str| {
        let text = format!(
            "catalog: {{type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'file:///w'}}\n\
             maintenance: {{{section}}}\n\
             ingestion: {{datasets: [{{name: a, table: x.t}}, {{name: b, table: x.u, compaction: {{{dataset}}}}}, \
             {{name: c, table: x.u, branch: dev, compaction: {{snapshotRetentionHours: 2}}}}]}}"
        );
        load(&text).warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(warnings("receiptDays: 14, orphanCleanupIntervalMinutes: 119", "snapshotRetentionHours: 1"), [""; 0]);
    let found = warnings("receiptDays: 13", "");
    let [warning] = found.as_slice() else { panic!("{found:?}") };
    assert!(warning.starts_with("firn.yaml:2: maintenance.receiptDays: \"13\" is less than the 14 days"), "{warning}");
    let found = warnings("orphanCleanupIntervalMinutes: 120", "snapshotRetentionHours: 1");
    let [warning] = found.as_slice() else { panic!("{found:?}") };
    let start = "firn.yaml:2: maintenance.orphanCleanupIntervalMinutes: \"120\" is not less than snapshotRetentionHours 2 of dataset b";
    assert!(warning.starts_with(start), "{warning}");
    assert_eq!(warnings("orphanCleanupIntervalMinutes: 1440", "").len(), 1, "the default of 24 hours");
}

#[test]
fn what_may_be_somebody_elses_is_ignored_and_named_where_it_looks_like_ours() {
    let warnings = |text: &str| load(text).warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
    // A section is somebody else's whatever its name; so are words that everybody uses.
    assert_eq!(warnings(&with("schedule: {hour: 2}\nname: lake\nqueue: x\nmemoryMb:\n")), [""; 0]);
    assert_eq!(
        warnings(&with("memoryMB: 100\n")),
        ["firn.yaml:3: memoryMB: is no key of Firn and ignored; did you mean compaction.memoryMb?"]
    );
    let ingestion =
        format!("{CATALOG}ingestion: {{memoryMb: 1, datasets: [{{name: readings, table: iot.readings}}]}}\n");
    assert_eq!(
        warnings(&ingestion),
        ["firn.yaml:2: ingestion.memoryMb: is ignored here, and belongs into section compaction, or a dataset's own \
          compaction block; write it as compaction.memoryMb"]
    );
}

#[test]
fn all_problems_are_found_at_once_and_by_line() {
    let text = "\
catalog:
  type: sqll
  uri: sqlite:////data/catalog.db
compaction:
  targetSizeMb: abc
  schedule: \"@weekly\"
  memoryMB: 100
maintenance:
  orphanMetadata: maybe
ingestion:
  datasets:
    - name: readings
      tabel: iot.readings
      dedup: true
      compaction: {schedule: 0 2 * * *}
";
    assert_eq!(
        problems(text),
        [
            "firn.yaml:2: catalog.type: \"sqll\" is not known; write one of sql, rest",
            "firn.yaml:5: compaction.targetSizeMb: \"abc\" is not a whole number of megabytes; write for example 128",
            "firn.yaml:6: compaction.schedule: \"@weekly\" is not a schedule: names such as @daily are not taken; write \
         five fields; write for example 0 2 * * *",
            "firn.yaml:7: compaction.memoryMB: unknown key; the nearest known key is compaction.memoryMb",
            "firn.yaml:9: maintenance.orphanMetadata: \"maybe\" is not a boolean; write true or false, without quotes",
            "firn.yaml:12: ingestion.datasets[readings].table: is missing; write namespace and name of the table, for \
         example iot.readings",
            "firn.yaml:13: ingestion.datasets[readings].tabel: unknown key, very near to table; write table or choose \
         another name",
            "firn.yaml:14: ingestion.datasets[readings].dedup: needs timeColumn: the key of a row is (seriesColumns, \
         timeColumn); name the timeColumn or remove dedup",
            "firn.yaml:15: ingestion.datasets[readings].compaction.schedule: holds for all datasets; write it as \
         compaction.schedule at the top level",
        ]
    );
}

/// Each text is refused with exactly one problem, on this line, for this key, saying this.
#[test]
fn each_problem_names_line_key_and_remedy() {
    let cases = [
        (with("compaction: {foo: 1}"), 3, "compaction.foo", "the nearest known key is compaction."),
        (with("maintenance: {orphanMinAge: 30}"), 3, "maintenance.orphanMinAge", "maintenance.orphanMinAgeHours"),
        (with("storage: {acount: lake01, account: lake01}"), 3, "storage.acount", "storage.account"),
        (
            with("compaction: {targetSizeMb: 64, targetSizeMb: 64}"),
            3,
            "compaction.targetSizeMb",
            "stands a second time",
        ),
        (with("compaction: {}\ncompaction: {}"), 4, "compaction", "first on line 3"),
        (with("compaction: [1]"), 3, "compaction", "is a list, not a mapping"),
        (with("compaction: {targetSizeMb: [1]}"), 3, "compaction.targetSizeMb", "is a list, not a single value"),
        (with("compaction: {targetSizeMb: 1.5}"), 3, "compaction.targetSizeMb", "\"1.5\" is not a whole number"),
        (with("compaction: {targetSizeMb: '64'}"), 3, "compaction.targetSizeMb", "write 64 without quotes"),
        (with("compaction: {memoryMb: 63}"), 3, "compaction.memoryMb", "the least is 64"),
        (with("compaction: {backlogFileThreshold: 0}"), 3, "compaction.backlogFileThreshold", "the least is 1"),
        (with("compaction: {targetSizeMb: 65537}"), 3, "compaction.targetSizeMb", "the most is 65536"),
        (with("compaction: {compactMinFiles: 1}"), 3, "compaction.compactMinFiles", "the least is 2"),
        (with("compaction: {compactMinFiles: never}"), 3, "compaction.compactMinFiles", "or off"),
        (with("compaction: {compactColdAfter: 1w}"), 3, "compaction.compactColdAfter", "\"1w\" is not a duration"),
        (with("compaction: {compactColdAfter: 1}"), 3, "compaction.compactColdAfter", "is a number, not a text"),
        (with("compaction: {verify: never}"), 3, "compaction.verify", "stream, reread"),
        (with("compaction: {schedule: '0 0 2 * * *'}"), 3, "compaction.schedule", "has 6 fields, needs 5"),
        (with("compaction: {schedule: '0 2 L * *'}"), 3, "compaction.schedule", "\"L\""),
        (with("compaction:\n  <<: {targetSizeMb: 1}"), 4, "compaction.<<", "merge keys"),
        (
            with("compaction: {minFileSizeMb: 128}"),
            3,
            "compaction.minFileSizeMb",
            "targetSizeMb 128 must be more than minFileSizeMb 128",
        ),
        (with("compaction: {targetSizeMb: 32}"), 3, "compaction.targetSizeMb", "must be more than minFileSizeMb 32"),
        (
            with("compaction: {targetSizeMb: 2048}"),
            3,
            "compaction.targetSizeMb",
            "groupBudgetMb 1024 must be at least targetSizeMb 2048",
        ),
        (
            with("compaction: {maxTargetSizeMb: 127}"),
            3,
            "compaction.maxTargetSizeMb",
            "maxTargetSizeMb 127 must be at least targetSizeMb 128",
        ),
        (
            with("compaction: {maxTargetSizeMb: 1025}"),
            3,
            "compaction.maxTargetSizeMb",
            "groupBudgetMb 1024 must be at least maxTargetSizeMb 1025",
        ),
        (
            with("compaction: {memoryMb: 64, rowGroupMb: 33}"),
            3,
            "compaction.memoryMb",
            "must be at least twice rowGroupMb 33",
        ),
        (
            with("maintenance: {orphanMinAgeHours: 6}"),
            3,
            "maintenance.orphanMinAgeHours",
            "not more than compaction.runtimeDeadlineHours 6",
        ),
        (with("compaction: {runtimeDeadlineHours: 24}"), 0, "maintenance.orphanMinAgeHours", "write at least 25"),
        (with("maintenance: {orphanMinAgeHours: 0}"), 3, "maintenance.orphanMinAgeHours", "the least is 1"),
        (
            with("storage: {credential: magic, account: lake01}"),
            3,
            "storage.credential",
            "managedIdentity, workloadIdentity",
        ),
        (with("storage: {account: Lake}"), 3, "storage.account", "\"Lake\" is not the name of a storage account"),
        (with("storage: {queue: firn}"), 3, "storage.account", "is missing"),
        (with("storage: {credential: connectionString, account: lake01}"), 3, "storage.connectionString", "is missing"),
        (
            with("storage: {credential: developerTools, connectionString: UseDevelopmentStorage=true}"),
            3,
            "storage.connectionString",
            "remove one",
        ),
        (with(&format!("storage: {{account: lake01, queue: {}}}", "q".repeat(57))), 3, "storage.queue", "3 to 56"),
        (CATALOG.to_owned(), 0, "ingestion", "is missing"),
        (INGESTION.to_owned(), 0, "catalog", "is missing"),
        (format!("{CATALOG}ingestion: {{datasets: []}}"), 2, "ingestion.datasets", "names no dataset"),
        (format!("{CATALOG}ingestion: {{datasets: {{a: 1}}}}"), 2, "ingestion.datasets", "is a mapping, not a list"),
        (
            format!("{CATALOG}ingestion: {{datasets: [readings]}}"),
            2,
            "ingestion.datasets[0]",
            "is a single value, not a mapping",
        ),
        (format!("{CATALOG}ingestion: {{datasets: [{{table: a.b}}]}}"), 2, "ingestion.datasets[0].name", "is missing"),
        (with_dataset("dedup: true"), 4, "ingestion.datasets[readings].dedup", "needs timeColumn"),
        (with_dataset("tableStatistics: true"), 4, "ingestion.datasets[readings].tableStatistics", "needs ndvColumns"),
        (with_dataset("dedup: yes"), 4, "ingestion.datasets[readings].dedup", "\"yes\" is not a boolean"),
        (with_dataset("seriesColumns: [a]"), 4, "ingestion.datasets[readings].seriesColumns", "needs timeColumn"),
        (
            with_dataset("insertionTimeColumn: a"),
            4,
            "ingestion.datasets[readings].insertionTimeColumn",
            "needs timeColumn",
        ),
        (
            with_dataset("seriesColumns: a, timeColumn: t"),
            4,
            "ingestion.datasets[readings].seriesColumns",
            "is a single value, not a list",
        ),
        (
            with_dataset("seriesColumns: [a, b, a], timeColumn: t"),
            4,
            "ingestion.datasets[readings].seriesColumns[2]",
            "\"a\" stands twice",
        ),
        (
            with_dataset("seriesColumns: [1], timeColumn: t"),
            4,
            "ingestion.datasets[readings].seriesColumns[0]",
            "is a number",
        ),
        (
            with_dataset("seriesColumns: [a, b], timeColumn: t, sortColumns: [b, a]"),
            4,
            "ingestion.datasets[readings].sortColumns",
            "write [a, b, …]",
        ),
        (
            with_dataset("seriesColumns: [t], timeColumn: t"),
            4,
            "ingestion.datasets[readings].timeColumn",
            "also one of the seriesColumns",
        ),
        (
            with_dataset("timeColumn: t, insertionTimeColumn: t"),
            4,
            "ingestion.datasets[readings].insertionTimeColumn",
            "also the timeColumn",
        ),
        (with_dataset("timecolumn: t"), 4, "ingestion.datasets[readings].timecolumn", "very near to timeColumn"),
        (
            with_dataset("tantivy: {indexingColumn: [a]}"),
            4,
            "ingestion.datasets[readings].tantivy.indexingColumn",
            "very near to indexingColumns",
        ),
        (with_dataset("schedule: 0 2 * * *"), 4, "ingestion.datasets[readings].schedule", "holds for all datasets"),
        (
            with_dataset("compaction: {backlogCheckIntervalMinutes: 5}"),
            4,
            "ingestion.datasets[readings].compaction.backlogCheckIntervalMinutes",
            "holds for all datasets",
        ),
        (with_dataset("compaction: {foo: 5}"), 4, "ingestion.datasets[readings].compaction.foo", "unknown key"),
        (with_dataset("targetSizeMb: 64"), 4, "ingestion.datasets[readings].targetSizeMb", "compaction block"),
        (
            with_dataset("compaction: {targetSizeMb: 16}"),
            4,
            "ingestion.datasets[readings].compaction.targetSizeMb",
            "must be more than minFileSizeMb 32",
        ),
        (
            with_dataset("compaction: {memoryMb: 1024}"),
            4,
            "ingestion.datasets[readings].compaction.memoryMb",
            "more than compaction.memoryMb 512",
        ),
        (with_dataset("<<: {dedup: false}"), 4, "ingestion.datasets[readings].<<", "merge keys"),
        (
            format!("{CATALOG}ingestion: {{datasets: [{{name: a/b, table: a.b}}]}}"),
            2,
            "ingestion.datasets[0].name",
            "\"a/b\" is not a name",
        ),
        (
            format!("{CATALOG}ingestion: {{datasets: [{{name: a, table: readings}}]}}"),
            2,
            "ingestion.datasets[a].table",
            "\"readings\" is not a table",
        ),
        (
            format!("{CATALOG}ingestion:\n  datasets:\n  - {{name: a, table: a.b}}\n  - {{name: a, table: a.c}}"),
            5,
            "ingestion.datasets[1].name",
            "another dataset on line 4",
        ),
        (
            format!(
                "{CATALOG}ingestion:\n  datasets:\n  - {{name: a, table: a.b}}\n  - {{name: b, table: a.b, branch: main}}"
            ),
            5,
            "ingestion.datasets[b].table",
            "already the table of dataset a",
        ),
        (
            format!(
                "catalog: {{type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'abfss://c@a.dfs.core.windows.net/w'}}\n{INGESTION}"
            ),
            1,
            "catalog.warehouse",
            "no storage section",
        ),
        (
            format!("catalog: {{type: sql, uri: 'sqlite:////c.db', name: n}}\n{INGESTION}"),
            1,
            "catalog.warehouse",
            "is missing",
        ),
        (
            format!("catalog: {{type: sql, uri: 'mysql://u:p@h/d', name: n, warehouse: 'file:///w'}}\n{INGESTION}"),
            1,
            "catalog.uri",
            "has the scheme mysql",
        ),
        (
            format!("catalog: {{type: sql, uri: 'sqlite:////c.db', warehouse: 'file:///w'}}\n{INGESTION}"),
            1,
            "catalog.name",
            "is missing",
        ),
        (format!("catalog: {{type: rest, uri: ftp}}\n{INGESTION}"), 1, "catalog.uri", "\"ftp\" is not an address"),
        (
            format!("catalog: {{type: rest, uri: 'https://c', auth: bearer}}\n{INGESTION}"),
            1,
            "catalog.token",
            "auth: bearer needs it",
        ),
        (with("storage: {connectionString: ${CONNECTION}}"), 3, "", "put quotes around \"${NAME}\""),
        ("a: 1\nb: [\n".to_owned(), 3, "", "not YAML"),
        ("[1]".to_owned(), 0, "", "is a list, not a mapping"),
        ("a: 1\n---\nb: 1\n".to_owned(), 3, "", "second YAML document"),
    ];
    for (text, line, key, part) in cases {
        let errors = Config::load(&text, &environment(&[])).expect_err(&text).0;
        let [error] = errors.as_slice() else { panic!("{text}\n{}", ConfigErrors(errors)) };
        assert_eq!(error.line, (line > 0).then_some(line), "{error}");
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(part), "{error}\ndoes not say\n{part}");
    }
}

#[test]
fn an_empty_file_says_what_it_needs() {
    assert_eq!(
        problems(""),
        [
            "firn.yaml: catalog: is missing; add the section with type, uri, name and warehouse",
            "firn.yaml: ingestion: is missing; add the section with at least one dataset below datasets",
        ]
    );
}

#[test]
fn one_table_on_two_branches_is_two_datasets() {
    let text = format!(
        "{CATALOG}ingestion:\n  datasets:\n  - {{name: a, table: a.b}}\n  - {{name: b, table: a.b, branch: audit}}\n"
    );
    assert_eq!(load(&text).datasets.len(), 2);
}

#[test]
fn variables_come_from_the_environment() {
    let text = with(
        "storage: {connectionString: '${CONNECTION}', queue: '${PREFIX}-work'}\ncompaction: {targetSizeMb: '${SIZE}'}\n",
    );
    let pairs = [("CONNECTION", " UseDevelopmentStorage=true\n"), ("PREFIX", "firn"), ("SIZE", "64")];
    let config = Config::load(&text, &environment(&pairs)).unwrap();
    let storage = config.storage.unwrap();
    assert_eq!(storage.connection_string.unwrap().expose(), "UseDevelopmentStorage=true");
    assert_eq!(storage.queue, "firn-work");
    assert_eq!(config.compaction.settings.target_size_mb, 64);
    assert_eq!(
        problems_with(&text, &pairs[..2]),
        ["firn.yaml:4: compaction.targetSizeMb: environment variable SIZE is not set; set it or write the value here"]
    );
}

#[test]
fn no_secret_is_ever_printed() {
    let secret = "hunter2";
    // A key is Base64 of whole bytes.
    let connection = format!("AccountName=a;AccountKey={secret}x");
    let pairs = [("SECRET", secret), ("CONNECTION", connection.as_str()), ("URL", "postgresql://u:hunter2@h/d")];
    let good = format!(
        "storage: {{connectionString: '${{CONNECTION}}'}}\ncatalog: {{type: sql, uri: '${{URL}}', name: n}}\n{INGESTION}"
    );
    let config = Config::load(&good, &environment(&pairs)).unwrap();
    assert!(!format!("{config:?}").contains(secret));
    let rest = format!(
        "catalog: {{type: rest, uri: 'https://c', token: hunter2, credential: 'id:hunter2', headers: {{A: hunter2}}}}\n{INGESTION}"
    );
    assert!(!format!("{:?}", load(&rest)).contains(secret));
    // Wrong everywhere: as a literal in the keys made for secrets, from the environment in all others.
    let bad = "\
storage: {account: '${SECRET}', connectionString: hunter2, credential: '${SECRET}', queue: '${SECRET}!', blobServiceUri: '${SECRET}'}
catalog: {type: '${SECRET}', uri: hunter2, token: hunter2}
compaction: {targetSizeMb: '${SECRET}', schedule: '${SECRET}', compactColdAfter: '${SECRET}', verify: '${SECRET}'}
maintenance: {orphanMetadata: '${SECRET}'}
ingestion: {datasets: [{name: '${SECRET}/', table: '${SECRET}', dedup: '${SECRET}', seriesColumns: ['${SECRET}', '${SECRET}']}]}
";
    let found = problems_with(bad, &pairs);
    assert!(found.len() >= 12, "{found:#?}");
    for problem in found {
        assert!(!problem.contains(secret), "{problem}");
    }
}

#[test]
fn a_database_of_others_is_read_from_its_url() {
    let text = format!(
        "storage: {{account: lake01}}\ncatalog: {{type: sql, uri: 'postgresql+psycopg2://firn:${{PASSWORD}}@pg.example.com:6432/lake?sslmode=verify-ca', name: lake}}\n{INGESTION}"
    );
    let config = Config::load(&text, &environment(&[("PASSWORD", "hunter2@/?")])).unwrap();
    let Catalog::Sql(SqlCatalog { database: Database::Postgres(server), .. }) = &config.catalog else { panic!() };
    assert_eq!((server.shown().as_str(), server.user.as_str()), ("pg.example.com:6432/lake", "firn"));
    assert_eq!(server.password, Some(Secret::new("hunter2@/?")));
    assert_eq!((server.ssl_mode, server.token_scope.as_deref()), (SslMode::VerifyCa, None));
    assert!(!config.catalog.is_sqlite());

    let entra = "storage: {account: lake01}\ncatalog: {type: sql, auth: entra, uri: 'postgresql://id-firn@pg.example.com/lake', name: lake}\n";
    let config = load(&format!("{entra}{INGESTION}"));
    let Catalog::Sql(SqlCatalog { database: Database::Postgres(server), .. }) = &config.catalog else { panic!() };
    assert_eq!(server.token_scope.as_deref(), Some("https://ossrdbms-aad.database.windows.net/.default"));
    assert_eq!(server.ssl_mode, SslMode::VerifyFull);
}

#[test]
fn sign_in_that_cannot_be_is_an_error() {
    let identity = "storage: {account: lake01}\n";
    let key = "storage: {connectionString: UseDevelopmentStorage=true}\n";
    let sql = |more: &str| format!("catalog: {{type: sql, name: n, {more}}}\n{INGESTION}");
    let rest = |more: &str| format!("catalog: {{type: rest, {more}}}\n{INGESTION}");
    for (storage, catalog, expected) in [
        (
            key,
            sql("uri: 'postgresql://u@h/d', auth: entra"),
            vec!["catalog.auth: entra asks for tokens with the identity"],
        ),
        (identity, sql("uri: 'postgresql://u:hunter2@h/d', auth: entra"), vec!["catalog.uri: has a password"]),
        (identity, sql("uri: 'postgresql://u@h/d?sslmode=require', auth: entra"), vec!["catalog.uri: has an sslmode"]),
        (identity, sql("uri: 'postgresql://u@localhost/d', auth: entra"), vec!["catalog.uri: has an sslmode"]),
        (identity, sql("uri: 'sqlite:////c.db', auth: entra"), vec!["catalog.auth: is for a server"]),
        (identity, sql("uri: 'postgresql://u@h/d', auth: bearer"), vec!["catalog.auth: is for REST catalogs"]),
        (identity, rest("uri: 'https://c', auth: entra"), vec!["catalog.scope: is missing"]),
        (key, rest("uri: 'https://c', auth: entra, scope: s"), vec!["catalog.auth: entra asks for tokens"]),
        (key, rest("uri: 'https://c', auth: bearer"), vec!["catalog.token: is missing"]),
        (key, rest("uri: 'https://c', auth: oauth2"), vec!["catalog.credential: is missing"]),
        (key, rest("uri: 'http://c', auth: bearer, token: hunter2"), vec!["catalog.uri: \"http://c\" has no TLS"]),
        (
            key,
            rest("uri: 'https://c', auth: oauth2, credential: 'a:hunter2', oauth2ServerUri: 'http://login'"),
            vec!["catalog.oauth2ServerUri: \"http://login\" has no TLS"],
        ),
        // The host is what stands behind the login.
        (
            key,
            rest("uri: 'http://localhost:hunter2@c', auth: bearer, token: t"),
            vec!["catalog.uri: holds a login, which would stand in messages"],
        ),
        (key, rest("uri: 'https://u:hunter2@c'"), vec!["catalog.uri: holds a login"]),
        (
            key,
            rest("uri: 'https://c', auth: oauth2, credential: 'a:b', oauth2ServerUri: 'https://u:hunter2@login'"),
            vec!["catalog.oauth2ServerUri: holds a login"],
        ),
        (
            key,
            rest("uri: 'http://c', headers: {Authorization: 'Basic hunter2'}"),
            vec![
                "has no TLS, and the values of headers may be secrets, which are only sent over TLS, but for this machine; write https://",
            ],
        ),
        (key, rest("uri: 'https://c', headers: {Authorization: 'Basic hunter2'}"), vec![]),
        (key, rest("uri: 'http://127.0.0.1:8181', headers: {X-Key: hunter2}"), vec![]),
        (key, rest("uri: 'http://localhost:8181', auth: bearer, token: t"), vec![]),
        (key, rest("uri: 'http://c'"), vec![]),
    ] {
        let text = format!("{storage}{catalog}");
        let found = Config::load(&text, &environment(&[])).err().map(|errors| errors.0).unwrap_or_default();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{catalog}: {found:#?}");
        for (problem, part) in found.iter().zip(expected) {
            assert!(problem.contains(part) && !problem.contains("hunter2"), "{catalog}: {problem}");
        }
    }
}

#[test]
fn a_sqlite_file_in_azure_is_refused() {
    let real = format!(
        "storage: {{account: lake01}}\n{}",
        with("").replace("file:///data/wh", "abfss://c@lake01.dfs.core.windows.net/wh")
    );
    let expected = "catalog.uri: a SQLite file cannot be shared in Azure";
    for (text, variable, refused) in [
        (&real, "WEBSITE_INSTANCE_ID", true),
        (&real, "FUNCTIONS_WORKER_RUNTIME", true),
        (&real, "HOME", false),
        (&with(""), "WEBSITE_INSTANCE_ID", true),
        (&with(""), "FUNCTIONS_WORKER_RUNTIME", false),
    ] {
        let result = Config::load(text, &environment(&[(variable, "x")]));
        assert_eq!(result.is_err(), refused, "{variable} {text}");
        if let Err(errors) = result {
            assert!(errors.to_string().contains(expected), "{errors}");
        }
    }
}

#[test]
fn files_are_read_and_named_in_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.yaml");
    std::fs::write(&path, format!("\u{feff}{LOCAL_FOLDER}")).unwrap();
    let config = Config::from_file(&path).unwrap();
    let dataset = &config.datasets[0];
    let problem = config.problem(&dataset.key("timeColumn"), "the table has no column \"time\"");
    assert_eq!(
        problem.to_string(),
        format!("{}:8: ingestion.datasets[readings].timeColumn: the table has no column \"time\"", path.display())
    );
    assert_eq!(config.problem("storage.account", "x").line, None);
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(Config::from_file(&path).unwrap_err().to_string().ends_with("is not UTF-8 text; save it as UTF-8"));
    let missing = folder.path().join("none.yaml");
    let message = Config::from_file(&missing).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}: cannot be read: ", missing.display())), "{message}");
    assert!(Config::from_file(folder.path()).is_err());
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of configurations in any order: never a panic, and never an empty list of problems.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "catalog:",
            "ingestion:",
            "datasets:",
            "compaction:",
            "storage:",
            "name:",
            "table:",
            "type:",
            "sql",
            "a.b",
            "uri:",
            "targetSizeMb:",
            " 1",
            " x",
            "\n",
            "\n  ",
            "\n    - ",
            "{",
            "}",
            "[",
            "]",
            ", ",
            "'",
            "\"",
            "${A}",
            "&a ",
            "*a",
            "<<:",
            "#",
            "|",
            ">",
            "~",
            "!!str ",
            "---",
            "\t",
            "é",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn ends_in_a_model_or_in_problems(text in pieces()) {
            match Config::load(&text, &environment(&[("A", "1")])) {
                Ok(config) => prop_assert!(!config.datasets.is_empty()),
                Err(errors) => prop_assert!(!errors.0.is_empty(), "{}", text),
            }
        }
    }
}
