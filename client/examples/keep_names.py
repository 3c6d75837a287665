"""Keep a file of all names of a domain current: an export, then the events of `domain.admin`.

    python client/examples/keep_names.py https://home.example names.json

The token (environment variable HERALD_TOKEN) is one that oversees the domain. The file is JSON: {"cursor", "names":
{ID: {"id", "name", "title", "home", "version"}}}. It is replaced in one step, with the cursor that it is valid at, so the next
start continues where this one stopped, and an event that is read twice changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
from herald import Client, Gap

MEMBERS = ("id", "name", "title", "home", "version")
State = dict[str, Any]


def export(url: str, token: str) -> State:
    """All names, and the cursor that they are valid at. Raises httpx.HTTPError, and RuntimeError for an answer cut off."""
    names: dict[str, Any] = {}
    with httpx.stream(
        "GET", f"{url}/api/v1/admin/names", headers={"Authorization": f"Bearer {token}"}, timeout=60
    ) as answer:
        answer.raise_for_status()
        for line in lines(answer.iter_bytes()):
            row = json.loads(line)
            if "cursor" in row:
                return {"cursor": row["cursor"], "names": names}
            names[row["id"]] = row
    raise RuntimeError("The export was cut off.")


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of JSON Lines. They end at a line feed alone: text in JSON may hold what else ends lines, such as U+2028."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def applied(names: dict[str, Any], event: dict[str, Any]) -> bool:
    """Take over an event of `domain.admin`; whether it changed anything."""
    kind, rp = event["type"], event["data"].get("rp")
    if kind == "io.herald.rp.deleted":
        return names.pop(rp["id"], None) is not None
    if kind in ("io.herald.rp.created", "io.herald.rp.changed"):
        row = {member: rp[member] for member in MEMBERS}
        if names.get(rp["id"], {"version": 0})["version"] <= rp["version"] and names.get(rp["id"]) != row:
            names[rp["id"]] = row
            return True
    return False


def begin(url: str, token: str, path: Path) -> State:
    """Read the state in the file, or export the names if there is no file yet."""
    state: State = json.loads(path.read_text()) if path.exists() else export(url, token)
    write(path, state)
    return state


def write(path: Path, state: State) -> None:
    """Replace the file in one step."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(state, indent=1, sort_keys=True))
    fresh.replace(path)


async def keep(url: str, token: str, path: Path) -> None:
    """Keep the file current until cancelled; connections that are lost are made again by the client."""
    state = await asyncio.to_thread(begin, url, token, path)
    async with Client(url, token=token) as client:
        while True:
            async for item in client.subscribe("domain.admin", from_=state["cursor"]):
                if isinstance(item, Gap):  # what is missing nobody tells any more: begin anew
                    state = await asyncio.to_thread(export, url, token)
                    write(path, state)
                    break
                state["cursor"] = item.cursor
                if applied(state["names"], item.event):
                    write(path, state)


if __name__ == "__main__":
    asyncio.run(keep(sys.argv[1].rstrip("/"), os.environ["HERALD_TOKEN"], Path(sys.argv[2])))
