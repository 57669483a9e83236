#!/usr/bin/env bash
# Builds Firn, lets PyIceberg write a table of real weather data in 120 small appends, compacts it and reads it back.
# Everything it makes lies below target/.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --workspace --bins
exec "${CARGO_TARGET_DIR:-target}/release/quickstart"
