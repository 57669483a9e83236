//! The whole way through the host: the timer plans, the queue hands out, the handler merges and commits, over Azurite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use firn_test_support::{Azurite, Digest, IcebergRest, Proxy};
use firn_tests::random::number_from;
use firn_tests::scene::{MANUAL, TABLE};
use firn_tests::{Conflicts, Hosted, HostedOptions, Mischief, Random, Scene};
use serde_json::{Value, json};

const READINGS: &str = "seriesColumns: [origin], timeColumn: time_hour, dedup: true";
const KEY: [&str; 2] = ["--dedup", "origin,time_hour"];
const EAGER: &str = "backlogFileThreshold: 10, verify: reread";
/// Longer than the lease of the dead, so that a message finds its record free, and shorter than host.json's two minutes.
const VISIBLE_AGAIN: (&str, &str) = ("AzureFunctionsJobHost__extensions__queues__visibilityTimeout", "00:01:05");
const LIMIT: Duration = Duration::from_secs(420);

/// Three months in 60 small files each, late and with duplicates.
const TABLE_OPTIONS: &str = "--source weather --limit 6000 --appends 60 --partition month:time_hour --duplicates 0.02";

/// A state of its own for each test: they share one Azurite.
fn scene_of(azurite: &Azurite, name: &str) -> Scene {
    Scene::azurite(azurite, name)
}

fn options(connection: &str) -> HostedOptions<'_> {
    HostedOptions { connection, settings: &[], receive_visibility: None }
}

/// Asserts that the table has these rows in one file a partition, and that nothing is left to do.
#[track_caller]
fn assert_merged(scene: &Scene, expected: &Digest, files: usize) {
    assert_eq!(scene.digest(), *expected);
    assert_eq!(scene.inspect()["files"].as_array().unwrap().len(), files);
    scene.check_converged(&MANUAL);
}

#[test]
fn the_timer_plans_and_the_handler_merges() {
    // Queues are named in function.json, so hosts that must not share one have an Azurite of their own.
    let azurite = Azurite::start();
    let scene = scene_of(&azurite, "timer");
    scene.configure("verify: reread", READINGS);
    scene.make(TABLE_OPTIONS);
    let expected = scene.lake.digest(TABLE, &KEY);
    let connection = azurite.connection_string();
    let hosted = Hosted::start(&scene, &options(&connection));
    let status = hosted.drained(LIMIT);
    assert_eq!((&status["parked"]["count"], &status["inflight"]["count"]), (&json!(0), &json!(0)), "{status:#}");
    let finished = hosted.events("partitionFinished");
    assert_eq!(finished.len(), 3, "one message a partition: {finished:#?}");
    assert!(finished.iter().all(|event| event["outcome"] == "done"), "{finished:#?}");
    // January and February are over, March has many files of one size.
    let mut rules: Vec<&str> = finished.iter().filter_map(|event| event["rule"].as_str()).collect();
    rules.sort_unstable();
    assert_eq!(rules, ["cold", "cold", "tier"], "{finished:#?}");
    assert_eq!(hosted.problems(), Vec::<String>::new());
    hosted.stop();
    assert_merged(&scene, &expected, 3);
}

