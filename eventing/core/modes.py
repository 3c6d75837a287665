"""Modes of what the domain decides by itself: placement of replicas, routes. Pure.

off: nothing is decided. advise: decisions are computed and shown, and have no effect until people approve them. apply: they are carried
out.
"""

from __future__ import annotations

from typing import Literal

OFF, ADVISE, APPLY = "off", "advise", "apply"
MODES = (OFF, ADVISE, APPLY)
Mode = Literal["off", "advise", "apply"]


def mode_in_force(setting: str, domain: str, rp: str) -> str:
    """Return the mode for an RP.

    Args:
        setting: HERALD_PLACEMENT or HERALD_ROUTES.
        domain: the switch of the domain; empty: as the setting.
        rp: of the RP; empty: as the domain. A domain that is off is off for all RPs.
    """
    whole = domain or setting
    return OFF if whole == OFF else rp or whole
