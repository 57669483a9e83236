"""Reads a Puffin file of theta sketches with the DataSketches library, as any other program would.

usage: read_sketches.py FILE [N]

Prints for each blob what it says of itself and what the library reads out of it. With N also the sketch that the library itself makes of the
longs 0 to N-1, so that it can be compared byte by byte.
"""

import json
import struct
import sys

from datasketches import compact_theta_sketch, theta_union, update_theta_sketch

with open(sys.argv[1], "rb") as file:
    content = file.read()
assert content[:4] == b"PFA1" and content[-4:] == b"PFA1", "no Puffin file"
length, flags = struct.unpack("<iI", content[-12:-4])
assert flags == 0, "the footer is compressed"
start = len(content) - 12 - length
assert content[start - 4 : start] == b"PFA1", "the footer does not begin as one does"
footer = json.loads(content[start : start + length])

blobs = []
union = theta_union(12)
for blob in footer["blobs"]:
    data = content[blob["offset"] : blob["offset"] + blob["length"]]
    sketch = compact_theta_sketch.deserialize(data)
    union.update(sketch)
    blobs.append(
        {
            "type": blob["type"],
            "fields": blob["fields"],
            "snapshot": blob["snapshot-id"],
            "ndv": blob["properties"]["ndv"],
            "estimate": sketch.get_estimate(),
            "lower": sketch.get_lower_bound(3),
            "upper": sketch.get_upper_bound(3),
            "ordered": sketch.is_ordered(),
            "hex": data.hex(),
        }
    )
answer = {"blobs": blobs, "properties": footer["properties"], "union": union.get_result().get_estimate()}
if len(sys.argv) > 2:
    own = update_theta_sketch(12)
    for value in range(int(sys.argv[2])):
        own.update(value)
    answer["own"] = own.compact().serialize().hex()
print(json.dumps(answer))
