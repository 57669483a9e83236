"""The tools' own test: a digest or a check that cannot fail would make every test that uses it worthless."""

import copy
import datetime
import json
import os
import socket
import subprocess
import tempfile
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import check_demo
import check_invariants as check
import rows
import sidecars
from lake import answer
from sources import entries_of


def main():
    tests = [value for name, value in sorted(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
    answer({"ok": True, "tests": len(tests)})


def table(**columns):
    return pa.table(columns)


def differ(first, second):
    assert rows.digest(first)["digest"] != rows.digest(second)["digest"], (first, second)


def same(first, second):
    assert rows.digest(first) == rows.digest(second), (first, second)


def test_a_digest_ignores_order_and_layout():
    first = table(a=[1, 2, None], b=["x", None, "z"])
    same(first, first.take([2, 0, 1]))
    same(first, first.select(["b", "a"]))
    same(first, pa.concat_tables([first.slice(0, 1), first.slice(1)]))
    parts = rows.add(rows.digest(first.slice(0, 2)), rows.digest(first.slice(2)))
    assert parts == rows.digest(first)


def test_a_digest_ignores_width_of_types():
    first = pa.table({"a": pa.array([1, -2], pa.int32()), "b": pa.array([0.5, None], pa.float32())})
    same(first, pa.table({"a": pa.array([1, -2], pa.int64()), "b": pa.array([0.5, None], pa.float64())}))
    same(table(s=pa.array(["x"], pa.string())), table(s=pa.array(["x"], pa.large_string())))


def test_a_digest_sees_every_change():
    first = table(a=[1, 2], b=["x", "y"])
    differ(first, table(a=[2, 1], b=["x", "y"]))  # two values of one column swapped
    differ(first, table(a=[1, 3], b=["x", "y"]))
    differ(first, table(a=[1, 2], c=["x", "y"]))  # another name
    differ(table(a=[1, 1, 2]), table(a=[1, 2, 2]))  # another row doubled
    differ(table(s=[""]), table(s=pa.array([None], pa.string())))
    differ(table(s=["a\0"]), table(s=["a"]))
    differ(table(f=[0.0]), table(f=[-0.0]))
    differ(table(f=[float("nan")]), table(f=pa.array([None], pa.float64())))
    differ(table(b=[False]), table(b=pa.array([None], pa.bool_())))
    differ(table(n=[0]), table(n=pa.array([None], pa.int64())))


def test_a_digest_sees_nested_values():
    def nested(values):
        return pa.table({"s": pa.array(values, pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]))})

    differ(nested([{"x": 1, "y": ["a"]}, {"x": 2, "y": None}]), nested([{"x": 2, "y": ["a"]}, {"x": 1, "y": None}]))
    differ(nested([None]), nested([{"x": None, "y": None}]))
    differ(nested([{"x": 1, "y": []}]), nested([{"x": 1, "y": None}]))


def test_a_descent_is_found_under_every_direction():
    def descent(values, descending=False, nulls_first=True):
        return check.first_descent([check.rank(pa.chunked_array([values]), descending, nulls_first)], len(values))

    assert descent([1, 1, 3]) is None
    assert descent([1, 3, 2]) == 1
    assert descent([3, 2, 2], descending=True) is None
    assert descent([2, 3], descending=True) == 0
    assert descent([None, 1]) is None
    assert descent([1, None]) == 0
    assert descent([1, None], nulls_first=False) is None
    assert descent([None, 3, 1], descending=True) is None
    assert descent([float("-inf"), -0.0, 0.0, float("nan")]) is None
    assert descent([0.0, -0.0]) == 0
    assert descent([-float("nan"), float("-inf")]) is None
    assert descent(["a", "a\0", "b", "é", "日"]) is None
    assert descent([False, True]) is None
    assert descent([True, False]) == 0


def test_the_second_column_counts_within_ties_only():
    first = np.array([1, 1, 2])
    assert check.first_descent([first, np.array([1, 2, 0])], 3) is None
    assert check.first_descent([first, np.array([2, 1, 0])], 3) == 0


def entry(path, records=1, size=10, content=0, status=1, snapshot=1):
    file = SimpleNamespace(file_path=path, record_count=records, file_size_in_bytes=size, content=content)
    return SimpleNamespace(data_file=file, status=status, snapshot_id=snapshot)


