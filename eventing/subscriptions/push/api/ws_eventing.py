"""The event source of each rendezvous point, and the manager of each subscription, of WS-Eventing.

    POST /api/v1/rps/RP/ws-eventing                       Subscribe
    POST /api/v1/subscriptions/ID/ws-eventing/KEY         Renew, GetStatus, Unsubscribe
    GET  of either, with ?wsdl, ?wsdl=2004 or ?wsdl=2004-2004    WSDL 1.1

Plain Django views: a SOAP message is answered by a SOAP message, whatever is wrong with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, TypedDict
from urllib.parse import quote

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from eventing.access.api.authentication import TokenAuthentication
from eventing.access.verification.verifier import verifier
from eventing.client_address import request_address
from eventing.conf import config
from eventing.core.errors import (
    TOKEN_NEEDED,
    ApplicationError,
    Forbidden,
    Gone,
    InvalidRequest,
    MethodNotAllowed,
    Moved,
    NotFound,
    Unauthenticated,
)
from eventing.core.principals import ANONYMOUS, Principal
from eventing.rest.problems import error_of, problem
from eventing.store.errors import RedisError
from eventing.subscriptions.push.services import ws_eventing as services
from eventing.subscriptions.push.ws_eventing.answers import (
    renew_answer,
    status_answer,
    subscribe_answer,
    unsubscribe_answer,
)
from eventing.subscriptions.push.ws_eventing.dialects import (
    ADDRESSING_2004,
    ADDRESSING_2005,
    EVENTING_2004,
    EVENTING_2011,
    SOAP_11,
    SOAP_12,
    Addressing,
    EventingDialect,
    MessageForm,
    SoapVersion,
)
from eventing.subscriptions.push.ws_eventing.faults import (
    ACTION_UNKNOWN,
    REFUSED,
    UNABLE,
    UNABLE_TO_RENEW,
    VERSION_MISMATCH,
    FaultRaised,
    fault_message,
    fault_status,
    unaddressed_fault,
)
from eventing.subscriptions.push.ws_eventing.requests import (
    GetStatus,
    Renew,
    RequestFault,
    SinkRequest,
    Subscribe,
    Unsubscribe,
    read_request,
)
from eventing.subscriptions.push.ws_eventing.wsdl import wsdl_document
from eventing.subscriptions.push.ws_eventing.xml_documents import MalformedXml, UnknownEnvelope

WSDL_TYPE = "text/xml; charset=utf-8"
_WSDL: Mapping[str, tuple[EventingDialect, Addressing]] = {
    "": (EVENTING_2011, ADDRESSING_2005),
    "2011": (EVENTING_2011, ADDRESSING_2005),
    "2004": (EVENTING_2004, ADDRESSING_2005),
    "2004-2004": (EVENTING_2004, ADDRESSING_2004),
}
"""Dialect and version of addressing by the value of `wsdl`."""
_HTTP_REFUSALS = (Unauthenticated, Forbidden, NotFound, Gone)
_UNEXPECTED = (ApplicationError, RedisError, OperationalError, InterfaceError)


class WsdlAddresses(TypedDict, total=False):
    """WsdlAddresses that a WSDL states."""

    source: str
    manager: str


@method_decorator(csrf_exempt, name="dispatch")
class SoapView(View):
    """An address that takes SOAP messages and serves its WSDL."""

    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest, **where: str) -> HttpResponse:
        """Serve the WSDL, to everybody and without a look at what is there: it states only the address itself."""
        wanted = request.GET.get("wsdl")
        found = _WSDL.get(wanted) if wanted is not None else None
        if found is None:
            return problem(InvalidRequest("Post a SOAP message here, or get ?wsdl, ?wsdl=2004 or ?wsdl=2004-2004."))
        address = f"{config().base_url}{quote(request.path)}"
        return HttpResponse(wsdl_document(found[0], found[1], **self.addresses(address)), content_type=WSDL_TYPE)

    def post(self, request: HttpRequest, **where: str) -> HttpResponseBase:
        """Answer a message. The token is verified before the message is judged."""
        asked, principal = _read(request.body), ANONYMOUS
        try:
            principal = _principal(request)
            match asked:
                case SinkRequest():
                    return self.served(asked, principal, request, where)
                case RequestFault():
                    return _fault(asked, asked.form, asked.message_id)
                case _:
                    return _malformed(asked, _soap(request))
        except _UNEXPECTED as raised:
            error = error_of(raised)
            if error is None:
                raise
            if isinstance(error, NotFound | Gone) and principal.anonymous:
                error = Unauthenticated(TOKEN_NEEDED)  # a stranger does not learn what exists
            return _refusal(error, asked, request)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer as the REST interface does."""
        answer = problem(MethodNotAllowed("Post a SOAP message here, or get ?wsdl."))
        answer["Allow"] = "GET, POST"
        return answer

    def served(
        self, asked: SinkRequest, principal: Principal, request: HttpRequest, where: dict[str, str]
    ) -> HttpResponse:
        """Answer a well-formed request, with a fault if it is refused."""
        try:
            return _message(asked.form.soap, self.answer(asked, principal, request, where), 200)
        except FaultRaised as fault:
            return _fault(fault, asked.form, asked.message_id)

    def addresses(self, address: str) -> WsdlAddresses:
        """Return the argument of the WSDL that states this address."""
        raise NotImplementedError

    def answer(self, asked: SinkRequest, principal: Principal, request: HttpRequest, where: dict[str, str]) -> bytes:
        """Do what is asked and make the answer. Raises FaultRaised, ApplicationError."""
        raise NotImplementedError


