"""Messages of domains at /federation/v1/exchange: MessagePack of these structs, arrays in the order of the fields.

Decoding enforces a bound for every field from outside; a message that exceeds one is refused whole, before any of it is
processed. A newer version may append fields to a struct: an older reader ignores them (msgspec's array_like rule).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.seals.heads import HEADS_BYTES_MAX
from eventing.core.signing import Signed

VERSION = 1
# bound: events of a request between domains; the others are in the next request; a longer request is refused: `oversize`
REQUEST_EVENTS_MAX = 1000
# bound: bytes of these events; the others are in the next request; a larger event is sent alone
REQUEST_BYTES_MAX = 1024 * 1024
# Events, their seals and leaves, vectors, statements.
BODY_BYTES_MAX = 4 * 1024 * 1024  # bound: bytes of a request or answer between domains; 413
RPS_MAX = 1000  # bound: RPs of a request between domains; the others are in the next request
RUNS_MAX = 1000  # runs of one RP in one request
PATH_MAX = 32  # domains that carried a run: the hop bound
STATEMENTS_MAX = 64  # bound: statements of one part of a request; the others are in the next request

Name = Annotated[str, Meta(max_length=253)]
RpId = Annotated[str, Meta(min_length=26, max_length=26, pattern=r"^[a-z2-7]+\Z")]
FeedKey = Annotated[str, Meta(min_length=16, max_length=16, pattern=r"^[a-z2-7]+\Z")]
Sequence = Annotated[int, Meta(ge=0, le=2**53 - 1)]
OwnFeedKey = Annotated[str, Meta(max_length=16, pattern=r"^([a-z2-7]{16})?\Z")]  # empty where none is stated
FeedKeys = Annotated[list[FeedKey], Meta(max_length=FEEDS_MAX)]
Have = Annotated[dict[FeedKey, Sequence], Meta(max_length=FEEDS_MAX)]
Statements = Annotated[list[Signed], Meta(max_length=STATEMENTS_MAX)]
Newest = Annotated[list[Signed], Meta(max_length=1)]
HOMES_BYTES_MAX = 512 * 1024  # bound: bytes of the hand-overs and succession plans of one RP; the request is refused
Homes = Annotated[bytes, Meta(max_length=HOMES_BYTES_MAX)]
Properties = Annotated[list[Signed], Meta(max_length=1)]


T = TypeVar("T")


class SealedRun(msgspec.Struct, array_like=True):
    """A sealed run of a feed.

    Attributes:
        seal: the origin's statement (core/seals/seals.py: Seal).
        events: the exact bytes of the run's last events, as many as the sender still holds.
        leaves: the Merkle leaf hashes, 32 bytes each, of the events before those, which the sender no longer holds.
        path: the domains that carried the run, its origin first, the sender last.
    """

    seal: Signed
    events: Annotated[list[bytes], Meta(max_length=REQUEST_EVENTS_MAX)]
    leaves: Annotated[bytes, Meta(max_length=32 * REQUEST_EVENTS_MAX)] = b""
    path: Annotated[list[Name], Meta(max_length=PATH_MAX)] = []


class RpPart(msgspec.Struct, array_like=True):
    """The part of a request about one RP.

    Attributes:
        have: the sender's vector, from which the receiver learns what to send or to request.
        runs: runs that the receiver lacks according to its vector, per feed in order.
        graft: feeds whose runs the sender wants by this link from now on (it lacks what its vector shows).
        low_water_marks: origins' statements of trimmed events (core/seals/seals.py: LowWaterMark).
        statements: descriptor and admissions that the receiver may not have yet (rps/rules/statements.py).
        heads: the seals at which the feeds of `have` end (core/seals/heads.py: packed); empty where not stated.
        own: the key of the sender's own feed; a receiver that holds more of it than `have` states answers with its
            newest seal.
        properties: the home's statement of the RP's properties, with `statements` (rps/rules/statements.py).
        homes: the hand-overs of the RP's home, and the versions of its succession plan (rps/rules/home_terms.py), as
            MessagePack; empty where there are none.
    """

    rp: RpId
    have: Have = {}
    runs: Annotated[list[SealedRun], Meta(max_length=RUNS_MAX)] = []
    graft: FeedKeys = []
    low_water_marks: Statements = []
    statements: Statements = []
    heads: Annotated[bytes, Meta(max_length=HEADS_BYTES_MAX)] = b""
    own: OwnFeedKey = ""
    properties: Properties = []
    homes: Homes = b""


class SealPair(msgspec.Struct, array_like=True):
    """Two valid seals of one origin for one place: proof of equivocation."""

    one: Signed
    other: Signed


class ExchangeRequest(msgspec.Struct, array_like=True):
    """One exchange. `domains` are domain documents (peering/rules/domain_documents.py) that the receiver may need for
    verification.
    """

    version: int
    parts: Annotated[list[RpPart], Meta(max_length=RPS_MAX)] = []
    domains: Statements = []
    evidence: Annotated[list[SealPair], Meta(max_length=STATEMENTS_MAX)] = []


class RpAnswer(msgspec.Struct, array_like=True):
    """The receiver's state of one RP after the request. `error` is a code of core/errors.py, or empty.

    `graft`: feeds whose runs the receiver wants by this link from now on; `prune`: feeds of which it wants only
    vectors, because another link delivers them. `seals`: seals held here where the request's heads name others:
    equivocation of an origin. `heads`: the seals at which the feeds of `have` end, as in a request. `newest`: the newest
    seal held here of the feed that the request names as `own`, if the request states less of it; an empty list if not;
    None where no seal was looked up, as by software without this field. `term`: the term of the RP's home as known to the
    receiver; None: its software does not know of terms.
    """

    rp: RpId
    have: Have = {}
    error: Annotated[str, Meta(max_length=64)] = ""
    graft: FeedKeys = []
    prune: FeedKeys = []
    seals: Statements = []
    heads: Annotated[bytes, Meta(max_length=HEADS_BYTES_MAX)] = b""
    newest: Newest | None = None
    term: Sequence | None = None


class ExchangeAnswer(msgspec.Struct, array_like=True):
    """The answer to a request. `pause_s`: seconds in which the sender must send nothing more (rates)."""

    version: int
    parts: Annotated[list[RpAnswer], Meta(max_length=RPS_MAX)] = []
    pause_s: Annotated[float, Meta(ge=0, le=3600)] = 0.0


encode = msgspec.msgpack.Encoder().encode
_request = msgpack_reader(ExchangeRequest)
_answer = msgpack_reader(ExchangeAnswer)


class BadMessage(Exception):
    """Bytes that are not a valid message, or exceed a bound; the text is one sentence."""


def request(data: bytes) -> ExchangeRequest:
    """Decode a request. Raises BadMessage."""
    return _decoded(data, _request)


def answer(data: bytes) -> ExchangeAnswer:
    """Decode an answer. Raises BadMessage."""
    return _decoded(data, _answer)


def _decoded(data: bytes, decode: Callable[[bytes], T]) -> T:
    if len(data) > BODY_BYTES_MAX:
        raise BadMessage(f"A message has at most {BODY_BYTES_MAX} bytes.")
    try:
        return decode(data)
    except Undecodable as error:
        raise BadMessage(f"The message is not understood: {error}") from None
