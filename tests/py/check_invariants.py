"""Checks what must hold for a table after any run (design section 8), reading metadata and footers with PyIceberg.

I2 every file of every retained snapshot exists
I3 no path is live twice in a snapshot
I4 the totals of each summary equal a recount
I5 a claim of sortedness (sort_order_id, or firn.order in the footer) is true over the whole file; with --dedup KEY, so is
   a claim of uniqueness (timelake.unique)
I6 every sidecar of a retained data file was built for that very file, and says of it what is true
I9 no path was replaced by two commits

Row counts and values (I1) are compared by digests. Prints {"ok": bool, "violations": [text], "checked": {...}}.
"""

import collections

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.table.sorting import NullOrder, SortDirection

import rows
import sidecars
from lake import answer, arguments, load_table

DELETED = 2


def main():
    parser = arguments(__doc__)
    parser.add_argument("--dedup", default="", help="comma list of the key columns")
    args = parser.parse_args()
    answer(check(load_table(args), args.dedup))


def check(table, dedup=""):
    """The answer for a table as it was loaded; `dedup` is the comma list of the key columns."""
    key = [table.schema().find_field(column).field_id for column in dedup.split(",") if column]
    files = Files(table.io)
    violations, checked = [], collections.Counter()
    retained = {}
    for snapshot in table.metadata.snapshots:
        checked["snapshots"] += 1
        manifests, lost = reachable_manifests(snapshot, files)
        live = [entry for manifest in manifests for entry in files.live(manifest)]
        lost += [entry.data_file.file_path for entry in live if not files.exists(entry.data_file.file_path)]
        violations += [f"I2: snapshot {snapshot.snapshot_id} needs {path}, which does not exist" for path in lost]
        violations += live_twice(snapshot, live)
        violations += wrong_totals(snapshot, live)
        data = (entry.data_file for entry in live if entry.data_file.content == 0)
        retained.update({file.file_path: file for file in data if files.exists(file.file_path)})
        if snapshot == table.metadata.current_snapshot():
            for file in (entry.data_file for entry in live if entry.data_file.content == 0):
                checked["files"] += 1
                if files.exists(file.file_path):
                    violations += false_claims(table, file, key, checked)
    violations += sidecars.violations(table, retained.values(), files, checked)
    violations += replaced_twice(files.entries)
    checked["paths"] = len(files.known)
    return {"ok": not violations, "violations": violations, "checked": checked}


class Files:
    """What storage has; every file is asked for and every manifest read once, for snapshots share most of them."""

    def __init__(self, io):
        self.io = io
        self.known = {}
        self.entries = {}

    def exists(self, path):
        """Whether the file is there."""
        if path not in self.known:
            self.known[path] = self.io.new_input(path).exists()
        return self.known[path]

    def live(self, manifest):
        """Entries of a manifest that are not deleted."""
        path = manifest.manifest_path
        if path not in self.entries:
            self.entries[path] = manifest.fetch_manifest_entry(self.io, discard_deleted=False)
        return [entry for entry in self.entries[path] if entry.status != DELETED]


def reachable_manifests(snapshot, files):
    """(manifests that are there, paths of those that are not)."""
    if not files.exists(snapshot.manifest_list):
        return [], [snapshot.manifest_list]
    manifests = snapshot.manifests(files.io)
    there = [manifest for manifest in manifests if files.exists(manifest.manifest_path)]
    return there, [m.manifest_path for m in manifests if m not in there]


def live_twice(snapshot, live):
    """I3."""
    counts = collections.Counter((entry.data_file.file_path, entry.data_file.content) for entry in live)
    for (path, _), count in counts.items():
        if count > 1:
            yield f"I3: {path} is live {count} times in snapshot {snapshot.snapshot_id}"


def wrong_totals(snapshot, live):
    """I4; a total that a writer left out is no violation."""
    data = [entry.data_file for entry in live if entry.data_file.content == 0]
    deletes = [entry.data_file for entry in live if entry.data_file.content != 0]
    recount = {
        "total-data-files": len(data),
        "total-delete-files": len(deletes),
        "total-records": sum(file.record_count for file in data),
        "total-files-size": sum(file.file_size_in_bytes for file in data + deletes),
    }
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    for name, count in recount.items():
        if name in summary and int(summary[name]) != count:
            yield f"I4: snapshot {snapshot.snapshot_id} says {name} {summary[name]}, a recount gives {count}"


