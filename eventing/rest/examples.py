"""Examples for the OpenAPI document: a value of each answer's schema, whose texts and numbers are those of the field.

An example is made of the schema, so it cannot contradict it; what a member means is in its name, so the value is looked up
by that name. A text without a value here is a fault that tests/rest/test_schema.py reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventing.rest.documents import ID_EXAMPLE

DEPTH_MAX = 8  # bound: nested schemas of an example; deeper optional members are left out
MOMENT, LATER = "2026-11-20T18:40:12.710331Z", "2026-11-27T18:40:12.710331Z"
SUBSCRIPTION = "sub_ko7oig5pt2enqqkyplnuo4pr35"
FINGERPRINT = "kp4s0kvb9dqexm2rj7tw5ncy3hgfza6u"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
CURSOR = "f2h5ue7q:7"
KID = "Xk3vT0pWqUe1yYb7nS2aRcD9fLmHjZ5gKo8iBtVw4xM"
DOMAIN = "a.example"
PEER = "b.example"

TEXTS: dict[str, str] = {
    "about": "Requests by rendezvous point and operation",
    "accesstoken": "not-a-real-token",
    "accesstokentype": "Bearer",
    "accused": PEER,
    "accused_by": "c.example",
    "accusers": "c.example",
    "ack": "stored",
    "acknowledged": CURSOR,
    "acquaintance": PEER,
    "action": "rp.create",
    "address": "192.0.2.7",
    "adds": PEER,
    "admin": f"/api/v1/rps/{ID_EXAMPLE}.admin",
    "advice": "Ask the operators of b.example whether the domain runs.",
    "after": CURSOR,
    "alarm_id": "12",
    "audience": PEER,
    "before": CURSOR,
    "by": "ann",
    "carrier": PEER,
    "carriers": PEER,
    "changed_by": "ann",
    "client_certificate": "-----BEGIN CERTIFICATE-----",
    "content": "application/json",
    "contact_point": "cp_ko7oig5pt2enqqkyplnuo4pr35",
    "created_by": "ann",
    "creator": "ann",
    "cursor": CURSOR,
    "datacontenttype": "application/json",
    "decided_by": "ann",
    "decision": "3",
    "delivers": DOMAIN,
    "detail": "b.example has not answered for 5 minutes.",
    "digest": DIGEST,
    "domain": DOMAIN,
    "electors": PEER,
    "ends": PEER,
    "epoch": "f2h5ue7q",
    "events": f"/api/v1/rps/{ID_EXAMPLE}/events",
    "excluded": "c.example",
    "failure": "http-503",
    "feed": "k3wut6lklepf5hoq",
    "fingerprint": FINGERPRINT,
    "fingerprint_shown": "kp4s 0kvb 9dqe xm2r j7tw 5ncy 3hgf za6u",
    "format": "plain",
    "former": PEER,
    "gateway": "gateway-1",
    "headers": "X-Environment",
    "health": "good",
    "held": PEER,
    "holders": PEER,
    "home": DOMAIN,
    "id": "42",
    "identifier": "ann",
    "intake_id": "in_k3wut6lklepf5hoqsyd4mgvikf",
    "issuer": "domain",
    "keeper": DOMAIN,
    "kept": DIGEST,
    "issued_by": "root",
    "kid": KID,
    "kind": "rp",
    "known_from": "directory",
    "label": "control room",
    "lazy": "k3wut6lklepf5hoq",
    "learned_from": PEER,
    "limit": "HERALD_RPS_MAX",
    "link": f"/rps/{ID_EXAMPLE}",
    "message": "42",
    "method": "POST",
    "missed": "a link of the route is down",
    "mode": "webhook",
    "name": "/a.example/sensors/roof/",
    "named": PEER,
    "note": "agreed with Bea",
    "notice": "Deleted with its events on 20 December 2026, unless it is used or renewed.",
    "origin": PEER,
    "origins": PEER,
    "other": DIGEST,
    "own_fingerprint": FINGERPRINT,
    "own_fingerprint_shown": "kp4s 0kvb 9dqe xm2r j7tw 5ncy 3hgf za6u",
    "owner": "ann",
    "part": "sensors",
    "payload": "eyJjZWxzaXVzIjogMjEuNX0=",
    "peer": PEER,
    "pinned": PEER,
    "pointer": "/history/max_events",
    "previous": DIGEST,
    "principal": "ann",
    "problem": "unreachable",
    "protocol": "HTTP",
    "pruned": "k3wut6lklepf5hoq",
    "public_key": "whpk_b3duZXJzLWtleS1vZi10aGlzLWVuZHBvaW50",
    "reason": "a publisher floods",
    "refused": PEER,
    "region": "k3wut6lk",
    "renew": f"/api/v1/subscriptions/{SUBSCRIPTION}/renew",
    "request_id": "0b6f1b1c9d3e4a5f8a7b6c5d4e3f2a1b",
    "retires": "c.example",
    "revocation_id": "5",
    "route": PEER,
    "rp": ID_EXAMPLE,
    "rps": ID_EXAMPLE,
    "rule": "lag-1",
    "run_id": "7",
    "safety_number": "30145 99210 48213 77120 05582 61934",
    "seal": DIGEST,
    "secret": "not-a-real-secret",
    "session_id": "gateway-1-17",
    "signature": "v1",
    "sink": "https://app.example.org/events",
    "source": "/sensors/roof",
    "sponsor": PEER,
    "sponsors": PEER,
    "stage": "reading",
    "stated_by": PEER,
    "stream": f"/api/v1/rps/{ID_EXAMPLE}/stream",
    "subject": "ann",
    "subscription": SUBSCRIPTION,
    "subscription_id": SUBSCRIPTION,
    "subscriptions": f"/api/v1/rps/{ID_EXAMPLE}/subscriptions",
    "suspected": PEER,
    "table": "requests",
    "target": DOMAIN,
    "timestamp_header": "X-Timestamp",
    "title": "Weather on the roof",
    "token": "TOKEN",
    "token_id": "b3f1c2d4",
    "type": "org.example.temperature",
    "unit": "events",
    "unmeasured": "c.example",
    "url": "https://b.example",
    "value": "b3f1c2d4",
    "variable": "HERALD_RPS_MAX",
    "verification": "challenge",
    "version": "3",
    "via": PEER,
    "warn_url": "https://app.example.org/warnings",
    "who": "ann",
    "why": "Its readers are nearer to b.example.",
    "zone": "eu-1",
}
"""Texts by the name of the member or parameter."""

OF_COMPONENT: dict[tuple[str, str], Any] = {
    ("DomainName", "version"): "1",
    ("Key", "kid"): KID,
    ("Problem", "type"): "urn:herald:problem:invalid-request",
    ("Problem", "title"): "Invalid request",
    ("Problem", "status"): 400,
    ("Problem", "detail"): "history.max_events: Ensure this value is greater than or equal to 1.",
    ("Finding", "detail"): "Ensure this value is greater than or equal to 1.",
    ("Problem", "retry_after_s"): None,
    ("Peer", "name"): PEER,
    ("Peer", "problem"): None,
    ("RendezvousPoint", "audience"): [],
    ("RendezvousPoint", "genesis"): {"key": FINGERPRINT},
    ("RendezvousPoint", "policy"): [{"issuer": "domain", "allow": ["describe", "publish", "subscribe", "history"]}],
    ("RendezvousPoint", "watch"): [],
    ("Subscription", "id"): SUBSCRIPTION,
    ("RendezvousPoint", "id"): ID_EXAMPLE,
    ("Token", "id"): "b3f1c2d4",
    ("IssuedToken", "id"): "b3f1c2d4",
}
"""Values of members whose names mean something else elsewhere."""

NUMBERS: dict[str, int | float] = {
    "offset": 7,
    "status": 200,
    "rtt_ms": 12.5,
    "delay_ms": 12.5,
    "lag": 4,
    "granted_s": 604_800,
    "max_events": 1000,
    "max_bytes": 1_048_576,
    "max_age_s": 86_400,
    "reliability": 0.999,
    "events_per_s": 1000,
    "bytes_per_s": 1_048_576,
    "requests_per_s": 20,
}
"""Numbers by the name of the member."""

TEXT_OF_TYPE = {
    "text/event-stream": 'id: f2h5ue7q:7\ndata: {"specversion":"1.0","id":"42","source":"/sensors/roof","type":"org.example.temperature"}\n\n',
    "text/csv": "rp,requests\nxiqk5k5qzcxbyjkpq2mkvxv3ti,1440\n",
}
"""Examples of answers that are no JSON; the one of lines of JSON is a line."""

_LATER = frozenset({"expires_at", "until", "next_at", "next_try_at", "held_until", "not_after"})
"""Moments that are ahead."""
_NULL = frozenset({"next", "paused", "failure", "retry_after_s"})
"""Members that are null in the usual case."""


class Unnamed(LookupError):
    """A text whose name has no value here."""


class ExampleMaker:
    """Makes examples of schemas.

    Args:
        components: the document's schemas by name.
    """

    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components

    def value(self, schema: Mapping[str, Any], name: str = "", component: str = "", depth: int = 0) -> Any:
        """Make a value of `schema`, which is the member `name` of a component. Raises Unnamed."""
        if (component, name) in OF_COMPONENT:
            return OF_COMPONENT[component, name]
        if isinstance(reference := schema.get("$ref"), str):
            component = reference.rpartition("/")[2]
            return self.value(self._components[component], name, component, depth)
        for told in ("examples", "enum"):
            if schema.get(told):
                return next(value for value in schema[told] if value is not None)
        if "const" in schema:
            return schema["const"]
        if parts := schema.get("anyOf") or schema.get("oneOf"):
            if {"type": "null"} in parts and (name in _NULL or depth >= DEPTH_MAX):
                return None
            return self.value(next(part for part in parts if part.get("type") != "null"), name, component, depth)
        if "allOf" in schema:
            made = [self.value(part, name, component, depth) for part in schema["allOf"]]
            return {k: v for part in made for k, v in part.items()} if isinstance(made[0], dict) else made[0]
        kinds = [schema["type"]] if isinstance(schema.get("type"), str) else list(schema.get("type", []))
        if "null" in kinds and (name in _NULL or depth >= DEPTH_MAX):
            return None
        kind = next((kind for kind in kinds if kind != "null"), "object" if "properties" in schema else "")
        return self._of_kind(kind, schema, name, component, depth)

    def _of_kind(self, kind: str, schema: Mapping[str, Any], name: str, component: str, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, component, depth)
            case "array":
                if "prefixItems" in schema:
                    return [self.value(part, name, component, depth + 1) for part in schema["prefixItems"]]
                item = schema.get("items") or schema.get("unevaluatedItems")
                if not item or depth >= DEPTH_MAX:
                    return []
                return [self.value(item, name, component, depth + 1)] * max(1, schema.get("minItems", 1))
            case "integer" | "number":
                return self._number(schema, name)
            case "boolean":
                return schema.get("default", False)
            case "string":
                return self._text(schema, name)
        return {} if not name or depth >= DEPTH_MAX else self._any(name)

    def _object(self, schema: Mapping[str, Any], component: str, depth: int) -> dict[str, Any]:
        required = schema.get("required", [])
        return {
            name: self.value(member, name, component, depth + 1)
            for name, member in schema.get("properties", {}).items()
            if name in required or (depth < DEPTH_MAX and not member.get("writeOnly"))
        }

    @staticmethod
    def _any(name: str) -> Any:
        return NUMBERS.get(name, TEXTS.get(name, {}))

    @staticmethod
    def _number(schema: Mapping[str, Any], name: str) -> int | float:
        value: int | float = NUMBERS.get(name, 60 if name.endswith("_s") else schema.get("default") or 3)
        if "minimum" in schema:
            value = max(value, schema["minimum"])
        return min(value, schema["maximum"]) if "maximum" in schema else value

    @staticmethod
    def _text(schema: Mapping[str, Any], name: str) -> str:
        if schema.get("format") == "date-time" or name.endswith("_at") or name in ("since", "until", "at", "time"):
            return LATER if name in _LATER else MOMENT
        if schema.get("contentEncoding") == "base64":
            return "eyJjZWxzaXVzIjogMjEuNX0="
        if schema.get("format") in ("uri", "uri-reference"):
            return TEXTS["source"] if name == "source" else "https://b.example/"
        if "default" in schema:
            return str(schema["default"])
        if name not in TEXTS:
            raise Unnamed(name)
        return TEXTS[name]
