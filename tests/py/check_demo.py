"""Runs `firn demo` and checks what it says and what it leaves.

    python3 tests/py/check_demo.py target/debug/firn [options of the demo]

The last line of standard output is the answer of design section 10: two tables at least, one of them 200 small files or more over three
partitions, no row lost. Afterwards no process of the demo runs, nothing listens where it listened, and its temporary folder is empty.

Linux only: processes whose parent ends become children of this one, so that none can hide."""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

PR_SET_CHILD_SUBREAPER = 36
LISTEN = "0A"
# What a server takes to end after it was told to.
GRACE_SECONDS = 10
KEYS = {"table", "filesBefore", "filesAfter", "rowsBefore", "rowsAfter", "duplicatesDropped"}


def children(parent):
    """Processes below one, each with its command; those that ended and were not waited for are waited for if they are our own."""
    parents, commands = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                stat = file.read()
            with open(f"/proc/{name}/cmdline", "rb") as file:
                commands[int(name)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
    found, wanted = {}, {parent}
    while wanted:
        below = {process for process, above in parents.items() if above in wanted and process not in found}
        found.update((process, commands[process]) for process in below)
        wanted = below
    return found


def sockets_of(processes):
    """Inodes of the sockets that processes hold."""
    found = set()
    for process in processes:
        try:
            for name in os.listdir(f"/proc/{process}/fd"):
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{process}/fd/{name}"))
                if match:
                    found.add(match[1])
        except OSError:
            continue
    return found


def listening():
    """Inode -> port of every socket of this machine that listens."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as file:
                lines = file.readlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == LISTEN:
                found[words[9]] = int(words[1].rpartition(":")[2], 16)
    return found


def run(firn, options, temporary):
    """The demo to its end: exit code, standard output, standard error, and sockets that listened meanwhile."""
    environment = {**os.environ, "TMPDIR": temporary}
    demo = subprocess.Popen(
        [firn, "--format", "json", "demo", *options],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )
    told = []

    def tell():
        for line in demo.stderr:
            told.append(line)
            sys.stderr.write(line)

    reader = threading.Thread(target=tell)
    reader.start()
    said = []
    listener = threading.Thread(target=lambda: said.append(demo.stdout.read()))
    listener.start()
    seen = {}
    while demo.poll() is None:
        held = sockets_of({demo.pid, *children(demo.pid)})
        seen.update((inode, port) for inode, port in listening().items() if inode in held)
        time.sleep(0.5)
    # The answer was printed when nothing ran any more, so a process that still holds the pipe is seen below.
    listener.join(GRACE_SECONDS)
    reader.join(GRACE_SECONDS)
    assert said, "somebody still holds the demo's standard output"
    return demo.returncode, said[0], "".join(told), seen


def check_answer(said, told):
    lines = said.splitlines()
    assert lines, "nothing on standard output"
    answer = json.loads(lines[-1])
    assert set(answer) == {"ok", "tables"} and answer["ok"] is True, answer
    tables = answer["tables"]
    assert len(tables) >= 2 and len({table["table"] for table in tables}) == len(tables), answer
    for table in tables:
        assert set(table) == KEYS, table
        assert 0 < table["filesAfter"] < table["filesBefore"], table
        assert table["rowsAfter"] > 0, table
        assert table["rowsBefore"] - table["duplicatesDropped"] == table["rowsAfter"], f"rows are missing: {table}"
    large = [table for table in tables if table["filesBefore"] >= 200]
    assert large, f"no table of 200 small files: {tables}"
    for table in large:
        dataset = table["table"].rpartition(".")[2]
        # The dry run before the merge names each partition.
        partitions = {line.split()[1] for line in told.splitlines() if line.startswith(f"{dataset} ")}
        assert len(partitions) >= 3, f"{dataset} has {partitions}, three partitions were promised"
        assert table["filesAfter"] == len(partitions), f"one file a partition: {table}, {partitions}"
    assert any(table["duplicatesDropped"] > 0 for table in tables), f"no table with dedup: {tables}"
    assert any(table["duplicatesDropped"] == 0 for table in tables), f"no table that keeps every row: {tables}"


def check_nothing_left(seen, temporary, grace=GRACE_SECONDS):
    until = time.monotonic() + grace
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            pass
        processes = children(os.getpid())
        ports = sorted(port for inode, port in listening().items() if inode in seen)
        files = sorted(os.listdir(temporary))
        if not processes and not ports and not files:
            return
        if time.monotonic() > until:
            raise AssertionError(f"left behind: processes {processes}, listening ports {ports}, temporary files {files}")
        time.sleep(0.1)


def main():
    firn, options = os.path.abspath(sys.argv[1]), sys.argv[2:]
    assert ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "prctl"
    with tempfile.TemporaryDirectory(prefix="check-demo-") as temporary:
        # A server of the demo may run as another user.
        os.chmod(temporary, 0o755)
        code, said, told, seen = run(firn, options, temporary)
        assert code == 0, f"the demo ended with {code}: {said}"
        check_answer(said, told)
        assert len(seen) >= 3, f"Azurite, host and handler listen while the demo runs; seen: {sorted(seen.values())}"
        check_nothing_left(seen, temporary)
    print(said.splitlines()[-1])


if __name__ == "__main__":
    main()
