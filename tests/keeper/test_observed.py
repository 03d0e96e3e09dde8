"""The metrics and traces of a running Freehold."""

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from urllib.error import HTTPError

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.condition import DEADLINE, wait_until
from tests.support.freehold import ROOT, FreeholdHarness

from freehold.gateway.application import describe_app


class Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.received: Queue[bytes] = Queue()
        super().__init__(("127.0.0.1", 0), _Receive)

    def spans(self) -> set[tuple[str, str]]:
        """Program and name of every span that came."""
        found = set()
        while not self.received.empty():
            for resource in ExportTraceServiceRequest.FromString(self.received.get()).resource_spans:
                about = {item.key: item.value.string_value for item in resource.resource.attributes}
                found |= {(about["service.name"], one.name) for scope in resource.scope_spans for one in scope.spans}
        return found


class _Receive(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        self.server.received.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def fetch(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=DEADLINE) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def parse(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """The value of every metric by its name and the values of its labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def fetch_complete(port: int) -> str:
    """All metrics, or nothing yet: a request is counted after its answer, and egress may start after the gateway."""
    text = fetch(port, "/metrics")[1]
    samples = parse(text)
    is_counted = ("freehold_http_requests_total", ("401", "GET", "refused")) in samples
    return text if is_counted and samples.get(("freehold_component", ("egress", "ok"))) == 1 else ""


def test_metrics_cover_requests_programs_and_the_computer_and_traces_cover_boot_and_requests(tmp_path: Path) -> None:
    with receiving() as receiver:
        harness = FreeholdHarness(tmp_path, FREEHOLD_OBSERVE_OTLP_ENDPOINT=f"http://127.0.0.1:{receiver.server_port}")
        with harness.keeper() as keeper:
            keeper.next("ready")
            statuses: list[int] = []

            def is_ready() -> bool:  # the gateway answers a moment before it has reached the computer
                statuses.append(fetch(harness.gateway_port, "/ready")[0])
                return statuses[-1] == 200

            wait_until(is_ready)
            assert fetch(harness.gateway_port, "/v1/no-such-thing?secret=hidden")[0] == 401
            text = wait_until(lambda: fetch_complete(harness.metrics_port))
            keeper.process.terminate()
            keeper.next("stopped")
            keeper.process.wait(timeout=60)
        sent = receiver.spans()
    samples = parse(text)
    assert samples["freehold_ready", ()] == 1
    assert samples["freehold_keeper_answers", ()] == 1
    assert samples["freehold_http_requests_total", ("/ready", "200", "GET")] == 1
    assert samples["freehold_http_requests_total", ("401", "GET", "refused")] == 1
    assert samples["freehold_http_request_seconds_count", ("/ready",)] == len(statuses)
    assert samples["freehold_program", ("computer", "ready")] == 1
    assert samples["freehold_program_restarts_total", ("gateway",)] == 0
    assert samples["freehold_program_resident_bytes", ("keeper",)] > 1e6
    assert samples["freehold_computer_usage", ("processes",)] >= 1
    assert samples["freehold_component", ("egress", "ok")] == 1
    assert samples["freehold_component", ("history", "ok")] == 1
    assert samples["freehold_timeline_events_total", ()] > 5
    assert samples["process_resident_memory_bytes", ()] > 1e6
    assert "hidden" not in text
    guide = (ROOT / "docs" / "guides" / "running.md").read_text()
    exported = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE freehold_")}
    assert [name for name in sorted(exported) if name not in guide] == []
    assert {("freehold-keeper", f"boot.{stage}") for stage in ("history", "computer", "gateway", "seal")} <= sent
    assert ("freehold-gateway", "http.request") in sent


def test_the_framework_adds_no_telemetry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its telemetry would send bodies and tracebacks wherever the environment says, past every mask."""
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    assert describe_app()._native_telemetry.enabled() is False
    assert describe_app()._telemetry["auto_configure"] is False
