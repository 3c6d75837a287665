"""Addresses of the hub and of the topics of a domain: each RP is one topic, whose content is its last event. Pure."""

from __future__ import annotations

from eventing.core.names import is_id

HUB_PATH = "/websub/hub"
TOPICS_PATH = "/websub/topics/"
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
"""Media type of every topic: one CloudEvent in the JSON format."""


def hub_url(base: str) -> str:
    """Return the address of the hub of the domain at `base`."""
    return base + HUB_PATH


def topic_url(base: str, rp: str) -> str:
    """Return the canonical address of the topic of an RP."""
    return f"{base}{TOPICS_PATH}{rp}"


def topic_rp(base: str, topic: str) -> str | None:
    """Return the id of the RP of which this is the canonical topic; None for any other address."""
    rp = topic.removeprefix(base + TOPICS_PATH)
    return rp if rp != topic and is_id(rp) else None
