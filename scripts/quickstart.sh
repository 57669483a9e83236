#!/usr/bin/env bash
# Builds Firn, lets PyIceberg write a table of real weather data in 120 small appends, compacts it and reads it back.
# Everything it makes lies below target/. FIRN_BUILT names a folder with programs that are built already, such as target/debug after the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${FIRN_BUILT:-}" ]; then
    cargo build --release --locked --workspace --bins
    FIRN_BUILT="${CARGO_TARGET_DIR:-target}/release"
fi
exec "$FIRN_BUILT/quickstart"
