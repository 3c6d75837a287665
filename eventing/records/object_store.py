"""Segments in an object store: what a gateway has made is copied there as a whole.

The store shows an object when it is complete, so readers find complete segments only, as in a folder. Credentials are those of the
environment (AWS_ACCESS_KEY_ID and others, or the machine's role), never a part of the URL. pyarrow repeats refused requests for some seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark.locations import Location
from spark.problems import JobProblem

CHUNK_BYTES = 2**20


def upload(file: Path, url: str, name: str) -> None:
    """Copy a segment to its place in the store, over an earlier copy of the same segment.

    Args:
        file: the segment, complete.
        url: HERALD_RECORDS_DIR, an address of pyarrow.
        name: its path below `url`.

    Raises:
        OSError: the store does not answer or refuses it, or is not known to pyarrow.
    """
    place = Location(url)
    path = place.path(name)
    with file.open("rb") as source, _opened(place, path) as target:
        while chunk := source.read(CHUNK_BYTES):
            target.write(chunk)


def _opened(place: Location, path: str) -> Any:
    try:
        if place.is_local:  # file://, as for a mounted store
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        return place.filesystem.open_output_stream(path)
    except JobProblem as problem:
        raise OSError(str(problem)) from problem
