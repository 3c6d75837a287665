"""The five domains' statements at one moment, and the news since the moment before. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Detected(NamedTuple):
    """Misbehaviour that a domain has counted: kind, carrier, origin."""

    kind: str
    carrier: str
    origin: str


@dataclass(frozen=True)
class LinkSnapshot:
    """A domain's statement of its link to one peer.

    Attributes:
        peer: short name of the other domain.
        state: of the peering; `active` if events are exchanged.
        mode: `eager` (gets events), `lazy` (gets vectors), or empty if the domain does not state it.
        backlog: events that wait to be sent there.
        trouble: why the last attempt failed; empty if it did not.
        cut: whether the demo cut the route there.
    """

    peer: str
    state: str = ""
    mode: str = ""
    backlog: int = 0
    trouble: str = ""
    cut: bool = False


@dataclass(frozen=True)
class DomainView:
    """One domain: whether it answers, its held events by origin, its links, detected misbehaviour and quarantines."""

    name: str
    up: bool
    holds: Mapping[str, int] = field(default_factory=dict)
    links: tuple[LinkSnapshot, ...] = ()
    detected: Mapping[Detected, int] = field(default_factory=dict)
    quarantined: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Snapshot:
    """All domains at one moment, in the order of the ring."""

    at_s: float
    domains: tuple[DomainView, ...]

    @property
    def most(self) -> dict[str, int]:
        """Return by origin the most that any domain holds."""
        joined: dict[str, int] = {}
        for domain in self.domains:
            for origin, held in domain.holds.items():
                joined[origin] = max(held, joined.get(origin, 0))
        return joined

    def lacks(self, domain: DomainView) -> int:
        """Return how many events that some domain holds this one lacks."""
        return sum(most - domain.holds.get(origin, 0) for origin, most in self.most.items())


def news(before: Snapshot, after: Snapshot) -> list[str]:
    """Return what happened between two moments, a sentence each."""
    told = []
    for old, new in zip(before.domains, after.domains, strict=True):
        if old.up != new.up:
            told.append(f"{new.name} is {'up again' if new.up else 'down'}.")
        if not (old.up and new.up):
            continue
        told += _links_news(old, new)
        told += [
            f"{new.name} detected: {found.kind} events{_about(found)}, sent by {found.carrier} (x{count})."
            for found, count in new.detected.items()
            if count > old.detected.get(found, 0)
        ]
        told += [f"{new.name} quarantined {origin}." for origin in sorted(new.quarantined - old.quarantined)]
        told += [
            f"{new.name} lifted the quarantine of {origin}." for origin in sorted(old.quarantined - new.quarantined)
        ]
    return told


def _links_news(old: DomainView, new: DomainView) -> list[str]:
    before = {link.peer: link for link in old.links}
    told = []
    for link in new.links:
        was = before.get(link.peer, link)
        if bool(was.trouble) != bool(link.trouble):
            how = f"cannot reach {link.peer}: {link.trouble}" if link.trouble else f"reaches {link.peer} again"
            told.append(f"{new.name} {how}.")
        if was.state != link.state:
            told.append(f"{new.name}: the peer {link.peer} is {link.state} now.")
    return told


def _about(found: Detected) -> str:
    return f" of {found.origin}" if found.origin else ""
