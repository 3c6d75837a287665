"""Shapes of the audit."""

from __future__ import annotations

from typing import Annotated, Any

from eventing.core.shapes import Moment, Positive, Shape, doc, one_of, page_of


class AuditObject(Shape):
    """Object of an act."""

    kind: str
    id: str


class AuditEntryAnswer(Shape):
    """An entry of the audit."""

    id: Annotated[Positive, doc("Increases without holes, in the order of commits.")]
    at: Moment
    who: Annotated[str, doc("Subject, ISSUER#SUBJECT, console user, a stranger's address, `domain`.")]
    issuer: str | None
    token_id: Annotated[str | None, doc("The token's jti, never the token.")]
    via: Annotated[str, doc("api, websocket, console or command.")]
    address: Annotated[str | None, doc("The client's address.")]
    request_id: Annotated[str | None, doc("`X-Request-Id` of the answer.")]
    action: Annotated[str, doc("OBJECT.VERB, or an operation; stable.")]
    on: AuditObject | None
    outcome: Annotated[str, one_of("ok", "refused", "failed")]
    problem: Annotated[str | None, doc("The problem document's type.")]
    reason: str | None
    count: Annotated[Positive, doc("Number of equal refusals of one minute that the entry stands for.")]
    details: dict[str, Any]
    previous: Annotated[str, doc("The seal of the previous entry.")]
    seal: Annotated[str, doc("KEY.HMAC over this entry and `previous`.")]


AuditEntryPage = page_of(AuditEntryAnswer)
