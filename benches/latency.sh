#!/usr/bin/env bash
# Merges the files of a table that make_readings.py wrote into FOLDER through a store that answers late: from disk, then with 10 and 50 ms a
# read, with small files (8 MB) whole and with none.
# usage: benches/latency.sh FOLDER [MEMORY_MB]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo build --release --locked --workspace --example slow_store
for whole in 0 8; do
    for latency in disk 10 50; do
        target/release/examples/slow_store "$1" "$latency" "${2:-512}" name,time "$whole"
    done
done
