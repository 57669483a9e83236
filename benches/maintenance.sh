#!/usr/bin/env bash
# The long runs of maintenance: 10,000 random steps (a seed is printed; FIRN_RANDOM_SEED repeats it) and a listing of 5,000,000 files with
# the highest resident set. For a nightly run; the tests take 500 steps and 50,000 files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export FIRN_RANDOM_STEPS="${FIRN_RANDOM_STEPS:-10000}" FIRN_LISTED_FILES="${FIRN_LISTED_FILES:-5000000}"
cargo test --workspace --locked --test maintain -- --nocapture no_retained_snapshot_ever_misses_a_file
cargo test --workspace --locked --test maintain -- --nocapture millions_of_listed_files_fit
cargo test --workspace --locked --test maintain -- --nocapture sweeps_of_millions_of_orphans_fit
