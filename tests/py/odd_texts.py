"""Writes a table of texts that are hard on an index: no value, nothing, one letter, NUL, emoji, mixed case, words beyond any limit, 10 MB.

The text of row N is TEXTS[N % 12]; row 12 alone has 10 MB. `void` is null in every row. `host` is Host and N % 5.
--stage first   creates the table and appends rows 0 to 12 in one file; the column `note` comes after that
--stage rest    appends rows 13 to 144 in 11 files; `note` is "Late note" in every third row
"""

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from lake import answer, arguments, load_table, open_catalog
from make_table import create_container

TEXTS = [
    None,
    "",
    "x",
    "Error\0disk",
    "\N{GRINNING FACE} smile \N{GRINNING FACE}",
    "\u00c4RGER mit Umlauten",
    "before " + "y" * 300 + " after",
    "z" * 255,
    "MiXeD cAsE wOrD",
    "\u65e5\u672c\u8a9e \u30c6\u30ad\u30b9\u30c8",
    "\0",
    "a-b_c.d/e",
]
LARGE = 12
LARGE_TEXT = "lorem ipsum dolor " * 555_555 + "needle10mb"


def main():
    parser = arguments(__doc__)
    parser.add_argument("--stage", choices=["first", "rest"], required=True)
    args = parser.parse_args()
    if args.stage == "first":
        create_container(args)
        table = create(args)
        table.append(rows(range(0, LARGE + 1), with_note=False))
        with table.update_schema() as update:
            update.add_column("note", StringType())
    else:
        table = load_table(args)
        for start in range(LARGE + 1, 145, 12):
            table.append(rows(range(start, start + 12), with_note=True))
    answer({"files": len(list(table.scan().plan_files()))})


def create(args):
    """The table without `note`."""
    catalog = open_catalog(args)
    catalog.create_namespace_if_not_exists(args.table.rsplit(".", 1)[0])
    texts = [NestedField(2 + i, name, StringType(), required=False) for i, name in enumerate(["body", "host", "void"])]
    return catalog.create_table(args.table, Schema(NestedField(1, "sent", LongType(), required=False), *texts))


def rows(numbers, with_note):
    """Rows of these numbers."""
    texts = [LARGE_TEXT if number == LARGE else TEXTS[number % 12] for number in numbers]
    columns = {
        "sent": pa.array(numbers, pa.int64()),
        "body": pa.array(texts, pa.string()),
        "host": pa.array([f"Host{number % 5}" for number in numbers], pa.string()),
        "void": pa.array([None] * len(texts), pa.string()),
    }
    if with_note:
        columns["note"] = pa.array(["Late note" if number % 3 == 0 else None for number in numbers], pa.string())
    return pa.table(columns)


if __name__ == "__main__":
    main()
