"""A table whose partitions are easily taken for one another: by text that differs in case, blanks and null, and by a hash of the number beside it.

With --write it is created by so many appends. Prints for each live data file's partition the numbers of its rows, and fails when a row is in a
partition that is not its own: partitions are told by the tuples of the manifests, rows are read from the files themselves.
"""

import collections
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from lake import answer, arguments, open_catalog

NAMES = ["a", "A", "a ", None, ""]
BUCKETS = 8
ROWS = 100


def main():
    parser = arguments(__doc__)
    parser.add_argument("--write", type=int, default=0, metavar="APPENDS")
    args = parser.parse_args()
    catalog = open_catalog(args)
    if args.write:
        write(catalog, args)
    table = catalog.load_table(args.table)
    bucket = BucketTransform(BUCKETS).transform(LongType())
    partitions = collections.defaultdict(list)
    for task in table.scan().plan_files():
        name, number = task.file.partition
        with table.io.new_input(task.file.file_path).open() as stream:
            rows = pq.read_table(stream).to_pylist()
        for row in rows:
            if (row["db"], bucket(row["id"])) != (name, number):
                sys.exit(f"{row} is in partition {(name, number)}")
            partitions[f"{name!r} {number}"].append(row["id"])
    answer({"partitions": {key: sorted(numbers) for key, numbers in partitions.items()}})


def write(catalog, args):
    try:
        catalog.create_namespace(args.table.rsplit(".", 1)[0])
    except NamespaceAlreadyExistsError:
        pass
    schema = Schema(
        NestedField(1, "db", StringType(), required=False),
        NestedField(2, "id", LongType(), required=False),
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "db"),
        PartitionField(2, 1001, BucketTransform(BUCKETS), "id_bucket"),
    )
    table = catalog.create_table(args.table, schema, partition_spec=spec)
    for number in range(args.write):
        ids = range(number * ROWS, (number + 1) * ROWS)
        names = [NAMES[at % len(NAMES)] for at in ids]
        table.append(pa.table([pa.array(names, pa.string()), pa.array(ids, pa.int64())], names=["db", "id"]))


if __name__ == "__main__":
    main()
