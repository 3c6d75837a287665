"""What runs beside each gateway and is made above it: others enter here how, before the first gateway is made.

COMPANIONS.append(lambda gateway: Sampler(gateway))       # admin_rp/apps.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from eventing.gateway.gateway import Gateway


class Companion(Protocol):
    """Something that runs beside a gateway, from its start to its end."""

    def start(self) -> None:
        """Begin. The gateway runs."""

    async def close(self) -> None:
        """End; the gateway's connections are still there. Raises nothing."""


COMPANIONS: list[Callable[[Gateway], Companion]] = []
"""Makes each companion of a gateway."""
