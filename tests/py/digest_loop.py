"""Reads a table over and over, as a user does who knows nothing of Firn: one JSON line a read, {"rows", "digest",
"snapshot_id"}, until standard input is closed, and once more after that."""

import json
import select
import sys

from digest import digest_of_files
from lake import arguments, open_catalog


def main():
    args = arguments(__doc__).parse_args()
    catalog = open_catalog(args)
    closed = False
    while True:
        table = catalog.load_table(args.table)
        snapshot = table.metadata.current_snapshot()
        found = {**digest_of_files(table, snapshot), "snapshot_id": snapshot.snapshot_id}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
        if closed:
            return
        closed = bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    main()
