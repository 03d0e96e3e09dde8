"""A local receiver of OpenTelemetry traces (OTLP over HTTP)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True)
class ReceivedSpan:
    """One span. `parent` is empty for the first span of a trace."""

    program: str
    name: str
    kind: int
    trace: str
    id: str
    parent: str
    attributes: dict[str, str | int | bool | float]
    failed: bool


class TraceReceiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Receive)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, body: bytes) -> None:
        self._bodies.append(body)

    @property
    def spans(self) -> list[ReceivedSpan]:
        """All that were received so far."""
        return [span for body in list(self._bodies) for span in _read_spans(body)]


class _Receive(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, TraceReceiver)
        assert self.path == "/v1/traces"
        self.server.add(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def _read_spans(body: bytes) -> Iterator[ReceivedSpan]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        about = {item.key: item.value.string_value for item in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield ReceivedSpan(
                    program=about["service.name"],
                    name=span.name,
                    kind=span.kind,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    attributes={item.key: _read_value(item.value) for item in span.attributes},
                    failed=span.status.code == 2,
                )


def _read_value(value: AnyValue) -> str | int | bool | float:
    found: str | int | bool | float = getattr(value, value.WhichOneof("value") or "string_value")
    return found


@contextmanager
def receive_traces() -> Iterator[TraceReceiver]:
    with TraceReceiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