#[test]
fn messages_by_hand() {
    let azurite = Azurite::start();
    let scene = scene_of(&azurite, "hand");
    // The timer selects nothing.
    scene.configure(
        "backlogFileThreshold: 1000, compactMinFiles: off, compactColdAfter: off, schedule: '0 3 29 2 *', minFileSizeMb: 1, \
         verify: reread",
        READINGS,
    );
    scene.make("--source weather --limit 6000 --appends 120 --partition month:time_hour --duplicates 0.02");
    let expected = scene.lake.digest(TABLE, &KEY);
    let connection = azurite.connection_string();
    let hosted = Hosted::start(&scene, &options(&connection));

    let utf16: Vec<u8> = "{\"dataset\":\"readings\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let junk = [
        (BASE64_STANDARD.encode(utf16), "the message is UTF-16 text: encode it as UTF-8, or send JSON such as"),
        ("hello".to_owned(), "it begins with `hello`"),
        ("7".to_owned(), "the message is a number, not a JSON object: send JSON such as"),
        ("{\"dataset\":\"reading\"}".to_owned(), "no dataset \"reading\" in"),
        (
            "{\"dataset\":\"readings\",\"partitions\":{}}".to_owned(),
            "unknown field `partitions`: a message has v, dataset,",
        ),
        ("{\"dataset\":\"readings\",\"v\":0}".to_owned(), "version 0 of the message is not one that Firn ever sent"),
        (
            "{\"dataset\":\"readings\",\"partition\":{\"month\":\"2013-01\"}}".to_owned(),
            "\"month\" is no partition field; spec 0 has time_hour_month (month)",
        ),
    ];
    for (text, _) in &junk {
        hosted.post(&connection, text);
    }
    let status = hosted.drained(LIMIT);
    let reasons: Vec<&str> =
        status["parked"]["records"].as_array().unwrap().iter().filter_map(|entry| entry["reason"].as_str()).collect();
    assert_eq!(reasons.len(), junk.len(), "{status:#}");
    for (text, part) in &junk {
        let told = reasons.iter().filter(|reason| reason.contains(part)).count();
        assert_eq!(told, 1, "{text} should be told {part:?}: {reasons:#?}");
    }

    let january = "{\"dataset\":\"readings\",\"rule\":\"full\",\"partition\":{\"time_hour_month\":\"2013-01\"}}";
    hosted.post(&connection, &format!("{january}\n"));
    hosted.drained(LIMIT);
    let done = hosted.events("partitionFinished");
    assert_eq!(done.len(), 1, "{done:#?}");
    assert_eq!((&done[0]["outcome"], &done[0]["filesAfter"]), (&json!("done"), &json!(1)), "{done:#?}");

    hosted.post(&connection, &(BASE64_STANDARD.encode("{\"dataset\":\"readings\",\"rule\":\"full\"}") + "\n"));
    hosted.drained(LIMIT);
    let months = hosted.events("partitionFinished").iter().filter(|event| event["outcome"] == "done").count();
    assert_eq!(months, 3, "{}", hosted.tail());
    hosted.stop();
    assert_merged(&scene, &expected, 3);
}

/// A scheduled pass finds files of another writer without an index, and the queue brings them to the worker, which indexes them where they
/// lie. Meanwhile the timer of maintenance makes the table's statistics.
#[test]
fn a_scheduled_pass_indexes_files_through_the_queue() {
    let azurite = Azurite::start();
    let scene = scene_of(&azurite, "backfill");
    scene.configure(
        "backlogCheckIntervalMinutes: 1, schedule: '* * * * *', compactColdAfter: off, compactMinFiles: off",
        "timeColumn: time_hour, tantivy: {indexingColumns: [origin]}, backfillWriters: parquet-cpp, \
         ndvColumns: [origin, sent], tableStatistics: true",
    );
    // One commit, three months, three files whose names have one UUID.
    scene.make("--source weather --limit 6000 --appends 1 --partition month:time_hour");
    let (rows, before) = (scene.digest(), scene.inspect());
    let files = before["files"].as_array().unwrap().len();
    assert_eq!(files, 3);
    let connection = azurite.connection_string();
    let hosted = Hosted::start(&scene, &options(&connection));
    // The first tick notes the time; a minute later the schedule is due.
    let begun = Instant::now();
    while hosted.events("partitionFinished").len() < files || hosted.events("statisticsFinished").is_empty() {
        assert!(begun.elapsed() < LIMIT, "{}", hosted.tail());
        std::thread::sleep(Duration::from_millis(500));
    }
    let status = hosted.drained(LIMIT);
    assert_eq!(status["parked"]["count"], json!(0), "{status:#}");
    let finished = hosted.events("partitionFinished");
    for event in &finished {
        let told = (&event["outcome"], &event["rule"], &event["sidecars"]["written"], &event["filesAfter"]);
        assert_eq!(told, (&json!("done"), &json!("backfill"), &json!(1), &json!(1)), "{finished:#?}");
    }
    let statistics = hosted.events("statisticsFinished");
    let told = (&statistics[0]["outcome"], &statistics[0]["files"], &statistics[0]["scanned"]);
    assert_eq!(told, (&json!("done"), &json!(3), &json!(3)), "{statistics:#?}");
    assert_eq!(hosted.problems(), Vec::<String>::new());
    hosted.stop();

    assert_eq!((scene.digest(), &scene.inspect()["files"]), (rows, &before["files"]), "the files are as they were");
    let mut command = firn_tests::firn();
    command.args(["--format", "json", "search", "--dataset", "readings", "jfk", "--config"]).arg(scene.config());
    let found = firn_tests::program::run(&mut command).expect_code(0);
    assert_eq!((&found.summary()["byIndex"], &found.summary()["byScan"]), (&json!(3), &json!(0)));
    assert!(found.lines().len() > 100 && found.lines().iter().all(|line| line["values"]["origin"] == "JFK"));
    let read = scene.lake.statistics(TABLE);
    let columns = read[0]["columns"].as_array().unwrap();
    assert_eq!((&columns[0]["ndv"], &columns[0]["counted"]), (&json!(3), &json!(3)), "{read:#}");
    scene.check_converged(&MANUAL);
}

