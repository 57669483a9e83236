"""Answers questions about one table as long as it is asked: an interpreter with PyIceberg takes seconds to start.

Reads one JSON command a line and prints one JSON answer a line:
{"command": "digest", "dedup": "origin,time_hour", "snapshot": 1}   as digest.py; both options may be left out
{"command": "check", "dedup": "origin,time_hour"}                   as check_invariants.py; the option may be left out
{"command": "head"}                                                 metadata_location, snapshot_id, files, snapshots
The table is loaded anew for each, because others write to it; a failure is an answer {"error": text}.
"""

import json
import sys
import traceback

from check_invariants import check
from digest import digest_of
from lake import answer, arguments, open_catalog


def main():
    args = arguments(__doc__).parse_args()
    for line in sys.stdin:
        try:
            answer(reply(args, json.loads(line)))
        except Exception:
            answer({"error": traceback.format_exc()})
        sys.stdout.flush()


def reply(args, asked):
    """The answer to one command."""
    catalog = open_catalog(args)
    try:
        table = catalog.load_table(args.table)
    finally:
        # The file of the catalog may be replaced before the next command: no connection to it stays open.
        catalog.engine.dispose()
    if asked["command"] == "digest":
        number = asked.get("snapshot")
        snapshot = table.metadata.snapshot_by_id(number) if number else table.metadata.current_snapshot()
        return digest_of(table, snapshot, asked.get("dedup", ""))
    if asked["command"] == "check":
        return check(table, asked.get("dedup", ""))
    if asked["command"] == "head":
        return head(table)
    raise ValueError(f"unknown command {asked['command']}")


def head(table):
    """Where the table stands."""
    snapshot = table.metadata.current_snapshot()
    return {
        "metadata_location": table.metadata_location,
        "snapshot_id": snapshot.snapshot_id if snapshot else None,
        "files": sorted(task.file.file_path for task in table.scan().plan_files()) if snapshot else [],
        "snapshots": len(table.metadata.snapshots),
    }


if __name__ == "__main__":
    main()
