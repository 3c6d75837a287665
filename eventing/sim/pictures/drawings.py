"""The pictures: directory, links, and the ways of three events."""

from __future__ import annotations

from eventing.sim.pictures.recording import LAST, WARM, Recording, Spread
from eventing.sim.pictures.svg import Drawing, on_circle, on_rings

SHOWN = 0
"""Domain whose links are distinguished."""


def pictures(of: Recording) -> dict[str, str]:
    """Return the pictures of a recording, by the name of their file."""
    return {
        "directory.svg": _directory(of),
        "links.svg": _links(of),
        "first-event.svg": _spread(of, 1, "The first event of a feed: every link is eager"),
        "warm-tree.svg": _spread(of, WARM, f"Event {WARM} of the feed: a tree"),
        "mended-tree.svg": _spread(
            of, LAST, f"Event {LAST}, after {len(of.crashed)} of {of.domains} domains have stopped"
        ),
    }


def _directory(of: Recording) -> str:
    sponsors = {domain: sponsor for domain, sponsor in of.sponsors.items() if sponsor is not None}
    (founder,) = (domain for domain, sponsor in of.sponsors.items() if sponsor is None)
    places, rings = on_rings(founder, sponsors)
    drawing = Drawing(
        f"The directory of {of.domains} domains as a tree of sponsors",
        [f"{of.domains} domains, each with its sponsor", "in the middle the founder, which needs none"],
    )
    drawing.rings(rings)
    drawing.lines("way", ((places[sponsor], places[domain]) for domain, sponsor in sorted(sponsors.items())))
    drawing.dots("dot", (places[domain] for domain in sorted(sponsors)))
    drawing.dots("root", [places[founder]], 7)
    return drawing.text()


def _links(of: Recording) -> str:
    places = on_circle(range(of.domains))
    pairs = sorted({(min(one, peer), max(one, peer)) for one, peers in of.links.items() for peer in peers})
    mine = of.links[SHOWN]
    degrees = sorted(len(peers) for peers in of.links.values())
    drawing = Drawing(
        f"The links between {of.domains} domains",
        [
            f"{len(pairs)} links; a domain has {degrees[0]} to {degrees[-1]}, in the median {degrees[len(degrees) // 2]}",
            f"marked: {sum(mine.values())} chosen by one domain; dashed: {len(mine) - sum(mine.values())} by the others",
        ],
    )
    drawing.lines(
        "line", ((places[one], places[other]) for one, other in pairs if SHOWN not in (one, other)), bend=0.35
    )
    for kind, chosen in (("way", True), ("other", False)):
        ends = sorted(peer for peer, by in mine.items() if by is chosen)
        drawing.lines(kind, ((places[SHOWN], places[peer]) for peer in ends), bend=0.35, width=2.2)
    drawing.dots("dot", (places[domain] for domain in range(of.domains)))
    drawing.dots("root", [places[SHOWN]], 7)
    return drawing.text()


def _spread(of: Recording, number: int, title: str) -> str:
    spread = of.spreads[number]
    places, rings = on_rings(spread.origin, spread.came_from)
    drawing = Drawing(title, [title, _figures(spread)])
    drawing.rings(rings)
    copies = [(places[one], places[other]) for one, other in spread.copies if one in places and other in places]
    drawing.lines("copy", copies)
    drawing.lines("way", ((places[sender], places[one]) for one, sender in sorted(spread.came_from.items())), width=1.8)
    drawing.dots("mark", (places[one] for one in sorted(spread.came_from)))
    drawing.dots("root", [places[spread.origin]], 7)
    return drawing.text()


def _figures(spread: Spread) -> str:
    last_s = max(spread.arrived_s.values(), default=0.0)
    copies = len(spread.copies)
    return (
        f"{len(spread.came_from)} domains reached in {max(spread.hops.values(), default=0)} hops and {last_s * 1000:.0f} ms; "
        f"{copies} redundant {'delivery' if copies == 1 else 'deliveries'}"
    )
