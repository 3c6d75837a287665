"""Detection of how a loop over a subscription was left: by `break` or `return`, which means that its item is processed,
or by an exception.

Python reports neither to an iterator. A loop drops its iterator when it is left, in either case, and at once (reference
counting); a generator in the iterator's place is closed with GeneratorExit in both cases. What differs is the
instruction at which the loop's frame stands while the iterator is dropped: the one that removes the iterator from the
stack, which `break` and `return` are compiled to, or the one that raised. `left_in_order` reads that.

Errors are always on the safe side: in an interpreter without prompt finalization or with other instructions, through a
generator in between, or in compiled code, no loop counts as left in order, and its last item is handed out again.
"""

from __future__ import annotations

import opcode
import sys
from types import FrameType

# 3.11 to 3.13 remove the iterator by POP_TOP, later ones by POP_ITER.
_REMOVALS = frozenset(opcode.opmap[name] for name in ("POP_TOP", "POP_ITER") if name in opcode.opmap)


def left_in_order(frame: FrameType) -> bool:
    """Return whether `frame`, in which an iterator is just being dropped, leaves its loop by `break` or `return`."""
    at, code = frame.f_lasti, frame.f_code.co_code
    return 0 <= at < len(code) and code[at] in _REMOVALS


def callers() -> frozenset[int]:
    """Return the identities of the frames that the caller runs in: its own, and those that called or awaited it."""
    frame: FrameType | None = sys._getframe(1)
    found = set()
    while frame is not None:
        found.add(id(frame))
        frame = frame.f_back
    return frozenset(found)
