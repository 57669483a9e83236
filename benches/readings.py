"""The rows of the benchmarks: readings of a fleet of trucks, one row a truck and step, shaped like TSBS's IoT data.

Five tags of few values; position as a walk in steps of 10^-5 degrees; five measurements in small domains. Every batch covers all trucks over
a stretch of time and is sorted by (name, time) as text and number, unless it is sorted by (time, name) or shuffled.
"""

import numpy as np
import pyarrow as pa

TAGS = ["region", "model", "fleet", "driver", "firmware"]
MEASUREMENTS = {"elevation": 5000, "velocity": 100, "heading": 360, "fuel": 100, "load": 1000}
VALUES = ["latitude", "longitude", *MEASUREMENTS]
EPOCH = 1_767_225_600  # 2026-01-01, seconds


def batches(files, series=400, steps=360, seconds=10, exact=False, shuffle=False, by_time=False):
    """Yields one pyarrow table a file. `exact`: values have full precision, so that next to nothing repeats."""
    random = np.random.default_rng(7)
    count = series * steps
    truck = np.repeat(np.arange(series), steps)
    step = np.tile(np.arange(steps), series)
    in_time = np.argsort(step, kind="stable")
    columns = {"name": pa.array([f"truck_{n:05}" for n in range(series)]).take(pa.array(truck))}
    for tag in TAGS:
        words = pa.array([f"{tag}_{n}" for n in range(20)])
        columns[tag] = words.take(pa.array(random.integers(0, 20, series)[truck]))
    start = {value: random.uniform(-90, 90, series) for value in ("latitude", "longitude")}
    start |= {name: random.uniform(0, limit, series) for name, limit in MEASUREMENTS.items()}
    for number in range(files):
        since = (number * steps + step) * seconds + EPOCH
        columns["time"] = pa.array(since * 1_000_000, pa.timestamp("us"))
        for value in VALUES:
            scale = 1e-4 if value in ("latitude", "longitude") else MEASUREMENTS[value] / 100
            walk = np.cumsum(random.standard_normal((series, steps)) * scale, axis=1) + start[value][:, None]
            start[value] = walk[:, -1]
            flat = walk.reshape(count)
            if not exact:
                # Measurements stay within their domain, as gauges do.
                flat = np.round(flat, 5) if value in ("latitude", "longitude") else np.round(np.abs(flat) % MEASUREMENTS[value])
            columns[value] = pa.array(flat)
        batch = pa.table({name: columns[name] for name in ["name", "time", *TAGS, *VALUES]})
        if by_time:
            batch = batch.take(pa.array(in_time))
        if shuffle:
            batch = batch.take(pa.array(random.permutation(count)))
        yield batch
