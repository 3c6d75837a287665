"""Paths that a plan may add: the two disjoint paths of least total length, and the k shortest paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteLink
from eventing.overlay.routing.tree import path_to, shortest_tree

Path = list[RouteLink]


def disjoint_pair(
    at: Mapping[Id, Sequence[RouteLink]], lengths: Mapping[RouteLink, float], origin: Id, receiver: Id
) -> tuple[Path, Path] | None:
    """Return two paths without a common link, of the least total length; None if there are no two.

    The most reliable path can be part of no such pair, and the second best path that avoids it is not the best partner: the pair is
    found together. (Bhandari's form of Suurballe, "Disjoint paths in a network", Networks 4, 1974: a second search may go
    back along links of the first path at their negative length; what both paths use is cancelled.)
    """
    first = path_to(shortest_tree(at, lengths, origin), origin, receiver)
    if not first:
        return None
    second = _second(at, lengths, _oriented(first, origin), origin, receiver)
    if second is None:
        return None
    entered = _oriented(first, origin)
    for link, end in _oriented(second, origin).items():
        if link in entered:
            del entered[link]
        else:
            entered[link] = end
    return _walk(entered, origin, receiver), _walk(entered, origin, receiver)


def shortest_paths(
    at: Mapping[Id, Sequence[RouteLink]], lengths: Mapping[RouteLink, float], origin: Id, receiver: Id, count: int
) -> list[Path]:
    """Return the `count` shortest paths without a loop, or as many as there are (Yen, Management Science 17, 1971)."""
    first = path_to(shortest_tree(at, lengths, origin), origin, receiver)
    if not first:
        return []
    found = [first]
    known: dict[tuple[RouteLink, ...], float] = {tuple(first): _length(first, lengths)}
    while len(found) < count:
        last, spur = found[-1], origin
        for place, link in enumerate(last):
            root = last[:place]
            hidden = [path[place] for path in found if path[:place] == root]
            passed = _domains(root, origin)[:-1]
            left = {
                end: [one for one in of if one not in hidden and one.other(end) not in passed]
                for end, of in at.items()
                if end not in passed
            }
            rest = path_to(shortest_tree(left, lengths, spur), spur, receiver)
            if rest:
                known.setdefault(tuple(root + rest), _length(root + rest, lengths))
            spur = link.other(spur)
        new = [path for path in known if list(path) not in found]
        if not new:
            break
        nearest = min(new, key=known.__getitem__)
        found.append(list(nearest))
    return found


def _second(
    at: Mapping[Id, Sequence[RouteLink]],
    lengths: Mapping[RouteLink, float],
    first: Mapping[RouteLink, Id],
    origin: Id,
    receiver: Id,
) -> Path | None:
    """Search with negative lengths (Bellman and Ford): links of the first path only backwards.

    Args:
        first: links of the first path, with the end at which each is entered.
    """
    distance: dict[Id, float] = {origin: 0.0}
    via: dict[Id, RouteLink] = {}
    queue = [origin]
    while queue:
        following: dict[Id, None] = {}
        for domain in queue:
            for link in at.get(domain, ()):
                entered = first.get(link)
                if entered == domain:
                    continue
                length = lengths.get(link, inf) if entered is None else -lengths[link]
                end, far = link.other(domain), distance[domain] + length
                if far < distance.get(end, inf) - 1e-12:
                    distance[end] = far
                    via[end] = link
                    following[end] = None
        queue = list(following)
    return path_to(via, origin, receiver)


def _oriented(path: Path, origin: Id) -> dict[RouteLink, Id]:
    return dict(zip(path, _domains(path, origin), strict=False))


def _domains(path: Path, origin: Id) -> list[Id]:
    """Return the domains of a path, both ends included."""
    domains = [origin]
    for link in path:
        domains.append(link.other(domains[-1]))
    return domains


def _length(path: Sequence[RouteLink], lengths: Mapping[RouteLink, float]) -> float:
    return sum(lengths[link] for link in path)


def _walk(entered: dict[RouteLink, Id], origin: Id, receiver: Id) -> Path:
    """Take one path out of the links of two disjoint ones, each with the end at which it is entered."""
    path: Path = []
    domain = origin
    while domain != receiver:
        link = next(one for one, end in entered.items() if end == domain)
        del entered[link]
        path.append(link)
        domain = link.other(domain)
    return path
