"""The same job by Timelake 0.7.0: `make` appends the rows of readings.py, `maintain` compacts them and says what it took."""

import argparse
import json
import pathlib
import resource
import shutil
import sys
import time

import timelake

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))


def folder_bytes(folder, newer_than=0):
    files = [file for file in pathlib.Path(folder).rglob("*.parquet") if file.stat().st_mtime > newer_than]
    return len(files), sum(file.stat().st_size for file in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "maintain"])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--files", type=int, default=72)
    parser.add_argument("--steps", type=int, default=360)
    parser.add_argument("--exact", action="store_true")
    args = parser.parse_args()
    if args.what == "make":
        from readings import batches

        shutil.rmtree(args.folder, ignore_errors=True)
        lake = timelake.Lake(args.folder)
        table = None
        for batch in batches(args.files, steps=args.steps, exact=args.exact):
            if table is None:
                table = lake.create_table("iot.readings", batch.schema, time_column="time", series_key=["name"],
                                          chunk="day", dedup=True, ingest_time=False)
            table.append(batch, maintain=False)
        print(json.dumps(dict(zip(("files", "bytes"), folder_bytes(args.folder)))))
        return
    table = timelake.Lake(args.folder).table("iot.readings")
    begun, clock = time.time(), time.perf_counter()
    table.maintain(compact=True, retention=False, expire=False, rollups=False)
    wall = time.perf_counter() - clock
    used = resource.getrusage(resource.RUSAGE_SELF)
    files, size = folder_bytes(args.folder, begun)
    print(json.dumps({"wall": round(wall, 2), "cpu": round(used.ru_utime + used.ru_stime, 2),
                      "rssMb": used.ru_maxrss // 1024, "files": files, "bytes": size}))


if __name__ == "__main__":
    main()