/// Where each service may say 409 and keep saying it: blobs of the state, messages that the host lets go (what was written and not sent
/// is sent again after five minutes, too long here), commits to the catalog.
const BLOB_CONFLICTS: Conflicts = Conflicts {
    code: "ContainerBeingDeleted",
    on: |method, path| method == "PUT" && path.contains("/firn-state/inflight"),
};
const QUEUE_CONFLICTS: Conflicts = Conflicts { code: "QueueBeingDeleted", on: |method, _| method == "DELETE" };
const CATALOG_CONFLICTS: Conflicts = Conflicts { code: "CommitFailed", on: |method, _| method == "POST" };

#[test]
fn two_hosts_share_the_work_of_storage_and_catalog_in_trouble() {
    let azurite = Azurite::start();
    let scene = scene_of(&azurite, "trouble");
    let server = IcebergRest::start(&azurite, scene.lake.warehouse());
    let scene = scene.with_catalog(&server.url());
    scene.make(TABLE_OPTIONS);
    let expected = scene.lake.digest(TABLE, &KEY);
    let [blobs, queues, catalog] =
        [azurite.blob_port(), azurite.queue_port(), server.port()].map(|port| Proxy::start(port).unwrap());
    let connection = azurite.connection_string_through(blobs.port(), queues.port());
    let scene = scene.with_connection_string(&connection).with_catalog(&format!("http://127.0.0.1:{}", catalog.port()));
    scene.configure(EAGER, READINGS);

    // Messages of lost answers come back while the test waits, not ten minutes later.
    let options = HostedOptions {
        receive_visibility: Some(Duration::from_secs(70)),
        settings: &[VISIBLE_AGAIN],
        ..options(&connection)
    };
    let first = Hosted::start(&scene, &options);
    let second = Hosted::start(&scene, &options);
    // The catalog hears of little, so a good part of that meets trouble.
    let mischief = [
        ("blobs", Mischief::begin(&blobs, 25, BLOB_CONFLICTS)),
        ("queues", Mischief::begin(&queues, 12, QUEUE_CONFLICTS)),
        ("catalog", Mischief::begin(&catalog, 3, CATALOG_CONFLICTS)),
    ];
    // Duplicates of what the timers plan, at the same time.
    for _ in 0..2 {
        first.post(&azurite.connection_string(), "{\"dataset\":\"readings\",\"rule\":\"full\"}");
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) || !mischief.iter().all(|(_, mischief)| mischief.is_complete()) {
        let fired: Vec<_> = mischief.iter().map(|(place, mischief)| (place, mischief.fired())).collect();
        assert!(begun.elapsed() < LIMIT * 2, "some trouble never fired: {fired:#?}\n{}", first.tail());
        // Something to ask everybody for, after the partitions are done too.
        first.post(&azurite.connection_string(), "{\"dataset\":\"readings\",\"dryRun\":true}");
        std::thread::sleep(Duration::from_secs(2));
    }
    for (place, mischief) in &mischief {
        mischief.end();
        let fired = mischief.fired();
        eprintln!("{place}: {fired:?}");
        assert!(fired.iter().all(|(_, count)| *count > 0), "{place}: {fired:?}");
    }
    first.drained(LIMIT * 2);
    // Nothing is left for the other, nothing was given up, and the merges are the hosts' own.
    let status = second.drained(LIMIT * 2);
    assert_eq!(status["poison"], json!({ "name": "firn-compact-poison", "length": 0 }), "{status:#}");
    assert_eq!(status["queue"]["length"], 0, "{status:#}");
    assert_eq!(status["parked"]["count"], 0, "{status:#}\n{}", first.tail());
    // A tick may plan what a host merges at that moment: whoever gets that message finds nothing to do, and the partition rests.
    for record in status["inflight"]["records"].as_array().unwrap() {
        eprintln!("at rest: {record}");
        assert_eq!(record["outcome"], "cooling", "{record:#}\n{}", first.tail());
    }
    first.stop();
    second.stop();
    assert_merged(&scene, &expected, 3);
    scene.check_converged(&[&MANUAL[..], &["--full"]].concat());
}

