"""Writes a table of readings (readings.py) with PyIceberg and its defaults, one append a file."""

import argparse
import json

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import DoubleType, NestedField, StringType, TimestampType

from readings import TAGS, VALUES, batches


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True, help="catalog.db and warehouse/ are made in it")
    parser.add_argument("--table", default="iot.readings")
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--series", type=int, default=400)
    parser.add_argument("--steps", type=int, default=360, help="rows a series and file")
    parser.add_argument("--seconds", type=int, default=10, help="between two rows of a series")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--by-time", action="store_true", help="each file sorted by (time, name): files do not overlap")
    parser.add_argument("--exact", action="store_true", help="values of full precision")
    parser.add_argument("--partition-by-day", action="store_true")
    args = parser.parse_args()

    fields = [NestedField(1, "name", StringType()), NestedField(2, "time", TimestampType())]
    fields += [NestedField(3 + i, tag, StringType()) for i, tag in enumerate(TAGS)]
    fields += [NestedField(8 + i, value, DoubleType()) for i, value in enumerate(VALUES)]
    spec = PartitionSpec(PartitionField(2, 1000, DayTransform(), "day")) if args.partition_by_day else PartitionSpec()
    catalog = SqlCatalog("lake", uri=f"sqlite:///{args.folder}/catalog.db", warehouse=f"file://{args.folder}/warehouse")
    try:
        catalog.create_namespace(args.table.split(".")[0])
    except NamespaceAlreadyExistsError:
        pass
    table = catalog.create_table(args.table, Schema(*fields), partition_spec=spec)
    for batch in batches(args.files, args.series, args.steps, args.seconds, args.exact, args.shuffle, args.by_time):
        table.append(batch)
    files = table.inspect.files()
    print(json.dumps({"files": files.num_rows, "rows": sum(files["record_count"].to_pylist()),
                      "bytes": sum(files["file_size_in_bytes"].to_pylist())}))


if __name__ == "__main__":
    main()
