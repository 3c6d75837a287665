"""Number of links that a domain chooses, by the size of its federation. Pure."""

from __future__ import annotations

import msgspec

from eventing.overlay.links import SUSPICIOUS, LinkParameters

CHOSEN_MIN = 3


def link_parameters(domains: int) -> LinkParameters:
    """Return the sizes of the active view in a directory of so many domains.

    Each link costs a request in 8 s. In a small federation, whose administrators know each other, log2 of its size is enough: with 12
    domains, 4 chosen links each and as many accepted ones leave all connected when any three fail. From 64 domains on the sizes are
    those against liars (`overlay/links.py: SUSPICIOUS`).
    """
    chosen = min(SUSPICIOUS.chosen, max(CHOSEN_MIN, (max(domains, 1) - 1).bit_length()))
    if chosen == SUSPICIOUS.chosen:
        return SUSPICIOUS
    return msgspec.structs.replace(SUSPICIOUS, chosen=chosen, near=1)
