"""What operators have done at once about the exchange with a peer: it is tried again, or offered events again."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.events.cursors import CURSOR_CHARS_MAX
from eventing.core.names import NAME_CHARS_MAX
from eventing.peering.api.peer_operating import Nothing
from eventing.peering.api.peers import NAME, representation
from eventing.peering.selectors.peers import peer_row
from eventing.replication.operating import EARLIEST, replay, retry
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import Members, Text


class Replay(Members):
    """What is to be sent again."""

    rp = Text(min_length=1, max_length=NAME_CHARS_MAX, help_text="The rendezvous point, by id or name.")
    after = Text(
        required=False,
        default=EARLIEST,
        min_length=1,
        max_length=CURSOR_CHARS_MAX,
        help_text=f"A cursor of this domain's log, or {EARLIEST} (the default).",
    )


class PeerRetries(View):
    """Tries of a peer."""

    @extend_schema(
        operation_id="peers_retry",
        summary="Try a peer again now",
        description="For administrators and operators. Ends the waiting after failures, also where the delivery had stopped: "
        "the peer is greeted at once (`hello` in the answer says what came of it), and what waits for it is sent.",
        parameters=[NAME],
        request=Nothing,
        responses={200: docs.ref("Peer")},
        examples=[OpenApiExample("As it is", value={}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Try."""
        self.body(Nothing)
        return Response(representation(retry(principal=self.principal, name=name)))


class PeerReplays(View):
    """Events sent again."""

    @extend_schema(
        operation_id="peers_replay",
        summary="Offer a peer events again",
        description="For administrators and operators: what this domain holds of a rendezvous point after a cursor, as if the "
        "peer had never said to hold it. Events that it has are not stored twice there.",
        parameters=[NAME],
        request=Replay,
        responses={202: docs.ref("PeerReplay")},
        examples=[
            OpenApiExample("Everything that is held", value={"rp": docs.ID_EXAMPLE}, request_only=True),
            OpenApiExample("After a cursor", value={"rp": docs.ID_EXAMPLE, "after": "f2h5ue7q:120"}, request_only=True),
        ],
    )
    def post(self, request: Request, name: str) -> Response:
        """Send again."""
        body = self.body(Replay)
        replay(principal=self.principal, name=name, reference=body["rp"], after=body["after"])
        return Response({"peer": peer_row(name).name, "rp": body["rp"], "after": body["after"]}, status=202)
