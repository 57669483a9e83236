"""Firn and its peers on the same rows, in turns: each round runs every program once over a fresh copy of its input.

    pip install timelake==0.7.0 'pyiceberg[sql-sqlite,pyarrow,pyiceberg-core]' duckdb
    python benches/compare.py --folder /tmp/compare --rounds 5 [--exact | --files 864 --steps 30] [--programs firn,timelake,duckdb]

Firn and DuckDB read files that PyIceberg wrote with its defaults, Timelake those that it wrote itself. Every figure is of the whole
process, start, planning and commit included, as the kernel counts it: wall and CPU seconds, highest resident memory, bytes written. Prints
a line a run and the medians, each with its ratio to Timelake's."""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = """catalog: {{ type: sql, uri: "sqlite:///{folder}/catalog.db", name: lake, warehouse: "file://{folder}/warehouse" }}
compaction: {{ {more} }}
ingestion:
  datasets:
    - {{ name: readings, table: iot.readings, seriesColumns: [name], timeColumn: time, dedup: true }}
"""


def parquet(folder, newer_than=0):
    return [file for file in pathlib.Path(folder).rglob("*.parquet") if file.stat().st_mtime > newer_than]


def measured(command):
    """Runs a command and says what it took."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command} ended with {status}:\n{errors.decode()[-2000:]}")
    return {
        "wall": time.perf_counter() - begun,
        "cpu": used.ru_utime + used.ru_stime,
        "rssMb": used.ru_maxrss / 1024,
    }


class Program:
    """A program, the folder of its input, and how it is run on a copy of that."""

    def __init__(self, args, name):
        self.args, self.name = args, name
        self.input = args.folder / ("timelake" if name == "timelake" else "pyiceberg")
        # Paths of tables are absolute: the copy is made at a place of its own, and the input is written there first.
        self.work = args.folder / f"work-{self.input.name}"

    def make(self):
        if self.input.exists():
            return
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        exact = ["--exact"] if self.args.exact else []
        sizes = ["--files", str(self.args.files), "--steps", str(self.args.steps), *exact]
        if self.name == "timelake":
            command = [sys.executable, HERE / "peers/by_timelake.py", "make", "--folder", self.work, *sizes]
        else:
            command = [sys.executable, HERE / "make_readings.py", "--folder", self.work, "--partition-by-day", *sizes]
        subprocess.run(command, check=True)
        self.work.rename(self.input)

    def run(self):
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.input, self.work)
        os.sync()
        begun = time.time()
        if self.name == "firn":
            config = self.work / "firn.yaml"
            config.write_text(CONFIG.format(folder=self.work, more=self.args.compaction))
            command = [self.args.firn, "--format", "json", "compact", "--config", config, "--dataset", "readings"]
        elif self.name == "timelake":
            command = [sys.executable, HERE / "peers/by_timelake.py", "maintain", "--folder", self.work]
        else:
            command = [sys.executable, HERE / "peers/by_duckdb.py", "--folder", self.work]
        figures = measured([str(part) for part in command])
        written = parquet(self.work, begun)
        figures |= {"files": len(written), "writtenMb": sum(file.stat().st_size for file in written) / 1e6}
        return {name: round(value, 2) for name, value in figures.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=72)
    parser.add_argument("--steps", type=int, default=360)
    parser.add_argument("--exact", action="store_true", help="values of full precision")
    parser.add_argument("--programs", default="firn,timelake,duckdb")
    parser.add_argument("--firn", default=HERE.parent / "target/release/firn")
    parser.add_argument("--compaction", default="", help="keys of the section, as 'memoryMb: 256'")
    args = parser.parse_args()
    programs = [Program(args, name) for name in args.programs.split(",")]
    for program in programs:
        program.make()
    results = {program.name: [] for program in programs}
    for number in range(args.rounds):
        for program in programs:
            figures = program.run()
            results[program.name].append(figures)
            print(json.dumps({"round": number + 1, "program": program.name, **figures}), flush=True)
    if not args.rounds:
        return
    medians = {
        name: {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
        for name, runs in results.items()
    }
    for name, figures in medians.items():
        base = medians.get("timelake", figures)
        ratios = {figure: round(figures[figure] / base[figure], 2) for figure in ("wall", "cpu", "rssMb", "writtenMb")}
        print(json.dumps({"program": name, "medians": figures, "toTimelake": ratios}))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
