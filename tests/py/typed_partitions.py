"""Writes a table whose partition tuples hold every type and transform, without data files: PyIceberg's own manifests, made
from tuples that are known. Prints the live files as they were handed to PyIceberg, values in Iceberg's JSON form."""

import datetime
import decimal
import uuid

from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: F401  registers the Arrow file system
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lake import answer, arguments, open_catalog

DAY = 86_400_000_000
ID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")

# name, type, values in PyIceberg's form, the same values in JSON form
COLUMNS = [
    ("b", BooleanType(), [True, False], [True, False]),
    ("i", IntegerType(), [7, -(2**31)], [7, -(2**31)]),
    ("l", LongType(), [2**40, -1], [2**40, -1]),
    ("f", FloatType(), [1.5, -0.25], [1.5, -0.25]),
    ("d", DoubleType(), [2.5, -1e300], [2.5, -1e300]),
    ("dec", DecimalType(20, 3), [decimal.Decimal("12.345"), decimal.Decimal("-0.001")], ["12.345", "-0.001"]),
    ("date", DateType(), [20758, -1], ["2026-11-01", "1969-12-31"]),
    ("time", TimeType(), [1, DAY - 1], ["00:00:00.000001", "23:59:59.999999"]),
    ("ts", TimestampType(), [20758 * DAY, -1], ["2026-11-01T00:00:00.000000", "1969-12-31T23:59:59.999999"]),
    (
        "tz",
        TimestamptzType(),
        [20758 * DAY, -1],
        ["2026-11-01T00:00:00.000000+00:00", "1969-12-31T23:59:59.999999+00:00"],
    ),
    ("s", StringType(), ["11/12/13 %2F", "é"], ["11/12/13 %2F", "é"]),
    ("u", UUIDType(), [ID, uuid.UUID(int=1)], [str(ID), str(uuid.UUID(int=1))]),
    ("fix", FixedType(3), [b"abc", b"\x00\x01\xff"], ["616263", "0001ff"]),
    ("bin", BinaryType(), [b"", b"\xff"], ["", "ff"]),
]
# source column, transform, values, JSON form
TRANSFORMS = [
    ("ts", "year", [56, -1], [56, -1]),
    ("tz", "month", [682, -1], [682, -1]),
    ("date", "day", [20758, -1], ["2026-11-01", "1969-12-31"]),
    ("l", "bucket[16]", [3, 15], [3, 15]),
    ("s", "truncate[2]", ["11", "é"], ["11", "é"]),
    ("i", "void", [None, None], [None, None]),
]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--format-version", choices=["1", "2"], default="2")
    args = parser.parse_args()
    catalog = open_catalog(args)
    catalog.create_namespace_if_not_exists(args.table.rsplit(".", 1)[0])
    fields = [NestedField(at + 1, name, of, required=False) for at, (name, of, _, _) in enumerate(COLUMNS)]
    identities = [
        PartitionField(source_id=at + 1, field_id=1000 + at, transform=IdentityTransform(), name=name)
        for at, (name, _, _, _) in enumerate(COLUMNS)
    ]
    table = catalog.create_table(
        args.table,
        Schema(*fields),
        partition_spec=PartitionSpec(*identities, spec_id=0),
        properties={"format-version": args.format_version},
    )
    files = append(table, [(name, values, shown) for name, _, values, shown in COLUMNS])

    with table.update_spec() as update:
        for name, _, _, _ in COLUMNS:
            update.remove_field(name)
        for source, transform, _, _ in TRANSFORMS:
            update.add_field(source, parse_transform(transform), f"{source}_{transform.split('[')[0]}")
    table = catalog.load_table(args.table)
    shown = {f"{source}_{transform.split('[')[0]}": (values, shown) for source, transform, values, shown in TRANSFORMS}
    nothing = ([None, None], [None, None])
    files += append(table, [(field.name, *shown.get(field.name, nothing)) for field in table.spec().fields])
    answer({"files": files})


def append(table, columns):
    """One commit of three files: the first values, the second values, nulls."""
    written = []
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        for number in range(3):
            path = f"{table.location()}/data/spec{table.spec().spec_id}/{number} %23#.parquet"
            values = [None if number == 2 else values[number] for _, values, _ in columns]
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=path,
                file_format=FileFormat.PARQUET,
                partition=Record(*values),
                record_count=number + 1,
                file_size_in_bytes=number + 100,
                column_sizes={},
                value_counts={1: 1},
                null_value_counts={1: 0},
                nan_value_counts={},
                lower_bounds={1: b"\x00"},
                upper_bounds={1: b"\x01"},
                split_offsets=None,
                equality_ids=None,
                sort_order_id=None,
            )
            file.spec_id = table.spec().spec_id
            snapshot.append_data_file(file)
            shown = {name: None if number == 2 else shown[number] for name, _, shown in columns}
            written.append({"path": path, "spec_id": table.spec().spec_id, "partition": shown, "rows": number + 1})
    return written


if __name__ == "__main__":
    main()
