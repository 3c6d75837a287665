"""/api/v1/alarms and /api/v1/watches: alarms, their acknowledgement, and the domain's watch rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_field
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.core.roles import oversees
from eventing.core.timestamps import timestamp
from eventing.operations.rules.alarms import MUTE_S_MAX, MUTE_S_MIN, NOTE_CHARS_MAX
from eventing.operations.selectors.alarms import STATES, alarms_page
from eventing.operations.services.alarm_mutes import alarm_mute, alarm_unmute
from eventing.operations.services.alarms import alarm_acknowledge, alarm_answer
from eventing.operations.shapes import AlarmAnswer, AlarmPage, DomainWatchesAnswer
from eventing.rest import documents as docs
from eventing.rest.base import View, etag, page_answer
from eventing.rest.fields import JsonDocument, NothingSerializer, StrictInteger, StrictObject, StrictString
from eventing.rps.rules import watches
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.selectors.watches import domain_watches
from eventing.rps.services.permission import require
from eventing.rps.services.watches import domain_watches_replace

STATE = OpenApiParameter("state", str, enum=list(STATES), description="`open` (the default): alarms in force.")
RP = OpenApiParameter("rp", str, description="Only alarms of this rendezvous point, by id or name.")
ALARM_ID = OpenApiParameter("alarm_id", {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"}, OpenApiParameter.PATH)


class AcknowledgementSerializer(StrictObject):
    """An acknowledgement with a note."""

    note = StrictString(
        required=False, allow_blank=True, default="", max_length=NOTE_CHARS_MAX, help_text="A note for people."
    )


class MuteSerializer(StrictObject):
    """A mute."""

    for_s = StrictInteger(min_value=MUTE_S_MIN, max_value=MUTE_S_MAX, help_text="Seconds from now.")
    reason = StrictString(
        required=False, allow_blank=True, default="", max_length=NOTE_CHARS_MAX, help_text="Reason, for the audit."
    )


@extend_schema_field(watches.schema(domain=True))
class DomainWatchField(JsonDocument):
    """Watch rules of the domain."""


class DomainWatchesRequestSerializer(StrictObject):
    """The domain's rules."""

    watch = DomainWatchField(help_text="The complete list: rules that are not in it are removed.")


class AlarmsView(View):
    """List of alarms."""

    @extend_schema(
        operation_id="alarms_list",
        summary="List alarms",
        description="Newest first. All alarms of the domain for administrators, operators and viewers; with `rp` also "
        "for principals with `administer` at that rendezvous point. Cleared alarms are kept for 30 days, 10,000 "
        "at most.",
        parameters=[STATE, RP, docs.CURSOR, docs.LIMIT],
        responses={200: AlarmPage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        reference = self.query("rp")
        if reference is None:
            require_overseer(self.principal)
            rp = None
        else:
            descriptor = descriptor_get(reference)
            if not oversees(self.principal):
                require(descriptor, self.principal, "administer")
            rp = descriptor.id
        page = alarms_page(state=self.query("state") or "open", rp=rp, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [alarm_answer(row) for row in page.items])


class AlarmAcknowledgementsView(View):
    """Acknowledgement of an alarm."""

    @extend_schema(
        operation_id="alarms_acknowledge",
        summary="Acknowledge an alarm",
        description="States that you take care of the alarm; for administrators and operators. The alarm stays open "
        "until its rule is kept again; a `lasting` alarm is cleared. Acknowledging again changes the note.",
        parameters=[ALARM_ID],
        request=AcknowledgementSerializer,
        responses={200: AlarmAnswer},
        examples=[OpenApiExample("With a note", value={"note": "the meter is being replaced"}, request_only=True)],
    )
    def post(self, request: Request, alarm_id: str) -> Response:
        """Acknowledge."""
        row = alarm_acknowledge(alarm_id=alarm_id, principal=self.principal, **self.body(AcknowledgementSerializer))
        return Response(alarm_answer(row))


class AlarmMutesView(View):
    """The mute of an alarm."""

    @extend_schema(
        operation_id="alarms_mute",
        summary="Mute an alarm",
        description="Nobody is notified of the alarm for so long, nor when it is cleared and raised again meanwhile; for "
        "administrators and operators. It stays listed. Muting again changes time and reason.",
        parameters=[ALARM_ID],
        request=MuteSerializer,
        responses={200: AlarmAnswer},
        examples=[OpenApiExample("For two hours", value={"for_s": 7200, "reason": "planned work"}, request_only=True)],
    )
    def post(self, request: Request, alarm_id: str) -> Response:
        """Mute."""
        row = alarm_mute(alarm_id=alarm_id, principal=self.principal, **self.body(MuteSerializer))
        return Response(alarm_answer(row))


class AlarmUnmutesView(View):
    """The end of a mute."""

    @extend_schema(
        operation_id="alarms_unmute",
        summary="End the mute of an alarm",
        description="For administrators and operators.",
        parameters=[ALARM_ID],
        request=NothingSerializer,
        responses={200: AlarmAnswer},
        examples=[OpenApiExample("Nothing", value={}, request_only=True)],
    )
    def post(self, request: Request, alarm_id: str) -> Response:
        """Unmute."""
        self.body(NothingSerializer)
        return Response(alarm_answer(alarm_unmute(alarm_id=alarm_id, principal=self.principal)))


class DomainWatchesView(View):
    """The domain's watch rules."""

    http_method_names = ["get", "head", "put"]

    @extend_schema(
        operation_id="watches_get",
        summary="The domain's watch rules",
        description="For administrators, operators and viewers. Those of a rendezvous point are its member `watch`.",
        parameters=[docs.ETAG],
        responses={200: DomainWatchesAnswer},
    )
    def get(self, request: Request) -> Response:
        """Return the rules."""
        require_overseer(self.principal)
        row = domain_watches()
        return _watches(*(([], 0, None) if row is None else (row.watch, row.version, timestamp(row.changed_at))))

    @extend_schema(
        operation_id="watches_replace",
        summary="Replace the domain's watch rules",
        description="For administrators and operators. Alarms of removed and of changed rules are cleared.",
        parameters=[docs.IF_MATCH, docs.ETAG],
        request=DomainWatchesRequestSerializer,
        responses={200: DomainWatchesAnswer},
        examples=[
            OpenApiExample(
                "A peer that lags",
                value={"watch": [{"backlog": {"oldest_s": 300}, "severity": "critical", "for_s": 30}]},
                request_only=True,
            )
        ],
    )
    def put(self, request: Request) -> Response:
        """Replace."""
        row = domain_watches_replace(
            principal=self.principal, versions=self.expected_versions(), **self.body(DomainWatchesRequestSerializer)
        )
        return _watches(row.watch, row.version, timestamp(row.changed_at))


def _watches(watch: list[Any], version: int, changed_at: str | None) -> Response:
    document = DomainWatchesAnswer(watch=watch, version=version, changed_at=changed_at)
    return Response(document, headers=etag(version) if version else None)
