"""Writes a table the way ingestion does: many small appends of real data, by PyIceberg with its defaults.

Every row gets a number `sent` (long) in the order of writing, so no two rows are equal: a lost, doubled or swapped row
shows in a digest, and after dedup the digest tells which of two copies was kept.
"""

from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from azure.storage.blob import BlobServiceClient
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder, UNSORTED_SORT_ORDER
from pyiceberg.transforms import DayTransform, IdentityTransform, MonthTransform, YearTransform, parse_transform
from pyiceberg.types import LongType, NestedField

from lake import answer, arguments, open_catalog
from sources import SOURCES

EVOLUTIONS = ["rename", "drop-and-add-again", "promote", "nested", "spec"]
SHORT_TRANSFORMS = {"day": DayTransform, "month": MonthTransform, "year": YearTransform, "identity": IdentityTransform}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--source", choices=sorted(SOURCES), required=True)
    parser.add_argument("--limit", type=int, help="take the first rows in time order only")
    parser.add_argument("--copies", type=int, default=1, help="repeat the source, each copy 366 days later")
    parser.add_argument("--appends", type=int, default=120)
    parser.add_argument("--first", type=int, default=0, help="go on with this append of the same plan; 0 creates the table")
    parser.add_argument("--last", type=int, help="stop before this append of the plan")
    parser.add_argument(
        "--arrival",
        choices=["sorted", "late", "scattered"],
        default="late",
        help="sorted: slices in time order; late: slices mixed, and rows within them; scattered: any row in any append",
    )
    parser.add_argument("--duplicates", type=float, default=0.0, help="fraction of rows that are sent once more")
    parser.add_argument("--evolve", default="", help=f"comma list of {', '.join(EVOLUTIONS)}, spread over the appends")
    parser.add_argument("--partition", default="none", help="comma list such as day:time_hour,identity:origin=place,bucket[4]:x; after = the field's name")
    parser.add_argument("--sort-order", default="", help="comma list such as origin,time_hour:desc")
    parser.add_argument("--format-version", choices=["1", "2"], default="2")
    parser.add_argument("--upgrade-at", type=int, help="before this append, raise a table of version 1 to 2")
    parser.add_argument("--property", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--branch", default="main")
    parser.add_argument("--per-transaction", type=int, default=1, help="appends that share one commit, a snapshot each")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    source = SOURCES[args.source]()
    rows = source_rows(source, args)
    plan = arrivals(rows.num_rows, args)
    changes = change_points(args)
    catalog = open_catalog(args)
    if args.first == 0:
        create_container(args)
    table = create(catalog, source, args) if args.first == 0 else catalog.load_table(args.table)
    sent = sum(len(indices) for indices in plan[: args.first])
    renamed = {source.rename[1]: source.rename[0]}
    waiting = []
    last = min(args.last or args.appends, args.appends)
    for number in range(args.first, last):
        if number == args.upgrade_at:
            with table.transaction() as transaction:
                transaction.upgrade_table_version(2)
        for change in changes.get(number, []):
            evolve(table, source, change)
            table = catalog.load_table(args.table)
        batch = rows.take(plan[number])
        numbers = pa.array(range(sent, sent + batch.num_rows), pa.int64())
        sent += batch.num_rows
        waiting.append(conform(batch.append_column("sent", numbers), table.schema(), renamed))
        changes_next = number + 1 in changes or number + 1 == args.upgrade_at
        if len(waiting) >= args.per_transaction or changes_next or number + 1 == last:
            append(table, waiting, args.branch)
            waiting = []
    table = catalog.load_table(args.table)
    head = table.metadata.snapshot_by_name(args.branch)
    answer(
        {
            "table": args.table,
            "location": table.location(),
            "metadata_location": table.metadata_location,
            "snapshot_id": head.snapshot_id if head else None,
            "snapshots": len(table.metadata.snapshots),
            "rows": sent,
            "files": int(head.summary["total-data-files"]) if head else 0,
            "columns": [field.name for field in table.schema().fields],
        }
    )


def append(table, batches, branch):
    """One commit with a snapshot, a manifest and data files of its own for each batch, tried again when another writer's commit
    came first: PyIceberg itself gives up then."""
    for _ in range(100):
        try:
            with table.transaction() as transaction:
                for batch in batches:
                    transaction.append(batch, branch=branch)
            return
        except CommitFailedException:
            table.refresh()
    raise SystemExit("every one of 100 tries of an append lost against another writer")


def source_rows(source, args):
    """The rows to write, in time order."""
    rows = source.rows
    if args.limit:
        rows = rows.slice(0, args.limit)
    copies = [rows]
    for number in range(1, args.copies):
        shift = pa.scalar(number * 366 * 86_400_000_000, pa.duration("us"))
        at = rows.schema.get_field_index(source.time)
        copies.append(rows.set_column(at, source.time, pc.add(rows[source.time], shift)))
    return pa.concat_tables(copies).combine_chunks()


def arrivals(count, args):
    """Which rows come with which append. The same options give the same plan."""
    random = np.random.default_rng(args.seed)
    indices = np.arange(count)
    if args.arrival == "scattered":
        random.shuffle(indices)
    slices = [list(part) for part in np.array_split(indices, args.appends)]
    if args.arrival == "late":
        random.shuffle(slices)
    again = random.choice(count, int(count * args.duplicates), replace=False)
    home = np.empty(count, dtype=np.int64)
    for number, part in enumerate(slices):
        home[part] = number
    for index in again:
        # In the same append or a later one: a copy never comes before the row.
        slices[random.integers(home[index], args.appends)].append(index)
    if args.arrival != "sorted":
        for part in slices:
            random.shuffle(part)
    return [pa.array(part, pa.int64()) for part in slices]


def change_points(args):
    """{append: [changes before it]}, spread evenly."""
    wanted = [change for change in args.evolve.split(",") if change]
    for change in wanted:
        if change not in EVOLUTIONS:
            raise SystemExit(f"unknown change `{change}`: use {', '.join(EVOLUTIONS)}")
    points = {}
    for place, change in enumerate(wanted):
        points.setdefault((place + 1) * args.appends // (len(wanted) + 1), []).append(change)
    return points


def create_container(args):
    """Azurite's container of an abfss:// warehouse, unless it is there."""
    if args.connection_string:
        container = urlsplit(args.warehouse).username
        client = BlobServiceClient.from_connection_string(args.connection_string).get_container_client(container)
        if not client.exists():
            client.create_container()


def create(catalog, source, args):
    """The empty table."""
    try:
        catalog.create_namespace(args.table.rsplit(".", 1)[0])
    except NamespaceAlreadyExistsError:
        pass
    columns = [*source.columns, ("sent", LongType())]
    schema = Schema(*(NestedField(i + 1, name, kind, required=False) for i, (name, kind) in enumerate(columns)))
    properties = dict(text.split("=", 1) for text in args.property)
    return catalog.create_table(
        args.table,
        schema,
        partition_spec=partition_spec(schema, args.partition),
        sort_order=sort_order(schema, args.sort_order),
        properties={"format-version": args.format_version, **properties},
    )


def partition_spec(schema, text):
    """day:time_hour,identity:origin as a spec; fields without a name of their own are named as Iceberg's writers name them."""
    if text == "none":
        return UNPARTITIONED_PARTITION_SPEC
    fields = []
    for number, part in enumerate(text.split(",")):
        transform_text, column = part.split(":")
        column, _, given_name = column.partition("=")
        transform = SHORT_TRANSFORMS[transform_text]() if transform_text in SHORT_TRANSFORMS else parse_transform(transform_text)
        plain = transform_text.split("[")[0]
        name = column if plain == "identity" else f"{column}_{plain}"
        fields.append(PartitionField(schema.find_field(column).field_id, 1000 + number, transform, given_name or name))
    return PartitionSpec(*fields)


def sort_order(schema, text):
    """origin,time_hour:desc as a sort order; ascending has nulls first, descending nulls last."""
    if not text:
        return UNSORTED_SORT_ORDER
    fields = []
    for part in text.split(","):
        column, _, direction = part.partition(":")
        descending = direction == "desc"
        fields.append(
            SortField(
                source_id=schema.find_field(column).field_id,
                transform=IdentityTransform(),
                direction=SortDirection.DESC if descending else SortDirection.ASC,
                null_order=NullOrder.NULLS_LAST if descending else NullOrder.NULLS_FIRST,
            )
        )
    return SortOrder(*fields)


def evolve(table, source, change):
    """One change of schema or spec."""
    if change == "rename":
        with table.update_schema() as update:
            update.rename_column(*source.rename)
    elif change == "drop-and-add-again":
        name, kind = source.drop_and_add_again
        with table.update_schema() as update:
            update.delete_column(name)
        with table.update_schema() as update:
            update.add_column(name, kind)
    elif change == "promote":
        name, kind = source.promote
        with table.update_schema() as update:
            update.update_column(name, field_type=kind)
    elif change == "nested":
        path, kind = source.nested
        with table.update_schema() as update:
            update.add_column(path, kind)
    elif change == "spec":
        with table.update_spec() as update:
            update.add_identity(source.key[0])


def conform(batch, schema, renamed):
    """The batch with exactly the columns, nested fields and types that the table has now."""
    target = schema_to_pyarrow(schema, include_field_ids=False)
    columns = []
    for field in target:
        name = field.name if field.name in batch.column_names else renamed.get(field.name, field.name)
        columns.append(conform_column(batch[name].combine_chunks(), field.type))
    return pa.Table.from_arrays(columns, schema=target)


def conform_column(column, kind):
    """A column cast to the type; of a struct only the fields that the type has."""
    if not pa.types.is_struct(kind):
        return pc.cast(column, kind)
    children = [conform_column(pc.struct_field(column, child.name), child.type) for child in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=pc.is_null(column))


if __name__ == "__main__":
    main()
