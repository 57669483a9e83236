"""Unpacks a zip file as the platform does, with modes, and prints what is in it. Another reader than the program that wrote it."""

import json
import os
import sys
import zipfile

archive, folder = sys.argv[1], sys.argv[2]
entries = []
with zipfile.ZipFile(archive) as package:
    damaged = package.testzip()
    for info in package.infolist():
        mode = info.external_attr >> 16
        entries.append({"name": info.filename, "mode": oct(mode & 0o777), "time": list(info.date_time)})
        path = package.extract(info, folder)
        os.chmod(path, mode & 0o777)
print(json.dumps({"damaged": damaged, "entries": entries}))
