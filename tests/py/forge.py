"""Writes a local Parquet file anew with its claims and its size but other rows: for tests of `firn verify`, which must see it.

reversed  the same rows in another order
changed   one value of one row is another"""

import argparse
import os

import pyarrow as pa
import pyarrow.parquet as pq

from lake import answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--how", choices=["reversed", "changed"], required=True)
    parser.add_argument("--column", help="of 64-bit integers: its first value changes")
    args = parser.parse_args()

    size = os.path.getsize(args.file)
    table = pq.read_table(args.file, partitioning=None)
    if args.how == "reversed":
        table = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
    else:
        at = table.schema.get_field_index(args.column)
        values = table.column(at).to_pylist()
        values[0] += 1
        table = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
    smallest = {"compression": "zstd", "compression_level": 22, "write_statistics": False, "store_schema": False}
    claims = {key: value for key, value in pq.read_metadata(args.file).metadata.items() if key != b"ARROW:schema"}
    with pq.ParquetWriter(args.file, table.schema.remove_metadata(), **smallest) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata({key.decode(): value.decode() for key, value in claims.items()})
    pad(args.file, size)
    answer({"rows": table.num_rows})


def pad(path, size):
    """Zeros between the last page and the footer, where no offset leads to."""
    with open(path, "rb") as file:
        content = file.read()
    assert len(content) <= size, f"{len(content)} bytes, more than {size}"
    footer = int.from_bytes(content[-8:-4], "little") + 8
    with open(path, "wb") as file:
        file.write(content[:-footer] + bytes(size - len(content)) + content[-footer:])


if __name__ == "__main__":
    main()
