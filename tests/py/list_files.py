"""Every file of the table's warehouse, whether a table needs it or not: {"files": {name: bytes}}."""

import os
from urllib.parse import urlsplit

from azure.storage.blob import BlobServiceClient

from lake import answer, arguments


def main():
    args = arguments(__doc__).parse_args()
    at = urlsplit(args.warehouse)
    answer({"files": dict(blobs(args, at.username) if args.connection_string else local_files(at.path))})


def blobs(args, container):
    """Files of the container."""
    client = BlobServiceClient.from_connection_string(args.connection_string).get_container_client(container)
    return ((blob.name, blob.size) for blob in client.list_blobs())


def local_files(folder):
    """Files of the folder."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            yield os.path.relpath(path, folder), os.path.getsize(path)


if __name__ == "__main__":
    main()
