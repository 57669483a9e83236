"""The statistics of a table as other programs read them: PyIceberg finds the files and opens them, the DataSketches library decodes the
sketches, and the rows of each snapshot are counted.

Prints for each statistics file its snapshot, its path and its columns: what the metadata and the file say, what the library estimates
(three standard deviations around it), and how many different values the snapshot really has.
"""

from datasketches import compact_theta_sketch
from pyiceberg.table.puffin import PuffinFile

from lake import answer, arguments, load_table

THETA = "apache-datasketches-theta-v1"


def main():
    table = load_table(arguments(__doc__).parse_args())
    answer({"statistics": [read(table, file) for file in table.metadata.statistics]})


def read(table, file):
    """One statistics file."""
    with table.io.new_input(file.statistics_path).open() as stream:
        content = stream.read()
    assert len(content) == file.file_size_in_bytes, f"{len(content)} bytes, the metadata says {file.file_size_in_bytes}"
    footer_at = len(content) - file.file_footer_size_in_bytes
    assert content[footer_at : footer_at + 4] == b"PFA1", "the footer is not as long as the metadata says"
    puffin = PuffinFile(content)
    snapshot = table.metadata.snapshot_by_id(file.snapshot_id)
    said = [(blob.type, blob.snapshot_id, blob.sequence_number, blob.fields, blob.properties) for blob in file.blob_metadata]
    has = [(blob.type, blob.snapshot_id, blob.sequence_number, blob.fields, blob.properties) for blob in puffin.footer.blobs]
    assert said == has, f"the metadata says {said}, the file {has}"
    columns = []
    for blob in puffin.footer.blobs:
        assert blob.type == THETA and blob.compression_codec is None, blob
        assert (blob.snapshot_id, blob.sequence_number) == (snapshot.snapshot_id, snapshot.sequence_number), blob
        sketch = compact_theta_sketch.deserialize(content[blob.offset : blob.offset + blob.length])
        assert int(blob.properties["ndv"]) == round(sketch.get_estimate()), blob
        name = table.schema().find_column_name(blob.fields[0])
        values = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=(name,)).to_arrow()[name]
        columns.append(
            {
                "name": name,
                "ndv": int(blob.properties["ndv"]),
                "lower": sketch.get_lower_bound(3),
                "upper": sketch.get_upper_bound(3),
                "counted": sum(1 for value in values.unique().to_pylist() if value is not None),
            }
        )
    return {"snapshot": file.snapshot_id, "path": file.statistics_path, "columns": columns, "properties": puffin.footer.properties}


if __name__ == "__main__":
    main()
