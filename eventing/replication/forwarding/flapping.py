"""Flapping: feeds that a partner prunes and grafts again at once, without end, so that this domain's links never settle.

An honest partner grafts what was announced and has not arrived within its patience, so rarely within EARLY_S of its own prune. One such
graft counts per partner and EARLY_S, however many feeds and rendezvous points it concerns; the first three are free (overlay/scores.py).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from eventing.overlay.dissemination import EARLY_S
from eventing.overlay.scores import Deed
from eventing.replication.services.conduct import conduct_note
from eventing.store import peer_state


def prunes_note(peer: str, prunes: Mapping[str, Collection[str]]) -> None:
    """Note the feeds that a partner has pruned, by RP. Raises redis.RedisError."""
    pruned = _pairs(prunes)
    if pruned:
        peer_state.prunes_note(peer, list(pruned), time.time(), EARLY_S)


def grafts_judge(peer: str, grafts: Mapping[str, Collection[str]]) -> None:
    """Count a partner's grafts as a deed if they follow its prunes too soon. Raises redis.RedisError."""
    grafted = _pairs(grafts)
    if not grafted:
        return
    early = peer_state.prunes_since(peer, list(grafted), time.time() - EARLY_S)
    if early and peer_state.flap_begin(peer, EARLY_S):
        conduct_note(Deed.FLAPPING, peer=peer, rp=grafted[early[0]])


def _pairs(feeds: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return the RP of each pair of RP and feed."""
    return {f"{rp} {feed}": rp for rp, some in feeds.items() for feed in some}
