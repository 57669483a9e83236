"""What a table's metadata says, as JSON: snapshots, refs, live files, and with --entries every manifest entry."""

from lake import answer, arguments, load_table, snapshot_of

STATUS = ["existing", "added", "deleted"]
CONTENT = ["data", "position-deletes", "equality-deletes"]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--snapshot", type=int, help="default: the current one")
    parser.add_argument("--branch")
    parser.add_argument("--entries", action="store_true", help="also every entry of the snapshot, deleted ones too")
    parser.add_argument("--all-manifests", action="store_true", help="the manifests of every snapshot, not only of one")
    args = parser.parse_args()

    table = load_table(args)
    metadata = table.metadata
    head = snapshot_of(table, args)
    shown = metadata.snapshots if args.all_manifests else [head] if head else []
    entries = list(entries_of(table, head)) if head else []
    answer(
        {
            "location": table.location(),
            "metadata_location": table.metadata_location,
            "uuid": str(metadata.table_uuid),
            "format_version": metadata.format_version,
            "current_snapshot_id": metadata.current_snapshot_id,
            "current_schema_id": metadata.current_schema_id,
            "default_spec_id": metadata.default_spec_id,
            "default_sort_order_id": metadata.default_sort_order_id,
            "metadata_log": len(metadata.metadata_log),
            "refs": {name: ref.model_dump() for name, ref in metadata.refs.items()},
            "snapshots": [
                {
                    "id": snapshot.snapshot_id,
                    "parent": snapshot.parent_snapshot_id,
                    "sequence_number": snapshot.sequence_number,
                    "operation": snapshot.summary.operation.value if snapshot.summary else None,
                    "summary": snapshot.summary.additional_properties if snapshot.summary else {},
                    "schema_id": snapshot.schema_id,
                }
                for snapshot in metadata.snapshots
            ],
            "manifests": {str(snapshot.snapshot_id): manifests_of(table, snapshot) for snapshot in shown},
            "files": [entry for entry in entries if entry["status"] != "deleted"],
            **({"entries": entries} if args.entries else {}),
        }
    )


def manifests_of(table, snapshot):
    """The manifest list of a snapshot."""
    return [
        {
            "path": manifest.manifest_path,
            "length": manifest.manifest_length,
            "spec_id": manifest.partition_spec_id,
            "content": manifest.content.name.lower(),
            "sequence_number": manifest.sequence_number,
            "min_sequence_number": manifest.min_sequence_number,
            "added_snapshot_id": manifest.added_snapshot_id,
            "added_files": manifest.added_files_count,
            "existing_files": manifest.existing_files_count,
            "deleted_files": manifest.deleted_files_count,
        }
        for manifest in snapshot.manifests(table.io)
    ]


def entries_of(table, snapshot):
    """Every entry of a snapshot's manifests, with inherited numbers filled in."""
    specs = table.specs()
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            file = entry.data_file
            names = [field.name for field in specs[manifest.partition_spec_id].fields]
            yield {
                "status": STATUS[entry.status],
                "content": CONTENT[file.content],
                "snapshot_id": entry.snapshot_id,
                "sequence_number": entry.sequence_number,
                "file_sequence_number": entry.file_sequence_number,
                "path": file.file_path,
                "format": str(file.file_format.value),
                "rows": file.record_count,
                "bytes": file.file_size_in_bytes,
                "spec_id": manifest.partition_spec_id,
                "partition": dict(zip(names, list(file.partition))),
                "sort_order_id": file.sort_order_id,
                "column_sizes": dict(file.column_sizes or {}),
                "value_counts": dict(file.value_counts or {}),
                "null_value_counts": dict(file.null_value_counts or {}),
                "nan_value_counts": dict(file.nan_value_counts or {}),
                "lower_bounds": hexed(file.lower_bounds),
                "upper_bounds": hexed(file.upper_bounds),
                "split_offsets": file.split_offsets,
                "manifest": manifest.manifest_path,
            }


def hexed(bounds):
    """Bounds as hexadecimal text."""
    return {field: value.hex() for field, value in (bounds or {}).items()}


if __name__ == "__main__":
    main()
