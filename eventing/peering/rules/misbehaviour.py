"""The kinds of misbehaviour between domains: what each is called, what it is, and whether its proof convicts. Pure.

Misbehaviour is counted under who it came through (the carrier, whose request was authenticated) and who it is about (the
origin, which a carrier may slander). So only what an origin signed itself, and contradicts itself with, is held against
the origin (docs/federation/seals.md has the whole table).
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
]

KINDS: dict[Kind, str] = {
    "forged": "a statement whose signature is none of its origin's keys",
    "tampered": "events that are not those the origin sealed: altered, dropped, reordered, or of another feed",
    "unchained": "a seal that does not follow the feed's seal before it",
    "replayed": "a request that was made before, or for somebody else",
    "equivocation": "two seals of one origin for one place: proof that it told two stories",
    "quarantined": "events of an origin that is quarantined here",
    "not-admitted": "events of an origin that the home of the rendezvous point did not admit",
    "false-vector": "a claim to hold what the claimer cannot hold, or does not supply",
    "false-gap": "a gap in a feed that its origin did not sign",
    "withheld": "events missing of a sealed run that its origin still keeps",
    "loop": "a run that went through us, or through one domain twice, or through too many",
    "flooding": "more requests, events or bytes than the peer's rates allow",
    "oversize": "a message, run or statement beyond its bounds",
    "malformed": "a message or statement that cannot be read",
}
