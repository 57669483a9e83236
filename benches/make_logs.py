"""Writes a table of text logs made of the Debian changelogs of this machine with PyIceberg, one append a file.

The machine's changelogs are a few MB; their sentences are dealt out at random until there is as much text as is asked for, and each line
begins with a request number of its own, as log lines do, so that the dictionary of words grows with the text. Also writes `logs.txt`, the same
lines for who indexes them without a table.
"""

import argparse
import glob
import gzip
import json

import numpy as np
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType, TimestampType

EPOCH = 1_767_225_600  # 2026-01-01, seconds
SERVICES = [f"service-{n:02}" for n in range(40)]


def sentences():
    """Lines of changelogs, each once."""
    found = set()
    for path in sorted(glob.glob("/usr/share/doc/*/changelog*.gz")):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
            found.update(line.strip(" *+-\n") for line in lines)
    return sorted(line for line in found if len(line) > 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True, help="catalog.db, warehouse/ and logs.txt are made in it")
    parser.add_argument("--megabytes", type=int, default=1000, help="of text")
    parser.add_argument("--files", type=int, default=40)
    args = parser.parse_args()
    known = pa.array(sentences())
    random = np.random.default_rng(7)
    fields = [NestedField(1, "time", TimestampType()), NestedField(2, "service", StringType()), NestedField(3, "line", StringType())]
    catalog = SqlCatalog("lake", uri=f"sqlite:///{args.folder}/catalog.db", warehouse=f"file://{args.folder}/warehouse")
    catalog.create_namespace("app")
    table = catalog.create_table("app.logs", Schema(*fields))
    mean = known.nbytes / len(known) + 12
    rows = int(args.megabytes * 1e6 / args.files / mean)
    text_bytes, all_rows = 0, 0
    with open(f"{args.folder}/logs.txt", "w", encoding="utf-8") as plain:
        for number in range(args.files):
            chosen = known.take(pa.array(random.integers(0, len(known), rows))).to_pylist()
            requests = random.integers(0, 1 << 40, rows)
            lines = [f"req-{request:010x} {line}" for request, line in zip(requests, chosen)]
            text_bytes += sum(len(line.encode()) for line in lines)
            all_rows += rows
            plain.writelines(line + "\n" for line in lines)
            at = np.sort(random.integers(0, 3600, rows)) + number * 3600 + EPOCH
            services = pa.array(SERVICES).take(pa.array(random.integers(0, len(SERVICES), rows)))
            table.append(pa.table({"time": pa.array(at * 1_000_000, pa.timestamp("us")), "service": services, "line": pa.array(lines)}))
    print(json.dumps({"files": args.files, "rows": all_rows, "textBytes": text_bytes, "sentences": len(known)}))


if __name__ == "__main__":
    main()
