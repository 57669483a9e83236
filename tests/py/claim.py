"""Writes a local Parquet file anew with other key-value entries, to give it a false claim. Manifests keep its old size: for
tests of the checks only."""

import argparse

import pyarrow.parquet as pq

from lake import answer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--claim", nargs="+", metavar="KEY=VALUE", required=True)
    args = parser.parse_args()

    table = pq.read_table(args.file, partitioning=None)
    entries = dict(text.split("=", 1) for text in args.claim)
    pq.write_table(table.replace_schema_metadata(entries), args.file)
    answer({"rows": table.num_rows})


if __name__ == "__main__":
    main()
