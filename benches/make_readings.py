"""Writes a table of sensor readings with PyIceberg and its defaults: many series, one row a series and step.

Each append holds all series over a stretch of time, sorted by (name, time) unless --shuffle; so every file covers every series and
a merge has to interleave all of them. Values are full-precision random walks, or rounded to two places with --rounded.
"""

import argparse
import json

import numpy as np
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import DoubleType, NestedField, StringType, TimestampType


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True, help="catalog.db and warehouse/ are made in it")
    parser.add_argument("--table", default="iot.readings")
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--series", type=int, default=400)
    parser.add_argument("--steps", type=int, default=360, help="rows a series and file")
    parser.add_argument("--seconds", type=int, default=10, help="between two rows of a series")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--rounded", action="store_true")
    parser.add_argument("--partition-by-day", action="store_true")
    args = parser.parse_args()

    tags = ["region", "model", "fleet", "driver", "firmware"]
    values = ["latitude", "longitude", "elevation", "velocity", "heading", "fuel", "load"]
    fields = [NestedField(1, "name", StringType()), NestedField(2, "time", TimestampType())]
    fields += [NestedField(3 + i, tag, StringType()) for i, tag in enumerate(tags)]
    fields += [NestedField(8 + i, value, DoubleType()) for i, value in enumerate(values)]
    spec = PartitionSpec(PartitionField(2, 1000, DayTransform(), "day")) if args.partition_by_day else PartitionSpec()
    catalog = SqlCatalog("lake", uri=f"sqlite:///{args.folder}/catalog.db", warehouse=f"file://{args.folder}/warehouse")
    try:
        catalog.create_namespace(args.table.split(".")[0])
    except NamespaceAlreadyExistsError:
        pass
    table = catalog.create_table(args.table, Schema(*fields), partition_spec=spec)
    random = np.random.default_rng(7)
    count = args.series * args.steps
    series = np.repeat(np.arange(args.series), args.steps)
    step = np.tile(np.arange(args.steps), args.series)
    columns = {"name": pa.array([f"truck_{n}" for n in range(args.series)]).take(pa.array(series))}
    for tag in tags:
        words = pa.array([f"{tag}_{n}" for n in range(20)])
        columns[tag] = words.take(pa.array(random.integers(0, 20, args.series)[series]))
    for number in range(args.files):
        seconds = (number * args.steps + step) * args.seconds + 1_767_225_600
        columns["time"] = pa.array(seconds * 1_000_000, pa.timestamp("us"))
        for value in values:
            walk = np.cumsum(random.standard_normal(count)) + 100
            columns[value] = pa.array(np.round(walk, 2) if args.rounded else walk)
        batch = pa.table({field.name: columns[field.name] for field in fields})
        if args.shuffle:
            batch = batch.take(pa.array(random.permutation(count)))
        table.append(batch)
    files = table.inspect.files()
    print(json.dumps({"files": files.num_rows, "bytes": sum(files["file_size_in_bytes"].to_pylist()), "rows": args.files * count}))


if __name__ == "__main__":
    main()
