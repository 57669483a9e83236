"""Deletes rows of an unpartitioned table the way streaming writers do, in one commit: without rewriting data files.

--positions N:R        position deletes of every row whose `sent` leaves R when divided by N, one delete file for all data files
--equality COL=VALUE   an equality delete of the rows that have this text
"""

import uuid

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.table.snapshots import Operation
from pyiceberg.typedef import Record

from lake import answer, arguments, load_table

FILE_PATH, POS = 2147483546, 2147483545


class DeleteManifestWriter(ManifestWriterV2):
    """A manifest of delete files; PyIceberg itself writes none."""

    def content(self):
        return ManifestContent.DELETES

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--positions", metavar="N:R")
    parser.add_argument("--equality", metavar="COL=VALUE")
    args = parser.parse_args()
    table = load_table(args)
    files = []
    if args.positions:
        by, rest = (int(number) for number in args.positions.split(":"))
        files.append(positions(table, by, rest))
    if args.equality:
        files.append(equality(table, *args.equality.split("=", 1)))
    with table.transaction() as transaction:
        with transaction.update_snapshot().fast_append() as snapshot:
            snapshot._operation = Operation.DELETE
            snapshot.new_manifest_writer = lambda spec: DeleteManifestWriter(
                spec, table.schema(), snapshot.new_manifest_output(), snapshot.snapshot_id, snapshot._compression
            )
            for file in files:
                snapshot.append_data_file(file)
    answer({"files": [file.file_path for file in files]})


def positions(table, by, rest):
    """Rows of all data files by their numbers."""
    paths, numbers = [], []
    for task in table.scan().plan_files():
        with table.io.new_input(task.file.file_path).open() as stream:
            sent = pq.ParquetFile(stream).read(columns=["sent"])["sent"].to_pylist()
        rows = [row for row, value in enumerate(sent) if value % by == rest]
        paths += [task.file.file_path] * len(rows)
        numbers += rows
    rows = sorted(zip(paths, numbers))
    columns = {
        ("file_path", FILE_PATH): pa.array([path for path, _ in rows], pa.string()),
        ("pos", POS): pa.array([row for _, row in rows], pa.int64()),
    }
    return written(table, DataFileContent.POSITION_DELETES, columns, None)


def equality(table, name, value):
    """Rows that have a value, by their key."""
    field = table.schema().find_field(name)
    columns = {(name, field.field_id): pa.array([value], pa.string())}
    return written(table, DataFileContent.EQUALITY_DELETES, columns, [field.field_id])


def written(table, content, columns, equality_ids):
    """A delete file with these columns."""
    fields = [pa.field(name, array.type, False, {"PARQUET:field_id": str(id)}) for (name, id), array in columns.items()]
    rows = pa.table(list(columns.values()), schema=pa.schema(fields))
    path = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    output = table.io.new_output(path)
    with output.create() as stream:
        pq.write_table(rows, stream, store_schema=False)
    file = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows.num_rows,
        file_size_in_bytes=len(table.io.new_input(path)),
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        split_offsets=None,
        equality_ids=equality_ids,
        sort_order_id=None,
    )
    file.spec_id = table.spec().spec_id
    return file


if __name__ == "__main__":
    main()
