"""Digest of the rows of a table as DuckDB reads them; it must equal what digest.py says.

A REST catalog is asked by DuckDB itself. Of an SQL catalog only the entry is read, through PyIceberg: metadata, manifests and data files are
read by DuckDB alone.
"""

import os

import duckdb
import pyarrow as pa

import rows
from lake import answer, arguments, load_table

EXTENSIONS = ["httpfs", "avro", "azure", "iceberg"]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--snapshot", type=int, help="default: the current one")
    args = parser.parse_args()

    connection = connect(args.connection_string)
    if args.catalog.startswith("http"):
        connection.execute(f"ATTACH '' AS rest (TYPE iceberg, ENDPOINT '{args.catalog}', AUTHORIZATION_TYPE 'none')")
        at = f" AT (VERSION => {args.snapshot})" if args.snapshot else ""
        query = f"SELECT * FROM rest.{args.table}{at}"
    else:
        at = f", snapshot_from_id={args.snapshot}" if args.snapshot else ""
        query = f"SELECT * FROM iceberg_scan('{load_table(args).metadata_location}'{at})"
    found = connection.execute(query).to_arrow_table()
    answer({**rows.digest(pa.table(found)), "snapshot_id": args.snapshot})


def connect(connection_string):
    """DuckDB with the extensions that its packages bring; nothing is fetched."""
    packages = os.path.dirname(os.path.dirname(duckdb.__file__))
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute("SET TimeZone='UTC'")
    for name in EXTENSIONS:
        file = f"duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        connection.execute(f"LOAD '{os.path.join(packages, file)}'")
    if connection_string:
        # DuckDB takes abfss:// to the DFS endpoint, which has to be named beside the blob endpoint.
        parts = dict(part.split("=", 1) for part in connection_string.strip(";").split(";"))
        parts.setdefault("DfsEndpoint", parts["BlobEndpoint"])
        text = ";".join(f"{name}={value}" for name, value in parts.items())
        connection.execute(f"CREATE SECRET lake (TYPE azure, CONNECTION_STRING '{text}')")
    return connection


if __name__ == "__main__":
    main()