def replaced_twice(entries):
    """I9: a path that was written once is deleted once. Takes the entries of each manifest."""
    by = collections.defaultdict(set)
    for of_manifest in entries.values():
        for entry in of_manifest:
            if entry.status == DELETED:
                by[entry.data_file.file_path].add(entry.snapshot_id)
    for path, snapshots in by.items():
        if len(snapshots) > 1:
            yield f"I9: {path} was replaced by snapshots {sorted(snapshots)}"


def false_claims(table, file, key, checked):
    """I5 for one data file."""
    with table.io.new_input(file.file_path).open() as stream:
        parquet = pq.ParquetFile(stream)
        entries = {k.decode(): v.decode(errors="replace") for k, v in (parquet.metadata.metadata or {}).items()}
        names = {field_id(field): field.name for field in parquet.schema_arrow}
        for claim, order in claims(table, file, entries):
            checked["claims"] += 1
            # A column that the file lacks is null in every row and orders nothing.
            present = [column for column in order if column[0] in names]
            data = parquet.read(columns=[names[column] for column, _, _ in present])
            ranks = [rank(data[names[column]], *direction) for column, *direction in present]
            place = first_descent(ranks, data.num_rows)
            if place is not None:
                yield f"I5: {file.file_path} claims {claim}, but row {place + 1} comes before row {place}"
        if key and entries.get("timelake.unique") == "true":
            checked["claims"] += 1
            data = parquet.read(columns=[names[column] for column in key if column in names])
            distinct = len(np.unique(rows.row_hashes(data, 1)))
            if distinct != data.num_rows:
                yield f"I5: {file.file_path} claims timelake.unique, but {data.num_rows} rows have {distinct} keys"


def claims(table, file, entries):
    """(text of the claim, [(field id, descending, nulls first)]) of every claim that the file or its entry makes."""
    if file.sort_order_id:
        order = next((o for o in table.metadata.sort_orders if o.order_id == file.sort_order_id), None)
        if order is None:
            raise SystemExit(f"{file.file_path} claims sort order {file.sort_order_id}, which the table does not have")
        fields = [
            (f.source_id, f.direction == SortDirection.DESC, f.null_order == NullOrder.NULLS_FIRST) for f in order.fields
        ]
        yield f"sort_order_id {file.sort_order_id}", fields
    if entries.get("firn.order"):
        # For example `3 asc nulls-first,1 desc nulls-last`: field ids, most significant first.
        parts = [part.split() for part in entries["firn.order"].split(",")]
        order = [(int(column), way == "desc", nulls == "nulls-first") for column, way, nulls in parts]
        yield f"firn.order={entries['firn.order']}", order


def field_id(field):
    """The Iceberg field id of a Parquet column."""
    return int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))


def rank(column, descending, nulls_first):
    """int64 a row in the order that is claimed: equal values have equal ranks, greater ones greater ranks."""
    column = column.combine_chunks()
    if pa.types.is_floating(column.type):
        # The total order of floats: by sign, then by bits; -NaN first, NaN last.
        bits = np.asarray(pc.cast(column, pa.float64()).fill_null(0.0)).view(np.int64)
        values = np.where(bits < 0, np.int64(-1) - (bits & np.int64(0x7FFFFFFFFFFFFFFF)), bits)
        _, dense = np.unique(values, return_inverse=True)
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_binary(column.type):
        dense = np.asarray(pc.rank(pc.cast(column, pa.large_binary()), tiebreaker="dense"))
    else:
        numbers = pc.cast(column, pa.int8()) if pa.types.is_boolean(column.type) else column
        dense = np.asarray(pc.rank(numbers, tiebreaker="dense"))
    dense = dense.astype(np.int64) * (-1 if descending else 1)
    nulls = np.asarray(column.is_null())
    dense[nulls] = np.iinfo(np.int64).min if nulls_first else np.iinfo(np.int64).max
    return dense


def first_descent(ranks, count):
    """The first row that is greater than the next one, or None."""
    if count < 2 or not ranks:
        return None
    tied = np.ones(count - 1, dtype=bool)
    wrong = np.zeros(count - 1, dtype=bool)
    for values in ranks:
        wrong |= tied & (values[:-1] > values[1:])
        tied &= values[:-1] == values[1:]
    places = np.flatnonzero(wrong)
    return int(places[0]) if len(places) else None


if __name__ == "__main__":
    main()
