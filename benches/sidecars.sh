#!/usr/bin/env bash
# Merges the logs that make_logs.py wrote into FOLDER, without and with each kind of sidecar, then searches them by index and by scan.
# usage: benches/sidecars.sh FOLDER      FIRN names another program than target/release/firn
# The share of tantivy alone: cargo run --release -p firn-sidecar --example index_lines FOLDER/logs.txt
set -euo pipefail
folder=$(realpath "$1")
here=$(dirname "${BASH_SOURCE[0]}")
firn=$(realpath "${FIRN:-$here/../target/release/firn}")

configure() { # folder, keys of the dataset
    cat > "$1/firn.yaml" <<YAML
catalog: { type: sql, uri: "sqlite:///$1/catalog.db", name: lake, warehouse: "file://$folder/warehouse" }
compaction: { backlogFileThreshold: 10, tempDiskMb: 4096 }
ingestion:
  datasets:
    - { name: logs, table: app.logs, sortColumns: [service, time]$2 }
YAML
}

merge() { # name, keys of the dataset
    # Each merge starts from the table as it was written: its own copy of the catalog. Data files are only added.
    run=$folder/run-$1
    mkdir -p "$run"
    cp "$folder/catalog.db" "$run/catalog.db"
    configure "$run" "$2"
    /usr/bin/time -f "wall %e s, user %U s, system %S s, peak RSS %M KB" \
        "$firn" --format json compact --config "$run/firn.yaml" --dataset logs > "$run/stdout.txt" 2> "$run/stderr.txt"
    echo "$1: $(tail -n 1 "$run/stderr.txt")"
    grep -ho '"bytesOut":[0-9]*\|"sidecars":{[^}]*}' "$run/stderr.txt" | tr '\n' ' ' && echo
}

merge none ""
merge text ", tantivy: {indexingColumns: [line]}"
merge bloom ", bloomFilterColumns: [service, line]"
merge ndv ", ndvColumns: [service, line]"
merge all ", tantivy: {indexingColumns: [line]}, bloomFilterColumns: [service, line], ndvColumns: [service, line]"

statistics() { # name of the run, what is counted
    configure "$folder/run-$1" ", ndvColumns: [service, line]"
    /usr/bin/time -f "wall %e s, peak RSS %M KB" "$firn" --format json statistics --config "$folder/run-$1/firn.yaml" --dataset logs \
        > "$folder/found.txt" 2> "$folder/stderr.txt"
    echo "statistics $2: $(tail -n 1 "$folder/stderr.txt"); $(head -n 1 "$folder/found.txt")"
}

statistics ndv "of sketches"
statistics none "by reading the columns"

word=$(sed -n '1000{s/ .*//;p}' "$folder/logs.txt")
for flags in "" --scan; do
    for query in "\"$word\"" "segfault AND regression" "\"new upstream release\""; do
        # shellcheck disable=SC2086
        /usr/bin/time -f "wall %e s, peak RSS %M KB" "$firn" --format json search --config "$folder/run-text/firn.yaml" --dataset logs $flags \
            --limit 100000 "$query" > "$folder/found.txt" 2> "$folder/stderr.txt"
        echo "search ${flags:-by index} $query: $(tail -n 1 "$folder/stderr.txt"); $(tail -n 1 "$folder/found.txt")"
    done
done
