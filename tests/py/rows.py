"""Rows of a table as one order-independent number.

A row's hash is a non-linear mix of its columns' hashes, seeded by column name; a digest is the row count and two 64-bit
sums over the rows. Equal multisets of rows have equal digests, whatever reader, file layout or order they came from.
"""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
NULL = np.uint64(0x6E756C6C6E756C6C)


def mix(values):
    """SplitMix64's finish: any two inputs give unrelated outputs."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


def seed_of(text, lane):
    """A number that stands for a column's name."""
    return pd.util.hash_array(np.array([f"{lane}:{text}"], dtype=object))[0]


def row_hashes(table, lane, columns=None):
    """One uint64 a row over the named columns (all by default)."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name in columns or table.column_names:
            total += column_hashes(table[name], name, lane)
        return mix(total * MULTIPLIER)


def column_hashes(column, name, lane):
    """One uint64 a row. Types that hold the same values (int and long, string and large string) hash alike."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return column_hashes(column.storage, name, lane)
    if pa.types.is_dictionary(kind):
        return column_hashes(column.dictionary_decode(), name, lane)
    if pa.types.is_struct(kind):
        hashes = np.full(len(column), seed_of(name, lane), dtype=np.uint64)
        with np.errstate(over="ignore"):
            for index in range(kind.num_fields):
                child = kind.field(index).name
                hashes += column_hashes(pc.struct_field(column, child), f"{name}.{child}", lane)
    else:
        with np.errstate(over="ignore"):
            hashes = mix(plain_values(column) + seed_of(name, lane))
    nulls = np.asarray(pc.is_null(column))
    hashes[nulls] = mix(np.array([NULL ^ seed_of(name, lane)], dtype=np.uint64))[0]
    return mix(hashes)


def plain_values(column):
    """The values of a column that is no struct as uint64; what stands at nulls means nothing."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.fill_null(False)).astype(np.uint64)
    if pa.types.is_floating(kind):
        floats = np.asarray(pc.cast(column, pa.float64()).fill_null(0.0)).copy()
        floats[np.isnan(floats)] = np.nan
        return floats.view(np.uint64)
    if pa.types.is_integer(kind):
        return np.asarray(pc.cast(column, pa.int64()).fill_null(0)).view(np.uint64)
    if pa.types.is_timestamp(kind):
        unit = "ns" if kind.unit == "ns" else "us"
        return plain_values(pc.cast(pc.cast(column, pa.timestamp(unit, tz=kind.tz)), pa.int64()))
    if pa.types.is_date(kind):
        return plain_values(pc.cast(pc.cast(column, pa.date32()), pa.int32()))
    if pa.types.is_time(kind):
        return plain_values(pc.cast(pc.cast(column, pa.time64("us")), pa.int64()))
    if pa.types.is_nested(kind):
        texts = [json.dumps(value, default=str, sort_keys=True) for value in column.to_pylist()]
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        texts = [(value or b"").hex() for value in column.to_pylist()]
    else:
        texts = pc.cast(column, pa.large_string()).fill_null("").to_pylist()
    return pd.util.hash_array(np.array(texts, dtype=object))


def digest(table):
    """Row count and digest of an Arrow table."""
    sums = [int(row_hashes(table, lane).sum(dtype=np.uint64)) for lane in (1, 2)]
    return {"rows": table.num_rows, "digest": "".join(f"{value:016x}" for value in sums)}


def add(first, second):
    """The digest of two tables together."""
    halves = [(int(d["digest"][:16], 16), int(d["digest"][16:], 16)) for d in (first, second)]
    sums = [(a + b) % 2**64 for a, b in zip(*halves)]
    return {"rows": first["rows"] + second["rows"], "digest": "".join(f"{value:016x}" for value in sums)}


EMPTY = {"rows": 0, "digest": "0" * 32}
