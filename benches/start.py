"""How long the packaged handler takes from its start to its first answer.

    firn package --out firn.zip && python3 benches/start.py firn.zip [--starts 15] [--at-most MS]

Unpacks the package into an empty folder, starts its handler as the Functions host does (working directory the package, the port in the
environment, nothing else from this shell), asks for `/` until something answers, and prints the times in milliseconds and the sizes. With
`--at-most` it ends with 1 when the median is above."""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def one_start(folder):
    port = free_port()
    environment = {"FUNCTIONS_CUSTOMHANDLER_PORT": str(port), "HOME": folder, "PATH": "/nowhere"}
    began = time.perf_counter()
    handler = subprocess.Popen(
        [os.path.join(folder, "handler")], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not answers(port):
            if handler.poll() is not None:
                sys.exit(f"the handler ended with {handler.returncode}")
            time.sleep(0.0005)
        return (time.perf_counter() - began) * 1000
    finally:
        handler.kill()
        handler.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("--starts", type=int, default=15)
    parser.add_argument("--at-most", type=float, metavar="MS")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(asked.package) as archive:
            archive.extractall(folder)
        handler = os.path.join(folder, "handler")
        os.chmod(handler, 0o755)
        times = [one_start(folder) for _ in range(asked.starts)]
        size = os.path.getsize(handler)
    median = statistics.median(times)
    print(
        json.dumps(
            {
                "zipBytes": os.path.getsize(asked.package),
                "handlerBytes": size,
                "firstMs": round(times[0], 1),
                "medianMs": round(median, 1),
                "mostMs": round(max(times), 1),
            }
        )
    )
    if asked.at_most is not None and median > asked.at_most:
        sys.exit(f"the median of {median:.1f} ms is above {asked.at_most:g} ms")


if __name__ == "__main__":
    main()
