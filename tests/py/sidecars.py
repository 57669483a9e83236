"""Whether the sidecars of a table agree with their data files (design section 8, I6; docs/sidecars.md).

Everything is read with other libraries than Firn's, or computed anew: the layout of a bundle, rows, nulls, bloom filters and sketches.
"""

import json
import re
import struct
import uuid
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from datasketches import compact_theta_sketch

OWN = re.compile(r"[0-9a-f]{32}-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.parquet$")
KINDS = {"tantivy": "text", "bloom": "bloom", "ndv": "ndv"}
# Values of a column that are looked for in its filter.
ASKED = 300
# The salt of split-block filters (parquet-format, "Bloom Filter").
SALT = [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31]


def violations(table, data_files, files, checked):
    """Violations among the sidecars of `data_files`, the data files of all retained snapshots."""
    for file in data_files:
        path = canonical(file.file_path)
        own = OWN.search(path)
        name = own.group(1) if own else uuid.uuid5(uuid.NAMESPACE_URL, path)
        for ending, kind in KINDS.items():
            sidecar = f"{table.location().rstrip('/')}/_firn/{name}.{ending}"
            if not files.exists(sidecar):
                continue
            checked["sidecars"] += 1
            with table.io.new_input(sidecar).open() as stream:
                content = stream.read()
            with table.io.new_input(file.file_path).open() as stream:
                parquet = pq.ParquetFile(stream)
                found = about(content, kind)
                expected = (path, file.file_size_in_bytes, parquet.metadata.num_rows)
                if found != expected:
                    yield f"I6: {sidecar} was built for {found}, its data file is {expected}"
                    continue
                wrong = of_sketches(content, parquet) if kind == "ndv" else of_bundle(content, kind, parquet)
                yield from (f"I6: {sidecar}: {detail}" for detail in wrong)


def canonical(path):
    """The one form of a path that names of sidecars are made from."""
    at = urlsplit(path)
    if at.scheme in ("", "file"):
        return at.path if at.scheme else path
    return path


def about(content, kind):
    """(path, size, rows) of the data file that a sidecar says it was built for."""
    if kind == "ndv":
        said = puffin_footer(content)["properties"]
        return said["firn.data-path"], int(said["firn.data-size"]), int(said["firn.data-rows"])
    footer = bundle_footer(content)
    if footer["kind"] != kind:
        raise SystemExit(f"a {footer['kind']} lies where a {kind} should be")
    return footer["data"]["path"], footer["data"]["size"], footer["data"]["rows"]


def bundle_footer(content):
    """The footer of a bundle."""
    assert content[:8] == b"FIRNSC01" and content[-8:] == b"FIRNSC01", "no bundle"
    (length,) = struct.unpack("<I", content[-12:-8])
    return json.loads(content[-20 - length : -20])


def puffin_footer(content):
    """The footer of a Puffin file."""
    assert content[:4] == b"PFA1" and content[-4:] == b"PFA1", "no Puffin file"
    (length,) = struct.unpack("<i", content[-12:-8])
    return json.loads(content[-12 - length : -12])


def column_of(parquet, field_id):
    """The values of a column by its field id; None when the file does not have it."""
    for field in parquet.schema_arrow:
        if int((field.metadata or {}).get(b"PARQUET:field_id", b"-1")) == field_id:
            return parquet.read(columns=[field.name])[field.name]
    return None


def of_bundle(content, kind, parquet):
    """What is wrong in an index or in filters."""
    footer = bundle_footer(content)
    parts = {part["name"]: content[part["offset"] : part["offset"] + part["length"]] for part in footer["parts"]}
    for column in footer["about"]["columns"]:
        values = column_of(parquet, column["fieldId"])
        nulls = parquet.metadata.num_rows if values is None else values.null_count
        if nulls != column["nulls"]:
            yield f"column {column['name']} has {nulls} nulls, not {column['nulls']}"
        if kind == "bloom" and values is not None:
            bits = parts[column["part"]]
            for value in distinct(values)[:ASKED]:
                plain = plain_bytes(value, column["dataType"])
                if plain is not None and not may_have(bits, plain):
                    yield f"the filter of {column['name']} says that {value!r} is absent"


def of_sketches(content, parquet):
    """What is wrong in sketches."""
    for blob in puffin_footer(content)["blobs"]:
        sketch = compact_theta_sketch.deserialize(content[blob["offset"] : blob["offset"] + blob["length"]])
        values = column_of(parquet, blob["fields"][0])
        count = 0 if values is None else len(distinct(values))
        # Three standard deviations would fail once in some hundred files.
        if not sketch.get_estimate() * 0.9 <= count <= sketch.get_estimate() * 1.1:
            yield f"the sketch of field {blob['fields'][0]} estimates {sketch.get_estimate()}, there are {count} values"


def distinct(values):
    """The different values that are not null."""
    return [value for value in values.unique().to_pylist() if value is not None]


def plain_bytes(value, data_type):
    """A value as Parquet stores it, for the types that the tests filter by."""
    if data_type in ("Utf8", "LargeUtf8"):
        return value.encode()
    if data_type in ("Int32", "Int64"):
        return value.to_bytes(4 if data_type == "Int32" else 8, "little", signed=True)
    if data_type == "Float64":
        return struct.pack("<d", value)
    return None


def may_have(bits, value):
    """Asks a split-block filter."""
    code = xxh64(value)
    block = ((code >> 32) * (len(bits) // 32)) >> 32
    words = struct.unpack("<8I", bits[block * 32 : block * 32 + 32])
    key = code & 0xFFFFFFFF
    return all(word >> (((key * salt) & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(words, SALT))


def xxh64(data, mask=(1 << 64) - 1):
    """XXH64 with seed 0 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md)."""
    p1, p2, p3, p4, p5 = (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )

    def turn(value, by):
        return ((value << by) | (value >> (64 - by))) & mask

    def step(sum_, lane):
        return turn((sum_ + lane * p2) & mask, 31) * p1 & mask

    at, length = 0, len(data)
    if length >= 32:
        sums = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while at + 32 <= length:
            lanes = struct.unpack_from("<4Q", data, at)
            sums = [step(sum_, lane) for sum_, lane in zip(sums, lanes)]
            at += 32
        code = sum(turn(sum_, by) for sum_, by in zip(sums, (1, 7, 12, 18))) & mask
        for sum_ in sums:
            code = ((code ^ step(0, sum_)) * p1 + p4) & mask
    else:
        code = p5
    code = (code + length) & mask
    while at + 8 <= length:
        code = (turn(code ^ step(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= length:
        code = (turn(code ^ struct.unpack_from("<I", data, at)[0] * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        code = turn(code ^ byte * p5 & mask, 11) * p1 & mask
    code = (code ^ code >> 33) * p2 & mask
    code = (code ^ code >> 29) * p3 & mask
    return code ^ code >> 32
