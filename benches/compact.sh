#!/usr/bin/env bash
# Compacts the table that make_readings.py wrote into FOLDER and prints what /usr/bin/time says of the whole process.
# usage: benches/compact.sh FOLDER ['memoryMb: 360' ['sortColumns: [time, name]' [--full]]]      FIRN names another program than target/release/firn
set -euo pipefail
folder=$(realpath "$1")
firn=${FIRN:-$(dirname "${BASH_SOURCE[0]}")/../target/release/firn}
cat > "$folder/firn.yaml" <<YAML
catalog: { type: sql, uri: "sqlite:///$folder/catalog.db", name: lake, warehouse: "file://$folder/warehouse" }
compaction: { ${2:-} }
ingestion:
  datasets:
    - { name: readings, table: iot.readings, ${3:-seriesColumns: [name], timeColumn: time, dedup: true} }
YAML
/usr/bin/time -f "wall %e s, user %U s, system %S s, peak RSS %M KB" \
    "$firn" --format json compact --config "$folder/firn.yaml" --dataset readings ${4:-} 2> "$folder/stderr.txt"
tail -n 1 "$folder/stderr.txt"
