"""Shapes of intakes. Secrets and tokens are in none but the answer to a creation."""

from __future__ import annotations

from typing import Annotated

from eventing.core.shapes import Moment, Positive, Shape, doc, one_of, page_of
from eventing.intakes.rules.formats import NAMES
from eventing.rest.shapes import LeaseAnswer


class IntakeMembers(Shape):
    """Members of an intake that answers and administrative events share."""

    id: str
    owner: Annotated[str, doc("Identity as which it publishes; the rendezvous point's policy applies to it.")]
    version: Annotated[Positive, doc("Increases with every change; the ETag.")]
    format: Annotated[str, one_of(*NAMES)]
    title: str
    source: Annotated[str, doc("`source` of events whose sender states none.")]
    signed: Annotated[bool, doc("Whether it has a secret, and so accepts only what is signed with it.")]
    timestamp_header: Annotated[str, doc("Header with the time of Grafana's signature; empty: none.")]
    lease: LeaseAnswer


class IntakeData(IntakeMembers):
    """An intake."""

    at: Annotated[str, doc("Id of the rendezvous point.")]


class IntakeAnswer(IntakeMembers):
    """An address at which webhooks of another system become events of a rendezvous point."""

    rp: Annotated[str, doc("Id of the rendezvous point.")]
    created_at: Moment
    last_used_at: Annotated[Moment | None, doc("When a webhook was last published; within seconds. null: not yet.")]
    previous_until: Annotated[
        Moment | None, doc("Until when the secret before the last change is accepted; null: not.")
    ]


class IntakeCreatedAnswer(IntakeAnswer):
    """A new intake with its address, which is shown only here."""

    url: Annotated[str, doc("The address to state at the sender. Whoever has it may publish: treat it as a password.")]


IntakePage = page_of(IntakeAnswer)
