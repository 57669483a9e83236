"""Spark with Iceberg on a table of a REST catalog, or of Iceberg's JDBC catalog in PostgreSQL, whose files are in Azurite. Reads commands from standard input, a JSON object a line, and
answers each with a JSON object a line:

    {"do": "create"}                      an empty table of many types, by day, ordered by name and time
    {"do": "append", "first": 0, "count": 3}   so many commits of 20 rows over three days, ids from `first` on
    {"do": "rows"}                        how many rows there are and the sum of their hashes
    {"do": "metadata"}                    what Spark's metadata tables say
    {"do": "statistics"}                  statistics files of the table, and what the optimizer knows of its columns
    {"do": "stream"}                      ids that a stream sees that goes on where the last one ended, sorted
"""

import argparse
import json
import os
import sys
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

CREATE = """create table {table} (
    id bigint not null, name string, time timestamp, day date, value double, small float, count int, flag boolean,
    price decimal(18, 4), raw binary, tags array<string>, place struct<lat: double, lon: double>, more map<string, int>)
  using iceberg partitioned by (days(time)) tblproperties ('format-version' = '2', 'write.distribution-mode' = 'none')"""
ROWS = """insert into {table} select {first} + id, concat('series-', id % 7),
    timestamp'2026-10-01 00:00:00' + make_interval(0, 0, 0, int(id % 3), int(id % 24), int(id), 0), date_add(date'2026-10-01', int(id)),
    if(id % 5 = 0, null, if(id % 11 = 0, double('NaN'), id / 3d)), float(id) / 7, if(id % 4 = 0, null, int(id)), id % 2 = 0,
    cast(id * 1.2345 as decimal(18, 4)), cast(concat('raw-', id) as binary), array('a', concat('b', id)),
    named_struct('lat', id / 2d, 'lon', if(id % 6 = 0, null, id * 2d)), map('k', int(id), 'l', null)
  from range({count})"""
HASHED = """select count(*), sum(cast(xxhash64(id, name, time, day, value, small, count, flag, price, raw, tags, place,
    array_sort(map_keys(more)), more['k'], more['l']) as decimal(38, 0))) from {table}"""


def catalog(options):
    at = urlsplit(options.uri)
    if at.scheme == "http":
        return {"type": "rest", "uri": options.uri}
    return {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:postgresql://{at.hostname}:{at.port}{at.path}",
        "jdbc.user": at.username,
        "jdbc.password": at.password,
        "jdbc.schema-version": "V1",
        "warehouse": options.warehouse,
    }


def session(options):
    # Spark has an API of its log of its own.
    parts = [part for part in options.class_path.split(":") if "slf4j" not in part]
    jar = next(part for part in parts if "iceberg-spark-runtime" in part)
    of = "spark.sql.catalog.lake"
    settings = {
        "spark.jars": jar,
        "spark.driver.extraClassPath": ":".join(parts),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        of: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{of}.{key}": value for key, value in catalog(options).items()},
        f"{of}.cache-enabled": "false",
        f"{of}.io-impl": "org.apache.iceberg.rest.AzuriteFileIO",
        f"{of}.azurite.endpoint": options.azurite,
        f"{of}.azurite.account": options.account,
        f"{of}.azurite.key": options.key,
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Table:
    def __init__(self, spark, name, folder):
        self.spark, self.name, self.folder = spark, name, folder

    def create(self, _):
        namespace = self.name.rsplit(".", 1)[0]
        self.spark.sql(f"create namespace if not exists {namespace}")
        self.spark.sql(CREATE.format(table=self.name))
        self.spark.sql(f"alter table {self.name} write ordered by name, time")
        return {}

    def append(self, order):
        for commit in range(order["count"]):
            self.spark.sql(ROWS.format(table=self.name, first=order["first"] + 20 * commit, count=20))
        return {}

    def rows(self, _):
        count, hashes = self.spark.sql(HASHED.format(table=self.name)).first()
        return {"rows": count, "hash": str(hashes)}

    def metadata(self, _):
        def table(name, columns):
            return [list(row) for row in self.spark.sql(f"select {columns} from {self.name}.{name}").collect()]

        return {
            "files": table("files", "file_path, record_count, file_size_in_bytes"),
            "entries": table("entries", "status, sequence_number, data_file.file_path"),
            "operations": [row[0] for row in table("snapshots order by committed_at", "operation")],
            "partitions": sorted(table("partitions", "cast(partition.time_day as string), record_count, file_count")),
        }

    def statistics(self, _):
        load = self.spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        files = load(self.spark._jsparkSession, self.name).statisticsFiles()
        # Only then the optimizer asks for them.
        self.spark.conf.set("spark.sql.cbo.enabled", "true")
        plan = self.spark.table(self.name)._jdf.queryExecution().optimizedPlan()
        return {
            "files": [{"snapshot": file.snapshotId(), "path": file.path()} for file in files],
            "optimizer": plan.stats().attributeStats().toString(),
        }

    def stream(self, _):
        seen = []
        rows = self.spark.readStream.format("iceberg").load(self.name)
        query = (
            rows.select("id")
            .writeStream.trigger(availableNow=True)
            .option("checkpointLocation", os.path.join(self.folder, "checkpoint"))
            .foreachBatch(lambda batch, _: seen.extend(row[0] for row in batch.collect()))
            .start()
        )
        query.awaitTermination()
        return {"ids": sorted(seen)}


def main():
    parser = argparse.ArgumentParser()
    for option in ["--uri", "--warehouse", "--azurite", "--account", "--key", "--class-path", "--table", "--folder"]:
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    # What Spark prints goes where errors go.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = session(options)
    table = Table(spark, f"lake.{options.table}", options.folder)
    for line in sys.stdin:
        order = json.loads(line)
        answers.write(json.dumps(getattr(table, order["do"])(order)) + "\n")
        answers.flush()
    spark.stop()


main()
