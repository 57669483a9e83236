"""A table of many day partitions with many small files each, and a writer that appends to it meanwhile, by PyIceberg.

Without --writer it creates the table: `--files` commits, each with one file for every partition. With --writer it appends to one partition
after the other, a commit every `--every-ms`, until its standard input ends. Every row has a number of its own, so that the printed digest
(of the rows that this run wrote) tells lost, doubled and changed rows.
"""

import select
import sys
import time

import numpy as np
import pyarrow as pa
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType

import rows
from lake import answer, arguments, open_catalog
from make_table import append, create_container

DAY = 86_400_000_000
FIRST_DAY = 20_454 * DAY  # 2026-01-01
COLUMNS = [("name", StringType()), ("time", TimestampType()), ("value", DoubleType()), ("sent", LongType())]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--partitions", type=int, default=15)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20, help="rows of one file")
    parser.add_argument("--writer", action="store_true")
    parser.add_argument("--every-ms", type=int, default=200)
    args = parser.parse_args()
    catalog = open_catalog(args)
    random = np.random.default_rng(11)
    found, commits = {"rows": 0, "digest": "0" * 32}, 0
    if args.writer:
        table = catalog.load_table(args.table)
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], args.every_ms / 1000)[0]:
            # Numbers from a million million on: the creator's are smaller.
            batch = readings([commits % args.partitions], args.rows, 10**12 + commits * args.rows, random)
            append(table, [batch], "main")
            found, commits = rows.add(found, rows.digest(batch)), commits + 1
    else:
        table = create(catalog, args)
        for number in range(args.files):
            sent = number * args.partitions * args.rows
            batch = readings(range(args.partitions), args.rows, sent, random)
            append(table, [batch], "main")
            found, commits = rows.add(found, rows.digest(batch)), commits + 1
    answer({**found, "commits": commits})


def readings(days, count, sent, random):
    """`count` rows for each of the days, in no order."""
    day = np.repeat(np.asarray(list(days)), count)
    at = FIRST_DAY + day * DAY + random.integers(0, DAY, len(day))
    names = pa.array([f"sensor-{number}" for number in random.integers(0, 50, len(day))])
    values = [names, pa.array(at, pa.timestamp("us")), pa.array(random.standard_normal(len(day)))]
    numbers = pa.array(range(sent, sent + len(day)), pa.int64())
    return pa.table([*values, numbers], names=[name for name, _ in COLUMNS])


def create(catalog, args):
    """The empty table in its container."""
    create_container(args)
    try:
        catalog.create_namespace(args.table.rsplit(".", 1)[0])
    except NamespaceAlreadyExistsError:
        pass
    schema = Schema(*(NestedField(i + 1, name, kind, required=False) for i, (name, kind) in enumerate(COLUMNS)))
    spec = PartitionSpec(PartitionField(2, 1000, DayTransform(), "time_day"))
    return catalog.create_table(args.table, schema, partition_spec=spec)


if __name__ == "__main__":
    main()
