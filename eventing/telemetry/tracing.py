"""Spans, where an address for them is configured (HERALD_OTLP_URL or OTEL_EXPORTER_OTLP_ENDPOINT); else nothing at all.

`start` decides once, when a process begins. While it is off, no module of OpenTelemetry is imported, no context is read
and nothing on the hot path asks: gateway/observation/tracing.py puts other classes in place of the ordinary ones only when it is on.

How traces go on: an HTTP request by its `traceparent` header, also between domains; an event by its own `traceparent`
attribute (the distributed tracing extension of CloudEvents), which no gateway changes. So one trace can reach from a
publisher at one domain to the delivery at another. Which traces are kept is decided by their id (HERALD_TRACE_PERCENT):
all domains that keep the same share keep the same ones, and a client cannot have us keep more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from eventing.core.decoding import Undecodable, json_reader

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, Tracer

    from eventing.core.config import Config

LINKS_MAX = 64
"""Links of one span: a batch of more events tells of the first ones."""

EVENTS_READ_MAX = 256
"""Events of one batch that are looked at for a trace."""

STOP_S = 2.0
"""For the last spans to be sent; a collector that takes longer misses them."""

Kind = Literal["server", "client", "producer", "consumer", "internal"]
Attributes = Mapping[str, str | int | float | bool]


class _Said(msgspec.Struct, gc=False):
    """What an event says of its trace: attributes of the distributed tracing extension, of whatever type."""

    traceparent: Any = None
    tracestate: Any = None


_decode = json_reader(_Said)
_tracer: Tracer | None = None
_provider: Any = None


def endpoint(config: Config, environment: Mapping[str, str] = os.environ) -> str:
    """Where spans go, without a slash at the end; empty for nowhere."""
    return (config.otlp_url or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")).rstrip("/")


def is_on() -> bool:
    """Whether spans are made in this process."""
    return _tracer is not None


def start(config: Config, process: str) -> bool:
    """Make spans in this process from now on, if there is where to send them; whether there is. Harmless when repeated.

    Args:
        process: what the domain calls it.
    """
    global _tracer, _provider
    url = endpoint(config)
    if not url or _tracer is not None:
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
    _provider = TracerProvider(resource=resource, sampler=sampler, shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{url}/v1/traces")))
    _tracer = _provider.get_tracer("herald")
    return True


def stop() -> None:
    """Make no more spans, and send what there is; for at most STOP_S."""
    global _tracer, _provider
    provider, _tracer, _provider = _provider, None, None
    if provider is not None:
        sending = threading.Thread(target=provider.shutdown, name="last-spans", daemon=True)
        sending.start()
        sending.join(STOP_S)


def trace_id() -> str:
    """The trace of what is being done now, 32 hex digits; empty while off or outside of one."""
    if _tracer is None:
        return ""
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    return format(context.trace_id, "032x") if context.is_valid else ""


def headers() -> dict[str, str]:
    """The headers that carry the present trace on; none while off or outside of one."""
    carried: dict[str, str] = {}
    if _tracer is not None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(carried)
    return carried


def carried_by(traceparent: str, tracestate: str = "") -> Context:
    """The context that these two header values carry; an empty one if they are malformed. Only while on."""
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
    """A span around the block, current within it; None while off.

    Args:
        parent: what it belongs to; None for what is being done now.
        attributes: never an event's data, a token or a query.
    """
    if _tracer is None:
        yield None
        return
    from opentelemetry.trace import SpanKind

    with _tracer.start_as_current_span(
        name, context=parent, kind=SpanKind[kind.upper()], links=list(links)[:LINKS_MAX], attributes=attributes
    ) as made:
        yield made


def of_events(bodies: Iterable[bytes]) -> tuple[Context | None, list[Link]]:
    """What some events say of their traces: the first one's context, to be a span's parent, and links to all of them.

    None and no links for events without the attribute. Only while on.
    """
    from opentelemetry import trace

    found: dict[str, Context] = {}
    for number, body in enumerate(bodies):
        if number == EVENTS_READ_MAX or len(found) == LINKS_MAX:
            break
        if b'"traceparent"' not in body:
            continue
        said = _said(body)
        if isinstance(said.traceparent, str) and said.traceparent not in found:
            state = said.tracestate if isinstance(said.tracestate, str) else ""
            found[said.traceparent] = carried_by(said.traceparent, state)
    contexts = [(one, trace.get_current_span(one).get_span_context()) for one in found.values()]
    contexts = [(one, of) for one, of in contexts if of.is_valid]
    return (contexts[0][0] if contexts else None), [trace.Link(of) for _, of in contexts]


def _said(body: bytes) -> _Said:
    try:
        return _decode(body)
    except Undecodable:
        return _Said()


def link_here() -> Link | None:
    """A link to what is being done now; None while off or outside of a trace."""
    if _tracer is None:
        return None
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    return trace.Link(context) if context.is_valid else None


def parent_of(link: Link) -> Context:
    """The context of a linked span, to be the parent of another."""
    from opentelemetry import trace

    return trace.set_span_in_context(trace.NonRecordingSpan(link.context))


def tell(**attributes: str) -> None:
    """Add to the present span, if there is one; a `state` other than SUCCESS is an error."""
    if _tracer is not None:
        from opentelemetry import trace

        span = trace.get_current_span()
        span.set_attributes({f"herald.{name}": value for name, value in attributes.items()})
        if attributes.get("state", "SUCCESS") != "SUCCESS":
            span.set_status(trace.StatusCode.ERROR)
