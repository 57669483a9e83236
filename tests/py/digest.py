"""Digest of the rows of a table as PyIceberg reads them: read with the current schema, whatever the snapshot.

With --dedup only the last row of each key within a partition counts, by (sequence number, insertion column, path, row
position), the rule that Firn follows; so the digest with --dedup is the same before and after a merge that drops
duplicates, and after it the digest without --dedup too.
"""

import numpy as np
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan

import rows
from lake import answer, arguments, load_table, snapshot_of


def main():
    parser = arguments(__doc__)
    parser.add_argument("--snapshot", type=int, help="default: the current one")
    parser.add_argument("--branch")
    parser.add_argument("--dedup", default="", help="comma list of the key columns")
    parser.add_argument("--insertion", help="column that decides between equal sequence numbers")
    args = parser.parse_args()

    table = load_table(args)
    snapshot = snapshot_of(table, args)
    answer(digest_of(table, snapshot, args.dedup, args.insertion))


def digest_of(table, snapshot, dedup="", insertion=None):
    """The answer for a snapshot of a table; `dedup` is the comma list of the key columns."""
    key = [column for column in dedup.split(",") if column]
    if snapshot is None:
        found = rows.EMPTY
    elif key:
        found = rows.digest(last_of_each_key(table, snapshot, key, insertion))
    else:
        found = digest_of_files(table, snapshot)
    return {**found, "snapshot_id": snapshot.snapshot_id if snapshot else None}


def files_of(table, snapshot):
    """(scan task, rows in file order) of every live data file."""
    reader = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
        yield task, reader.to_table([task])


def joined(parts):
    """One table; writers differ in how wide the offsets of texts are."""
    return pa.concat_tables(parts, promote_options="permissive")


def digest_of_files(table, snapshot):
    """The digest of all rows, a million at a time."""
    found, parts, count = rows.EMPTY, [], 0
    for _, part in files_of(table, snapshot):
        parts.append(part)
        count += part.num_rows
        if count >= 1_000_000:
            found, parts, count = rows.add(found, rows.digest(joined(parts))), [], 0
    return rows.add(found, rows.digest(joined(parts))) if parts else found


def last_of_each_key(table, snapshot, key, insertion):
    """The rows that dedup leaves."""
    numbers = sequence_numbers(table, snapshot)
    files = list(files_of(table, snapshot))
    paths = sorted(task.file.file_path.encode() for task, _ in files)
    rank = {path: place for place, path in enumerate(paths)}
    parts, order = [], {"sequence": [], "position": [], "path": [], "row": [], "partition": []}
    for task, part in files:
        sequence, position = numbers[task.file.file_path]
        parts.append(part)
        order["sequence"].append(np.full(part.num_rows, sequence, dtype=np.int64))
        order["position"].append(np.full(part.num_rows, position, dtype=np.int64))
        order["path"].append(np.full(part.num_rows, rank[task.file.file_path.encode()], dtype=np.int64))
        order["row"].append(np.arange(part.num_rows, dtype=np.int64))
        partition = rows.seed_of(f"{task.file.spec_id} {list(task.file.partition)}", 1)
        order["partition"].append(np.full(part.num_rows, partition, dtype=np.uint64))
    whole = joined(parts)
    order = {name: np.concatenate(values) for name, values in order.items()}
    with np.errstate(over="ignore"):
        group = rows.mix(rows.row_hashes(whole, 1, key) + order["partition"])
    inserted = sortable(whole[insertion]) if insertion else np.zeros(whole.num_rows, dtype=np.int64)
    by = np.lexsort((order["row"], order["path"], inserted, order["position"], order["sequence"], group))
    last = np.append(group[by][1:] != group[by][:-1], True)
    return whole.take(pa.array(by[last]))


def sequence_numbers(table, snapshot):
    """{path: (data sequence number, place of the adding snapshot in the history)}; the place orders number 0 only."""
    place = {s.snapshot_id: n for n, s in enumerate(ancestors(table, snapshot))}
    numbers = {}
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            sequence = entry.sequence_number or 0
            numbers[entry.data_file.file_path] = (sequence, 0 if sequence else place.get(entry.snapshot_id, -1))
    return numbers


def ancestors(table, snapshot):
    """The history up to the snapshot, oldest first."""
    line = []
    while snapshot is not None:
        line.append(snapshot)
        snapshot = table.metadata.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
    return list(reversed(line))


def sortable(column):
    """A column of numbers or times as int64; null comes before every value."""
    column = column.combine_chunks()
    values = rows.plain_values(column).view(np.int64).copy()
    values[np.asarray(column.is_null())] = np.iinfo(np.int64).min
    return values


if __name__ == "__main__":
    main()
