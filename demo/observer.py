"""Reads the state of every domain over its REST interface alone: held events, links, detected misbehaviour."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from demo.snapshot import Detected, DomainView, LinkSnapshot, Snapshot
from eventing.core.events.feeds import Feed

ANSWER_S = 2.0  # a domain without an answer for this long is shown as down


class Observer:
    """Makes snapshots. `clients` are administrators' clients by the domains' short names, `is_cut` the demo's cuts."""

    def __init__(self, clients: Mapping[str, httpx.Client], rp: str, is_cut: Callable[[str, str], bool]) -> None:
        self._clients = clients
        self._rp = rp
        self._is_cut = is_cut
        self._origins: dict[str, str] = {}  # feed key -> short name; a domain's feeds of earlier epochs stay
        self._begun = time.monotonic()
        self._pool = ThreadPoolExecutor(len(clients), thread_name_prefix="observer")

    def snapshot(self) -> Snapshot:
        """Return the present state of all domains, read concurrently."""
        documents = dict(zip(self._clients, self._pool.map(self._asked, self._clients), strict=True))
        for name, answers in documents.items():
            if answers is not None:
                self._origins[Feed(f"{name}.test", str(answers[0].get("epoch", ""))).key] = name
        views = tuple(self._view(name, answers) for name, answers in documents.items())
        return Snapshot(time.monotonic() - self._begun, views)

    def close(self) -> None:
        """End its threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _asked(self, name: str) -> list[Any] | None:
        """Return the RP, the peers, the misbehaviour and the quarantines from a domain; None without an answer."""
        paths = (f"/api/v1/rps/{self._rp}", "/api/v1/peers", "/api/v1/misbehaviour", "/api/v1/quarantines")
        answers = []
        try:
            for path in paths:
                answer = self._clients[name].get(path, timeout=ANSWER_S)
                answer.raise_for_status()
                answers.append(answer.json())
        except (httpx.HTTPError, ValueError):
            return None
        return answers

    def _view(self, name: str, answers: list[Any] | None) -> DomainView:
        if answers is None:
            return DomainView(name, up=False)
        rp, peers, misbehaviour, quarantines = answers
        own: dict[str, Any] = next((one for one in rp.get("replicas", ()) if one["domain"] == f"{name}.test"), {})
        holds: dict[str, int] = {}
        for feed, sequence in own.get("vector", {}).items():
            origin = self._origins.get(feed)
            if origin is not None:
                holds[origin] = holds.get(origin, 0) + sequence
        links = {replica["domain"]: replica for replica in rp.get("replicas", ())}
        return DomainView(
            name,
            up=True,
            holds=holds,
            links=tuple(self._link(name, peer, links.get(peer["name"], {})) for peer in peers["items"]),
            detected={
                Detected(row["kind"], _short(row["carrier"]), _short(row["origin"])): int(row["count"])
                for row in misbehaviour["items"]
            },
            quarantined=frozenset(_short(row["origin"]) for row in quarantines["items"]),
        )

    def _link(self, name: str, peer: Mapping[str, Any], link: Mapping[str, Any]) -> LinkSnapshot:
        short = _short(peer["name"])
        delivery = peer.get("delivery") or {}
        return LinkSnapshot(
            short,
            str(peer["state"]),
            str(link.get("link") or ""),
            int(link.get("backlog", delivery.get("backlog", 0)) or 0),
            str(delivery.get("failure") or ""),
            self._is_cut(name, short),
        )


def _short(domain: str) -> str:
    return domain.removesuffix(".test")
