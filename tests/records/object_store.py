"""An object store for tests: moto's S3 over HTTP on loopback, as a thread of the test.

What is stored stays in the process when a store stops, as on a disk: each test takes a folder of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from moto.server import ThreadedMotoServer

from spark.locations import Location

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_EC2_METADATA_DISABLED": "true"}


@dataclass
class ObjectStore:
    """A running store with the bucket `herald`."""

    port: int

    def url(self, folder: str) -> str:
        """Return the URL of a folder in the bucket."""
        return f"s3://herald/{folder}?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{self.port}"

    def names(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder."""
        place = Location(self.url(folder))
        found = place.entries(place.root, recursive=True)
        return [entry.path.removeprefix(f"{place.root}/") for entry in found if entry.is_file]


@contextmanager
def object_store(port: int = 0) -> Iterator[ObjectStore]:
    """Run a store, on a free port or on one that an earlier store had; needs CREDENTIALS in the environment."""
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    try:
        made = ObjectStore(server.get_host_and_port()[1])
        Location(f"{made.url('')}&allow_bucket_creation=true").filesystem.create_dir("herald")
        yield made
    finally:
        server.stop()
