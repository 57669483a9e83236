"""The same job by DuckDB: the files of each day, sorted by (name, time), to one file. It knows no duplicates, no commit and no bound of memory but its own."""

import argparse
import collections
import pathlib

import duckdb


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True)
    args = parser.parse_args()
    days = collections.defaultdict(list)
    for file in pathlib.Path(args.folder).rglob("*.parquet"):
        days[file.parent].append(str(file))
    for day, files in sorted(days.items()):
        duckdb.sql(f"""COPY (SELECT * FROM read_parquet({sorted(files)}) ORDER BY name, time)
            TO '{day}/by-duckdb.parquet' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 1048576)""")


if __name__ == "__main__":
    main()
