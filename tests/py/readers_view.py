"""What readers see of a table beside its rows, as JSON: PyIceberg's metadata tables (files, entries, snapshots), and PyArrow's footers of the
live files in a local folder."""

import pyarrow.parquet as pq

from lake import answer, arguments, load_table


def main():
    args = arguments(__doc__).parse_args()
    table = load_table(args)
    files = table.inspect.files().to_pylist()
    answer(
        {
            "files": [{"path": file["file_path"], "rows": file["record_count"], "bytes": file["file_size_in_bytes"]} for file in files],
            "entries": sorted(entry["status"] for entry in table.inspect.entries().to_pylist()),
            "operations": [snapshot["operation"] for snapshot in table.inspect.snapshots().to_pylist()],
            "footers": [footer(file["file_path"].removeprefix("file://")) for file in files],
        }
    )


def footer(path):
    """Codec, encodings and row groups of a file."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    columns = {}
    for group in groups:
        for chunk in (group.column(at) for at in range(group.num_columns)):
            column = columns.setdefault(chunk.path_in_schema, {"codecs": set(), "dictionary": False})
            column["codecs"].add(chunk.compression)
            column["dictionary"] |= chunk.has_dictionary_page
    return {
        "rows": [group.num_rows for group in groups],
        "columns": {name: {**column, "codecs": sorted(column["codecs"])} for name, column in columns.items()},
    }


if __name__ == "__main__":
    main()