def test_metadata_checks_find_what_is_wrong():
    summary = {"total-data-files": "2", "total-records": "2", "total-files-size": "20", "total-delete-files": "0"}
    snapshot = SimpleNamespace(
        snapshot_id=7, manifest_list="l", summary=SimpleNamespace(additional_properties=summary)
    )
    good = [entry("a"), entry("b")]
    assert list(check.live_twice(snapshot, good)) == []
    assert list(check.wrong_totals(snapshot, good)) == []
    assert len(list(check.live_twice(snapshot, [entry("a"), entry("a")]))) == 1
    assert [text.split(" ")[4] for text in check.wrong_totals(snapshot, [entry("a"), entry("b", records=2)])] == [
        "total-records"
    ]
    gone = check.Files(SimpleNamespace(new_input=lambda path: SimpleNamespace(exists=lambda: path != "l")))
    assert check.reachable_manifests(snapshot, gone) == ([], ["l"])
    twice = {"m": [entry("a", status=2, snapshot=1), entry("a", status=2, snapshot=2)]}
    assert len(list(check.replaced_twice(twice))) == 1


def test_changelog_entries_are_read_whole():
    text = "junk\nfoo (1.2-3) unstable; urgency=low\n\n  * One\n  * Two\n\n -- A B <a@b.c>  Fri, 02 Jan 2009 03:04:05 +0100\n"
    (found,) = entries_of(text.splitlines(keepends=True))
    assert found["ts"] == datetime.datetime(2009, 1, 2, 2, 4, 5, tzinfo=datetime.timezone.utc)
    assert (found["package"], found["body"], found["by"]["email"]) == ("foo", "* One\n  * Two", "a@b.c")


def refused(call, *arguments):
    try:
        call(*arguments)
    except AssertionError:
        return
    raise RuntimeError(f"nothing was found in {arguments}")


def test_a_demo_that_answers_wrongly_is_found():
    def told(days):
        return "".join(f"readings  day={day}  216\n" for day in range(days))

    names = ["filesBefore", "filesAfter", "rowsBefore", "rowsAfter", "duplicatesDropped"]
    answer = {
        "ok": True,
        "tables": [
            {"table": "demo.readings", **dict(zip(names, [216, 3, 100, 90, 10]))},
            {"table": "demo.logs", **dict(zip(names, [80, 2, 50, 50, 0]))},
        ],
    }
    check_demo.check_answer(f"{{}}\n{json.dumps(answer)}\n", told(3))
    refused(check_demo.check_answer, "", told(3))
    refused(check_demo.check_answer, json.dumps({**answer, "ok": False}), told(3))
    refused(check_demo.check_answer, json.dumps({**answer, "tables": answer["tables"][:1]}), told(3))
    refused(check_demo.check_answer, json.dumps(answer), told(2))
    for name, value in [("filesBefore", 199), ("filesAfter", 216), ("filesAfter", 4), ("rowsAfter", 89), ("rowsBefore", 101)]:
        wrong = copy.deepcopy(answer)
        wrong["tables"][0][name] = value
        refused(check_demo.check_answer, json.dumps(wrong), told(3))


def test_what_a_demo_leaves_is_found():
    with tempfile.TemporaryDirectory() as folder:
        check_demo.check_nothing_left({}, folder, 0)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            seen = {inode: found for inode, found in check_demo.listening().items() if found == port}
            assert check_demo.sockets_of([os.getpid()]) >= set(seen) and len(seen) == 1, seen
            refused(check_demo.check_nothing_left, seen, folder, 0)
        check_demo.check_nothing_left(seen, folder, 0)
        left = subprocess.Popen(["sleep", "60"])
        refused(check_demo.check_nothing_left, {}, folder, 0)
        left.kill()
        left.wait()
        os.mkdir(os.path.join(folder, "firn-demo-x"))
        refused(check_demo.check_nothing_left, {}, folder, 0)


def test_a_filter_has_what_was_put_into_it_and_little_else():
    assert sidecars.xxh64(b"") == 0xEF46DB3751D8E999
    assert sidecars.xxh64(b"abc") == 0x44BC2CF5AD770999
    bits = bytearray(32 * 8)
    for value in range(100):
        code = sidecars.xxh64(str(value).encode())
        block = ((code >> 32) * 8) >> 32
        for place, salt in enumerate(sidecars.SALT):
            bit = (((code & 0xFFFFFFFF) * salt) & 0xFFFFFFFF) >> 27
            at = block * 32 + place * 4 + bit // 8
            bits[at] |= 1 << (bit % 8)
    has = [sidecars.may_have(bytes(bits), str(value).encode()) for value in range(1100)]
    assert all(has[:100]) and sum(has[100:]) < 200, sum(has[100:])


def test_paths_have_one_form():
    assert sidecars.canonical("file:///a/b.parquet") == sidecars.canonical("/a/b.parquet") == "/a/b.parquet"
    own = "/t/data/0123456789abcdef0123456789abcdef-6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f.parquet"
    assert sidecars.OWN.search(own).group(1) == "6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f"
    assert not sidecars.OWN.search("/t/data/00000-0-6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f.parquet")


if __name__ == "__main__":
    main()
