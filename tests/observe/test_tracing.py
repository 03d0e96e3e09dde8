"""OpenTelemetry is not loaded until an endpoint is set; then spans arrive there."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret
from freehold.observe.tracing import configure_tracing, shutdown_tracing, span


def test_without_an_endpoint_nothing_is_imported_and_a_span_is_one_shared_object() -> None:
    code = """
import sys
from freehold.observe.tracing import configure_tracing, shutdown_tracing, span
configure_tracing(None)
with span("turn", agent="claude") as outer, span("tool") as inner:
    outer.set("x", 1)
    assert outer is inner
shutdown_tracing()
print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "requests", "google"))))
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "[]\n"


def test_without_the_extra_the_error_says_how_to_get_it() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from freehold.errors import FreeholdError
from freehold.observe.tracing import configure_tracing
try:
    configure_tracing("http://127.0.0.1:4318")
except FreeholdError as error:
    print(error.code, error.hint)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("observe.no-otel pip install 'freehold[otel]'")


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:4318", "ftp://x", "http://"])
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(FreeholdError) as refused:
        configure_tracing(endpoint)
    assert refused.value.code == "observe.bad-endpoint"


class Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.received: Queue[tuple[str, bytes]] = Queue()
        super().__init__(("127.0.0.1", 0), _Receive)


class _Receive(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Receiver)
        self.server.received.put((self.path, body))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            shutdown_tracing()
            server.shutdown()
            thread.join()


def spans_sent(receiver: Receiver) -> dict[str, WireSpan]:
    path, body = receiver.received.get(timeout=20)
    assert path == "/v1/traces"
    request = ExportTraceServiceRequest.FromString(body)
    return {
        found.name: found
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for found in scope.spans
    }


def test_spans_arrive_nested_and_masked(receiver: Receiver) -> None:
    configure_tracing(f"http://127.0.0.1:{receiver.server_port}", program="gateway")
    with span("turn", agent="claude", key=Secret("by-type-secret"), count=3) as outer:
        outer.set("header", "Bearer by-shape-secret")
        with pytest.raises(ValueError), span("tool"):
            raise ValueError("refused fh_by-message-secret")
    shutdown_tracing()
    sent = spans_sent(receiver)
    assert set(sent) == {"turn", "tool"}
    assert sent["tool"].parent_span_id == sent["turn"].span_id
    attributes = {item.key: item.value for item in sent["turn"].attributes}
    assert attributes["agent"].string_value == "claude"
    assert attributes["count"].int_value == 3
    assert sent["tool"].status.code == 2
    assert "-secret" not in str(sent)
    with span("after the end") as nothing:
        nothing.set("x", 1)
    assert receiver.received.empty()