#[test]
fn a_handler_that_is_killed_loses_nothing() {
    let azurite = Azurite::start();
    let scene = scene_of(&azurite, "killed");
    scene.configure(EAGER, READINGS);
    scene.make(TABLE_OPTIONS);
    let expected = scene.lake.digest(TABLE, &KEY);
    let connection = azurite.connection_string();
    let hosted = Hosted::start(&scene, &HostedOptions { settings: &[VISIBLE_AGAIN], ..options(&connection) });
    let mut random = Random::seeded();
    for _ in 0..2 {
        let begun = Instant::now();
        // In the middle of a message: when one was started.
        while hosted.status()["inflight"]["records"]
            .as_array()
            .is_none_or(|records| !records.iter().any(|record| !record["startedAt"].is_null()))
            && begun.elapsed() < LIMIT
        {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(random.below(1500)));
        hosted.kill_handler();
    }
    let status = hosted.drained(LIMIT);
    assert_eq!(status["parked"]["count"], 0, "{status:#}");
    hosted.stop();
    assert_merged(&scene, &expected, 3);
}

/// A message whose worker dies before every commit: five deliveries, then it is parked with the last step as its reason, and the planner
/// lets it rest until the inputs change.
#[test]
fn a_worker_that_always_dies_is_parked_until_its_inputs_change() {
    const APPENDS: [&str; 6] = ["--source", "weather", "--limit", "1500", "--appends", "30"];
    let azurite = Azurite::start();
    let scene = scene_of(&azurite, "dying");
    scene.configure(&format!("{EAGER}, backlogCheckIntervalMinutes: 1"), READINGS);
    scene.lake.make_table(TABLE, &[&APPENDS[..], &["--last", "20"]].concat());
    let connection = azurite.connection_string();
    let dying = HostedOptions { settings: &[VISIBLE_AGAIN, ("FIRN_TEST_DIE_AT_STEP", "5")], ..options(&connection) };
    let begun = Instant::now();
    let mut hosts = 0;
    let hosted = loop {
        // Three ends of the handler stop a host; the platform starts another, and so does this loop.
        let hosted = Hosted::start(&scene, &dying);
        hosts += 1;
        while hosted.events("parked").is_empty() {
            assert!(begun.elapsed() < LIMIT * 2, "not parked: {}", hosted.tail());
            if hosted.stopped_within(Duration::from_secs(1)).is_some() {
                break;
            }
        }
        if !hosted.events("parked").is_empty() {
            break hosted;
        }
    };
    assert!(hosts > 1, "the handler really died");
    let status = hosted.drained(LIMIT);
    let records = status["inflight"]["records"].as_array().unwrap();
    assert_eq!(
        (records.len(), &records[0]["outcome"], &records[0]["attempts"]),
        (1, &json!("parked"), &json!(5)),
        "{status:#}"
    );
    let reason = records[0]["reason"].as_str().unwrap();
    assert!(reason.contains("ended without an outcome at step 5 committing, group 1"), "{reason}");
    assert_eq!(status["parked"]["count"], 1, "{status:#}");
    // The next tick finds the same inputs.
    let ticked = status["tick"]["lastTick"].clone();
    while hosted.status()["tick"]["lastTick"] == ticked {
        assert!(begun.elapsed() < LIMIT * 2, "no tick: {}", hosted.tail());
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(hosted.drained(LIMIT)["inflight"]["records"][0]["outcome"], "parked");
    hosted.stop();

    scene.lake.make_table(TABLE, &[&APPENDS[..], &["--first", "20"]].concat());
    let expected = scene.lake.digest(TABLE, &KEY);
    let hosted = Hosted::start(&scene, &options(&connection));
    while hosted.events("partitionFinished").is_empty() {
        assert!(begun.elapsed() < LIMIT * 2, "not planned again: {}", hosted.tail());
        std::thread::sleep(Duration::from_millis(500));
    }
    let status = hosted.drained(LIMIT);
    assert_eq!(status["inflight"]["count"], 0, "{status:#}");
    hosted.stop();
    assert_merged(&scene, &expected, 1);
}

/// Many partitions beside a writer: FIRN_PARTITIONS=300 is what the project asks for before a release.
#[test]
fn many_partitions_drain_beside_a_writer() {
    const PARTITIONS: u64 = 15;
    let partitions = number_from("FIRN_PARTITIONS").unwrap_or(PARTITIONS);
    let azurite = Azurite::start();
    let scene = scene_of(&azurite, "many");
    scene.configure("backlogFileThreshold: 15", "sortColumns: [name, time]");
    let count = ["--partitions".to_owned(), partitions.to_string()];
    let count: Vec<&str> = count.iter().map(String::as_str).collect();
    let made = scene.lake.command("many_partitions.py", TABLE, &count).output().unwrap();
    let made = answer(&made.stdout, &made.stderr);

    let mut writer = scene.lake.command("many_partitions.py", TABLE, &[&count[..], &["--writer"]].concat());
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(writer.stdout.take().unwrap());
    let mut ready = String::new();
    said.read_line(&mut ready).unwrap();
    assert_eq!(ready.trim(), "ready");

    let connection = azurite.connection_string();
    let begun = Instant::now();
    let hosted = Hosted::start(&scene, &options(&connection));
    let status = hosted.drained(LIMIT.max(Duration::from_secs(partitions * 10)));
    let took = begun.elapsed();
    drop(writer.stdin.take());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let ended = writer.wait_with_output().unwrap();
    let appended = answer(rest.as_bytes(), &ended.stderr);
    assert_eq!(status["parked"]["count"], 0, "{status:#}");

    let finished = hosted.events("partitionFinished");
    let done: Vec<&Value> = finished.iter().filter(|event| event["outcome"] == "done").collect();
    assert!(done.len() as u64 >= partitions, "every partition is merged: {}", done.len());
    let number = |event: &Value, key: &str| event[key].as_u64().unwrap_or(0);
    let tries: u64 = done.iter().map(|event| number(event, "tries")).sum();
    let mut times: Vec<u64> = finished.iter().map(|event| number(event, "durationMs")).collect();
    times.sort_unstable();
    eprintln!(
        "{partitions} partitions drained in {took:?} beside {} appends; {:.2} tries a commit; p50 {} ms, p95 {} ms a message; \
         handler's peak {} MB",
        appended["commits"],
        tries as f64 / done.len() as f64,
        times[times.len() / 2],
        times[times.len() * 95 / 100],
        finished.iter().map(|event| number(event, "peakRssBytes")).max().unwrap_or(0) >> 20
    );
    hosted.stop();
    let found = scene.digest();
    assert_eq!(found.rows, number(&made, "rows") + number(&appended, "rows"), "no row is lost or doubled");
    assert_eq!(found.digest, sum(&made["digest"], &appended["digest"]), "no row is changed");
    scene.lake.check_invariants(TABLE);
}

/// The last line of a script.
fn answer(stdout: &[u8], stderr: &[u8]) -> Value {
    let text = String::from_utf8_lossy(stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(stderr)))
}

/// The digest of two sets of rows together: lane by lane modulo 2^64.
fn sum(first: &Value, second: &Value) -> String {
    let lanes = |text: &Value| {
        let text = text.as_str().unwrap();
        [&text[..16], &text[16..]].map(|lane| u64::from_str_radix(lane, 16).unwrap())
    };
    let ([a, b], [c, d]) = (lanes(first), lanes(second));
    format!("{:016x}{:016x}", a.wrapping_add(c), b.wrapping_add(d))
}
