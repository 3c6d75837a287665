"""/api/v1/subscriptions/{id}/attempts, dead-letters and replay: what was sent, what was given up, and sending it again."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.errors import InvalidRequest
from eventing.core.events.cursors import Cursor
from eventing.core.timestamps import timestamp
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.store.push_attempts import attempts_read
from eventing.subscriptions.push.api.access import managed
from eventing.subscriptions.push.api.requests import PushReplaySerializer
from eventing.subscriptions.push.selectors import dead_letters_page
from eventing.subscriptions.push.services.replays import dead_letters_replay, range_replay
from eventing.subscriptions.push.shapes import (
    AttemptAnswer,
    AttemptsAnswer,
    DeadLetterAnswer,
    DeadLetterPage,
    QueuedReplaysAnswer,
)


class AttemptsView(View):
    """The last attempts."""

    @extend_schema(
        operation_id="subscriptions_attempts_list",
        summary="List the last attempts to deliver",
        description="The newest first: up to 50, for 30 days.",
        parameters=[docs.SUBSCRIPTION_ID],
        responses={200: AttemptsAnswer},
    )
    def get(self, request: Request, subscription_id: str) -> Response:
        """List."""
        row = managed(subscription_id, self.principal)
        items = [
            AttemptAnswer.of(
                one,
                at=timestamp(datetime.fromtimestamp(one.at_ms / 1000, tz=UTC)),
                excerpt=base64.b64encode(one.excerpt).decode(),
            )
            for one in attempts_read(row.at, row.id)
        ]
        return Response(AttemptsAnswer(items=items))


class DeadLettersView(View):
    """Events that were given up."""

    @extend_schema(
        operation_id="subscriptions_dead_letters_list",
        summary="List dead letters",
        description="Events that delivery gave up, the oldest first. They are kept while the subscription is, and can be "
        "replayed while the history has their events.",
        parameters=[docs.SUBSCRIPTION_ID, docs.CURSOR, docs.LIMIT],
        responses={200: DeadLetterPage},
    )
    def get(self, request: Request, subscription_id: str) -> Response:
        """List."""
        managed(subscription_id, self.principal)
        page = dead_letters_page(subscription_id, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [DeadLetterAnswer.of(one) for one in page.items])


class ReplayView(View):
    """Events that are sent again."""

    @extend_schema(
        operation_id="subscriptions_replay",
        summary="Send events again",
        description="Dead letters, or all events after one cursor up to another, whether they were delivered or not. What "
        "fails is a dead letter again.",
        parameters=[docs.SUBSCRIPTION_ID],
        request=PushReplaySerializer,
        responses={202: QueuedReplaysAnswer},
        examples=[
            OpenApiExample("All dead letters", value={}, request_only=True),
            OpenApiExample("Some dead letters", value={"dead_letters": [17, 18]}, request_only=True),
        ],
    )
    def post(self, request: Request, subscription_id: str) -> Response:
        """Send."""
        body = self.body(PushReplaySerializer)
        if "after" in body or "until" in body:
            if set(body) != {"after", "until"}:
                raise InvalidRequest("A range is `after` and `until`, without `dead_letters`.")
            count = range_replay(
                subscription_id=subscription_id,
                principal=self.principal,
                first=Cursor.parse(body["after"]).place,
                last=Cursor.parse(body["until"]).place,
            )
        else:
            count = dead_letters_replay(
                subscription_id=subscription_id, principal=self.principal, ids=body.get("dead_letters")
            )
        return Response(QueuedReplaysAnswer(dead_letters=count), status=202)
