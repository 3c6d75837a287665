"""Spans, if an address for them is configured (HERALD_OTLP_URL or OTEL_EXPORTER_OTLP_ENDPOINT); otherwise without any
cost.

`start` decides once, when a process begins. While tracing is off, no module of OpenTelemetry is imported, no context is
read and nothing on the hot path checks for it: gateway/observation/tracing.py substitutes classes only when it is on.

Propagation: an HTTP request by its `traceparent` header, also between domains; an event by its own `traceparent`
attribute (the distributed tracing extension of CloudEvents), which no gateway changes. So one trace can reach from a
publisher at one domain to the delivery at another. A trace's id decides whether it is sampled (HERALD_TRACE_PERCENT):
domains with the same share sample the same traces, and a client cannot force more to be sampled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from eventing.core.container import per_process
from eventing.core.decoding import Undecodable, json_reader

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, Tracer

    from eventing.core.config import Config

LINKS_MAX = 64  # bound: links of a span; a batch's span links the first traces
"""Links of one span: for a larger batch, those of its first events."""

EVENTS_READ_MAX = 256  # bound: events of a batch that are searched for a trace; the others are not searched
"""Events of one batch that are examined for a trace."""

STOP_S = 2.0
"""Seconds for sending the last spans at the end; a slower collector misses them."""

Kind = Literal["server", "client", "producer", "consumer", "internal"]
Attributes = Mapping[str, str | int | float | bool]


class _TraceMembers(msgspec.Struct, gc=False):
    """Trace context in an event: attributes of the distributed tracing extension, of whatever type."""

    traceparent: Any = None
    tracestate: Any = None


_decode = json_reader(_TraceMembers)


class _Tracing:
    """Tracer of this process and its provider; None while off."""

    tracer: Tracer | None = None
    provider: Any = None


_tracing = per_process(_Tracing)


def endpoint(config: Config, environment: Mapping[str, str] = os.environ) -> str:
    """Address to which spans are sent, without a slash at the end; empty for none."""
    return (config.otlp_url or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")).rstrip("/")


def is_on() -> bool:
    """Return True if this process makes spans."""
    return _tracing().tracer is not None


def start(config: Config, process: str) -> bool:
    """Start making spans in this process, if an address for them is configured; return whether it is. Harmless when
    repeated.

    Args:
        process: name of the process in the domain.
    """
    url, held = endpoint(config), _tracing()
    if not url or held.tracer is not None:
        return bool(url)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    share = TraceIdRatioBased(config.trace_percent / 100)
    resource = Resource.create(
        {
            "service.name": "herald",
            "service.namespace": config.domain,
            "service.instance.id": f"{process}-{os.getpid()}",
        }
    )
    sampler = ParentBased(root=share, remote_parent_sampled=share)
    held.provider = TracerProvider(resource=resource, sampler=sampler, shutdown_on_exit=False)
    held.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{url}/v1/traces")))
    held.tracer = held.provider.get_tracer("herald")
    return True


def stop() -> None:
    """Stop making spans, and send the remaining ones, for at most STOP_S."""
    held = _tracing()
    provider, held.tracer, held.provider = held.provider, None, None
    if provider is not None:
        sending = threading.Thread(target=provider.shutdown, name="last-spans", daemon=True)
        sending.start()
        sending.join(STOP_S)


def trace_id() -> str:
    """Return the current trace's id, 32 hex digits; empty while off or outside of a trace."""
    if not is_on():
        return ""
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    return format(context.trace_id, "032x") if context.is_valid else ""


def headers() -> dict[str, str]:
    """Return the headers that propagate the current trace; none while off or outside of a trace."""
    carried: dict[str, str] = {}
    if is_on():
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(carried)
    return carried


def carried_by(traceparent: str, tracestate: str = "") -> Context:
    """Extract the context from these header values; an empty one if they are malformed. Only while tracing is on."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract(
        {"traceparent": traceparent, **({"tracestate": tracestate} if tracestate else {})}, context=Context()
    )


@contextmanager
def span(
    name: str,
    kind: Kind = "internal",
    *,
    parent: Context | None = None,
    links: Sequence[Link] = (),
    attributes: Attributes | None = None,
) -> Iterator[Span | None]:
    """Run the block within a span, which is current in it; None while off.

    Args:
        parent: parent of the span; None for the current span.
        attributes: never an event's data, a token or a query.
    """
    tracer = _tracing().tracer
    if tracer is None:
        yield None
        return
    from opentelemetry.trace import SpanKind

    with tracer.start_as_current_span(
        name, context=parent, kind=SpanKind[kind.upper()], links=list(links)[:LINKS_MAX], attributes=attributes
    ) as made:
        yield made


def of_events(bodies: Iterable[bytes]) -> tuple[Context | None, list[Link]]:
    """Read the traces of some events: the first event's context, as parent of a span, and links to all of them.

    None and no links for events without the attribute. Only while tracing is on.
    """
    from opentelemetry import trace

    found: dict[str, Context] = {}
    for number, body in enumerate(bodies):
        if number == EVENTS_READ_MAX or len(found) == LINKS_MAX:
            break
        if b'"traceparent"' not in body:
            continue
        said = _trace_members(body)
        if isinstance(said.traceparent, str) and said.traceparent not in found:
            state = said.tracestate if isinstance(said.tracestate, str) else ""
            found[said.traceparent] = carried_by(said.traceparent, state)
    contexts = [(one, trace.get_current_span(one).get_span_context()) for one in found.values()]
    contexts = [(one, of) for one, of in contexts if of.is_valid]
    return (contexts[0][0] if contexts else None), [trace.Link(of) for _, of in contexts]


def _trace_members(body: bytes) -> _TraceMembers:
    try:
        return _decode(body)
    except Undecodable:
        return _TraceMembers()


def link_here() -> Link | None:
    """Make a link to the current span; None while off or outside of a trace."""
    if not is_on():
        return None
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    return trace.Link(context) if context.is_valid else None


def parent_of(link: Link) -> Context:
    """Return the context of a linked span, as parent of another."""
    from opentelemetry import trace

    return trace.set_span_in_context(trace.NonRecordingSpan(link.context))


def attributes_set(**attributes: str) -> None:
    """Set attributes of the current span, if there is one; a `state` other than SUCCESS is an error."""
    if is_on():
        from opentelemetry import trace

        span = trace.get_current_span()
        span.set_attributes({f"herald.{name}": value for name, value in attributes.items()})
        if attributes.get("state", "SUCCESS") != "SUCCESS":
            span.set_status(trace.StatusCode.ERROR)
