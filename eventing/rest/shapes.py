"""Shapes that several subjects share: leases, bounds of a history, positions in a log, problems."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from eventing.core.errors import problem_types
from eventing.core.shapes import Count, Moment, Shape, doc, one_of

Epoch = Annotated[str, doc("Life of the log's numbering; another epoch is another log.")]
Offset = Annotated[int, Meta(ge=0), doc("Offset of the last event; 0 before the first.")]
Continuation = Annotated[str, doc("Cursor to continue from; opaque.")]


class FindingAnswer(Shape):
    """One fault of a request's body."""

    pointer: Annotated[str, doc("JSON pointer (RFC 6901) to the member; empty: the body.")]
    detail: Annotated[str, doc("What is wrong with it.")]


class ProblemAnswer(Shape):
    """RFC 9457; some types add members (docs/protocol.md)."""

    type: Annotated[
        str, one_of(*problem_types()), doc("urn:herald:problem:CODE; stable. Later releases may add codes.")
    ]
    title: str
    status: int
    detail: Annotated[str, doc("What is wrong, then what to do.")]
    errors: Annotated[
        list[FindingAnswer] | UnsetType, doc("`invalid-request`: all faults of the body, the first 20 of them.")
    ] = UNSET


class HistoryAnswer(Shape):
    """Bounds of a history."""

    max_events: Annotated[Count, doc("Events kept.")]
    max_bytes: Annotated[Count, doc("Bytes kept.")]
    max_age_s: Annotated[int | None, doc("Seconds kept; null: no bound by age.")]


class LeaseAnswer(Shape):
    """A lease."""

    asked_s: Annotated[int | None, doc("Requested duration in seconds; null: not stated.")]
    granted_s: Annotated[Count, doc("Seconds granted.")]
    expires_at: Annotated[Moment, doc("End of the lease.")]


class RenewalAnswer(Shape):
    """A renewed lease."""

    lease: LeaseAnswer
