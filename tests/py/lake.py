"""The catalog and the file system that every script opens in the same way.

A lake is a catalog (a SQLite file, PostgreSQL or a REST server) and a warehouse: a local folder (file:///…) or a container in Azurite
(abfss://lake@devstoreaccount1.dfs.core.windows.net/…) reached by a connection string.
"""

import argparse
import json
import sys

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog


def arguments(description):
    """A parser with the options that name a table."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--catalog", required=True, help="for example sqlite:////tmp/lake/catalog.db, postgresql://… or http://…")
    parser.add_argument("--catalog-name", default="lake")
    parser.add_argument("--warehouse", required=True, help="file:///… or abfss://…")
    parser.add_argument("--connection-string", help="of Azurite, for an abfss:// warehouse")
    parser.add_argument("--table", required=True, help="namespace.name")
    return parser


def open_catalog(args):
    """The catalog, with the file system that reaches the warehouse."""
    # SQLAlchemy would look for a driver of another name by itself.
    uri = args.catalog.replace("postgresql://", "postgresql+psycopg2://", 1)
    properties = {"uri": uri, "warehouse": args.warehouse}
    if args.connection_string:
        # The only file system of PyIceberg that takes the long abfss:// form together with Azurite.
        properties["py-io-impl"] = "pyiceberg.io.fsspec.FsspecFileIO"
        properties["adls.connection-string"] = args.connection_string
    kind = RestCatalog if args.catalog.startswith("http") else SqlCatalog
    return kind(args.catalog_name, **properties)


def load_table(args):
    """The table as it is now."""
    return open_catalog(args).load_table(args.table)


def snapshot_of(table, args):
    """The snapshot that --snapshot or --branch names, else the current one; None for a table without snapshots."""
    if getattr(args, "snapshot", None):
        return table.metadata.snapshot_by_id(args.snapshot)
    if getattr(args, "branch", None):
        return table.metadata.snapshot_by_name(args.branch)
    return table.metadata.current_snapshot()


def answer(value):
    """Prints the one JSON document that a script gives."""
    json.dump(value, sys.stdout, default=str)
    sys.stdout.write("\n")
