"""Requests of other domains for the path of an event, at /federation/v1/path (peering/wire/endpoints.py)."""

from __future__ import annotations

from eventing.core.errors import NotFound
from eventing.log.watermarks import links_read
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION
from eventing.replication.paths.messages import HOLDERS_MAX, PathReply, encode, question_read
from eventing.replication.paths.places import path_of
from eventing.replication.selectors.forwarding import participations


def path(sender: Sender, body: bytes) -> bytes:
    """Answer a domain that events of the RP are exchanged with. It learns nothing that runs and vectors do not state."""
    asked = question_read(body)
    links = participations([asked.rp])[asked.rp].links
    if sender.domain not in links:
        raise NotFound(f"Events of such a rendezvous point are not exchanged with {sender.domain}.")
    known = path_of(asked.rp, asked.feed, asked.sequence)
    holders: dict[str, bool] = {}
    for domain in [one for one in links if one != sender.domain][:HOLDERS_MAX]:
        theirs = links_read(domain, [asked.rp])[asked.rp].theirs
        holders[domain] = theirs.get(asked.feed, 0) >= asked.sequence
    return encode(PathReply(VERSION, known.held, list(known.path), known.stored_ms or 0, holders))
