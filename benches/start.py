"""How long the packaged handler takes from its start to its first answer.

    firn package --out firn.zip && python3 benches/start.py firn.zip [starts]

Unpacks the package into an empty folder, starts its handler as the Functions host does (working directory the package, the port in the
environment, nothing else from this shell), asks for `/` until something answers, and prints the times in milliseconds and the sizes."""

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
    package, starts = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 15
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(package) as archive:
            archive.extractall(folder)
        handler = os.path.join(folder, "handler")
        os.chmod(handler, 0o755)
        times = [one_start(folder) for _ in range(starts)]
        size = os.path.getsize(handler)
    print(
        json.dumps(
            {
                "zipBytes": os.path.getsize(package),
                "handlerBytes": size,
                "firstMs": round(times[0], 1),
                "medianMs": round(statistics.median(times), 1),
                "mostMs": round(max(times), 1),
            }
        )
    )


if __name__ == "__main__":
    main()
