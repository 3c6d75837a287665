"""A collector of spans: a small HTTP server that takes OTLP as the exporters send it, and keeps what it decodes."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """One span; `domain` and `process` are of who made it, `links` the ids of spans (trace, span) it is linked to."""

    domain: str
    process: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any] = field(hash=False)
    links: list[tuple[str, str]] = field(hash=False)


class Collector:
    """Listens on a port of its own while it is entered."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self.raw = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    content = gzip.decompress(content)
                assert self.path == "/v1/traces", self.path
                collector._take(content)
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def spans(self) -> list[Span]:
        """What has come so far."""
        return list(self._spans)

    def of(self, trace: str, name: str = "", domain: str = "") -> list[Span]:
        """The spans of a trace, of one name or domain if asked."""
        return [
            span
            for span in self.spans
            if span.trace == trace and span.name.startswith(name) and span.domain.startswith(domain)
        ]

    def _take(self, content: bytes) -> None:
        self.raw += content
        request = ExportTraceServiceRequest.FromString(content)
        for resource in request.resource_spans:
            of = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                self._spans += [_span(of, span) for span in scope.spans]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _span(of: dict[str, str], span: Any) -> Span:
    attributes = {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}
    links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
    domain, process = of["service.namespace"], of["service.instance.id"].rpartition("-")[0]
    return Span(
        domain,
        process,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        attributes,
        links,
    )
