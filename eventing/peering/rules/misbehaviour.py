"""Kinds of misbehaviour between domains: name, description, and whether its proof convicts. Pure.

Misbehaviour is counted under the carrier, whose request was authenticated, and the origin concerned, which a carrier
may slander. So an origin is held responsible only for contradictions that it signed itself (docs/federation/seals.md
has the whole table).
"""

from __future__ import annotations

from typing import Literal

Kind = Literal[
    "forged",
    "tampered",
    "unchained",
    "replayed",
    "equivocation",
    "quarantined",
    "not-admitted",
    "false-vector",
    "false-gap",
    "withheld",
    "loop",
    "flooding",
    "oversize",
    "malformed",
    "false-record",
    "flapping",
    "false-loss",
]

KINDS: dict[Kind, str] = {
    "forged": "a statement that no key of its origin signed",
    "tampered": "events other than those the origin sealed: altered, dropped, reordered, or of another feed",
    "unchained": "a seal that does not follow the feed's seal before it",
    "replayed": "a repeated request, or one for another domain",
    "equivocation": "two seals of one origin for one place: proof of equivocation",
    "quarantined": "events of an origin that is quarantined here",
    "not-admitted": "events of an origin that the home of the rendezvous point did not admit",
    "false-vector": "a claim to hold events that the claimer cannot hold or does not supply",
    "false-gap": "a gap in a feed that its origin did not sign",
    "withheld": "events missing from a sealed run that its origin still holds",
    "loop": "a run that passed this domain, or one domain twice, or too many domains",
    "flooding": "more requests, events or bytes than the peer's rates allow",
    "oversize": "a message, run or statement beyond its bounds",
    "malformed": "a message or statement that cannot be read",
    "false-record": "a record of the directory that its sender could have refused as well",
    "flapping": "overlay links that the domain made and ended, again and again",
    "false-loss": "the same events requested again and again, as if they had been lost",
}