class EventSourceView(SoapView):
    """The event source of a rendezvous point."""

    def addresses(self, address: str) -> WsdlAddresses:
        """State the source's service."""
        return {"source": address}

    def answer(self, asked: SinkRequest, principal: Principal, request: HttpRequest, where: dict[str, str]) -> bytes:
        """Subscribe."""
        if not isinstance(asked.body, Subscribe):
            raise FaultRaised(ACTION_UNKNOWN, "An event source takes Subscribe; the others go to the manager.")
        address = request_address(request)
        subscription, granted = services.sink_subscribe(
            reference=where["reference"],
            principal=services.stranger(address) if principal.anonymous else principal,
            form=asked.form,
            wish=asked.body,
            requester=address,
        )
        manager = services.manager_address(subscription)
        return subscribe_answer(asked, message_id=_fresh_id(), manager=manager, granted=granted)


class SubscriptionManagerView(SoapView):
    """The manager of a subscription."""

    def addresses(self, address: str) -> WsdlAddresses:
        """State the manager's service."""
        return {"manager": address}

    def answer(self, asked: SinkRequest, principal: Principal, request: HttpRequest, where: dict[str, str]) -> bytes:
        """Renew, state the remaining lease, or end."""
        of: dict[str, Any] = {**where, "principal": principal}
        match asked.body:
            case Renew():
                granted = services.sink_renew(**of, form=asked.form, wish=asked.body)
                return renew_answer(asked, message_id=_fresh_id(), granted=granted)
            case GetStatus():
                return status_answer(asked, message_id=_fresh_id(), remaining=services.sink_status(**of))
            case Unsubscribe():
                services.sink_unsubscribe(**of)
                return unsubscribe_answer(asked, message_id=_fresh_id())
            case _:
                raise FaultRaised(ACTION_UNKNOWN, "A subscription manager takes Renew, GetStatus and Unsubscribe.")


def _read(body: bytes) -> SinkRequest | RequestFault | MalformedXml:
    try:
        return read_request(body)
    except (MalformedXml, RequestFault) as wrong:
        return wrong


def _principal(request: HttpRequest) -> Principal:
    """Return the principal of a request; a stranger where some policy admits one. Raises Unauthenticated."""
    authenticated = TokenAuthentication().authenticate(request)  # type: ignore[arg-type]  # it reads META and GET only
    if authenticated is None:
        return verifier().verify("")
    request.user = authenticated[0]  # type: ignore[assignment]  # for the audit and the access records
    return authenticated[0].principal


def _refusal(
    error: ApplicationError, asked: SinkRequest | RequestFault | MalformedXml, request: HttpRequest
) -> HttpResponse:
    """Answer with a fault and, where HTTP has a status of its own for the refusal, that status."""
    if isinstance(asked, MalformedXml):
        soap = _soap(request)
        answer = _message(soap, unaddressed_fault(soap, FaultRaised(REFUSED, error.detail)), error.status)
    elif isinstance(error, (*_HTTP_REFUSALS, Moved)):
        answer = _fault(FaultRaised(REFUSED, error.detail), asked.form, asked.message_id, error.status)
    else:
        renewal = isinstance(asked, SinkRequest) and isinstance(asked.body, Renew)
        kind = UNABLE_TO_RENEW if renewal else UNABLE
        fault = FaultRaised(kind, error.detail, retry_after_s=error.retry_after_s)
        answer = _fault(fault, asked.form, asked.message_id)
    if error.status == Unauthenticated.status:
        answer["WWW-Authenticate"] = f'Bearer realm="{config().domain}"'
    if error.retry_after_s is not None:
        answer["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, Moved):
        answer["Location"] = f"{error.extra['to'][0]}{request.path}"
    return answer


def _malformed(wrong: MalformedXml, soap: SoapVersion) -> HttpResponse:
    kind = VERSION_MISMATCH if isinstance(wrong, UnknownEnvelope) else REFUSED
    fault = FaultRaised(kind, f"The message is refused: {wrong}.")
    return _message(soap, unaddressed_fault(soap, fault), 400 if soap is SOAP_12 and kind is REFUSED else 500)


def _fault(fault: FaultRaised, form: MessageForm, message_id: str, status: int = 0) -> HttpResponse:
    content = fault_message(form, fault, message_id=_fresh_id(), relates_to=message_id)
    return _message(form.soap, content, status or fault_status(form, fault))


def _message(soap: SoapVersion, content: bytes, status: int) -> HttpResponse:
    return HttpResponse(content, content_type=soap.content_type, status=status)


def _soap(request: HttpRequest) -> SoapVersion:
    """Return the version of SOAP that the media type states."""
    return SOAP_11 if (request.content_type or "").lower() == "text/xml" else SOAP_12


def _fresh_id() -> str:
    return uuid.uuid4().urn
