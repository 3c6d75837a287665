"""`manage.py simulate node`: one node of Maelstrom (eventing/sim/maelstrom.py) on standard input and output."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import BinaryIO

import msgspec

from eventing.core.decoding import Undecodable, json_reader
from eventing.sim.maelstrom import MaelstromMessage, MaelstromNode

WORKLOADS = ("broadcast", "g-set", "pn-counter")
READ_BYTES = 1 << 16
LINE_BYTES_MAX = 1 << 24  # bound: bytes of one line; a longer one ends the node
IDLE_S = 1.0
"""The longest wait for input."""


class MaelstromLineTooLong(Exception):
    """Raised for a line of more than LINE_BYTES_MAX."""


def maelstrom_node_run(source: BinaryIO, target: BinaryIO, *, seed: int, workload: str | None) -> None:
    """Run a node until its input ends.

    Args:
        source, target: lines in and out; both are used as file descriptors.
        seed: draws, with the node's name, all that is left to chance.
        workload: one of WORKLOADS; None: found out.
    """
    node = MaelstromNode(Random, seed, workload)
    read, encoder = json_reader(MaelstromMessage), msgspec.json.Encoder()

    def write(messages: list[MaelstromMessage]) -> None:
        for message in messages:
            target.write(encoder.encode(message) + b"\n")
        target.flush()

    for lines in _lines(source.fileno(), node):
        for line in lines:
            if not line.strip():
                continue
            try:
                message = read(line)
            except Undecodable as error:
                print(f"A line is no message of Maelstrom and is ignored: {error}.", file=sys.stderr)
            else:
                write(node.handle(message, time.time()))
        write(node.tick(time.time()))


def _lines(descriptor: int, node: MaelstromNode) -> Iterator[list[bytes]]:
    """The lines that were read, or none when the node has something to do."""
    rest = b""
    while True:
        due_at = node.due_at()
        wait_s = IDLE_S if due_at is None else min(max(0.0, due_at - time.time()), IDLE_S)
        if not select.select([descriptor], [], [], wait_s)[0]:
            yield []
            continue
        read = os.read(descriptor, READ_BYTES)
        if not read:
            return
        *lines, rest = (rest + read).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise MaelstromLineTooLong
        yield lines
