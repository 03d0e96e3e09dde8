"""Metrics in the text format of Prometheus, read back with its own parser, and served on their own port."""

import asyncio
import math
import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.support.condition import DEADLINE

from freehold.errors import FreeholdError
from freehold.observe import metrics as metrics_module
from freehold.observe.metrics import MetricsRegistry
from freehold.observe.metrics_server import serve_metrics
from freehold.observe.process import add_process_metrics

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_counters_gauges_and_histograms_read_back_through_prometheus_own_parser() -> None:
    registry = MetricsRegistry()
    requests = registry.counter("http_requests_total", "Requests.\nBy route \\ code.", ["route", "code"])
    requests.inc(route="/ready", code="200")
    requests.inc(2, route="/ready", code="503")
    registry.gauge("sessions_open", "Sessions.").set(3)
    registry.gauge("sessions_open", "Sessions.").dec()
    latency = registry.histogram("turn_seconds", "Turns.", ["agent"], buckets=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        latency.observe(value, agent="claude")
    families = {family.name: family for family in text_string_to_metric_families(registry.expose())}
    assert families["http_requests"].type == "counter"
    assert families["http_requests"].documentation == "Requests.\nBy route \\ code."
    assert families["turn_seconds"].type == "histogram"
    samples = parsed(registry.expose())
    assert samples["http_requests_total", (("code", "503"), ("route", "/ready"))] == 2
    assert samples["sessions_open", ()] == 2
    buckets = [samples["turn_seconds_bucket", (("agent", "claude"), ("le", bound))] for bound in ("0.1", "1.0", "+Inf")]
    assert buckets == [2, 3, 4]
    assert samples["turn_seconds_count", (("agent", "claude"),)] == 4
    assert samples["turn_seconds_sum", (("agent", "claude"),)] == pytest.approx(7.65)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False))
def test_any_label_value_and_number_survives(label: str, value: float) -> None:
    registry = MetricsRegistry()
    registry.gauge("thing", "A thing.", ["name"]).set(value, name=label)
    assert parsed(registry.expose()) == {("thing", (("name", label),)): value}


def test_a_lone_surrogate_or_nan_does_not_break_the_page() -> None:
    registry = MetricsRegistry()
    registry.gauge("thing", "A thing.", ["name"]).set(math.nan, name="a\udcff")
    assert math.isnan(parsed(registry.expose())["thing", (("name", "a?"),)])


def test_wrong_use_is_refused() -> None:
    registry = MetricsRegistry()
    counter = registry.counter("things_total", "Things.", ["kind"])
    for act in (
        lambda: registry.counter("things", "No suffix."),
        lambda: registry.counter("Bad-Name_total", "Bad."),
        lambda: registry.gauge("things_total", "Another type.", ["kind"]),
        lambda: registry.counter("things_total", "Other labels.", ["other"]),
        lambda: counter.inc(-1, kind="a"),
        lambda: counter.inc(),
        lambda: counter.inc(other="a"),
        lambda: registry.histogram("h", "H.", ["le"]),
        lambda: registry.histogram("h", "H.", buckets=(2, 1)),
    ):
        with pytest.raises(ValueError):
            act()


def test_a_flood_of_label_values_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "MAX_SERIES", 10)
    registry = MetricsRegistry()
    counter = registry.counter("hosts_total", "Hosts.", ["host"])
    for number in range(1000):
        counter.inc(host=f"host-{number}")
    samples = parsed(registry.expose())
    assert len(samples) == 11
    assert samples["hosts_total", (("host", "other"),)] == 990


def test_threads_count_without_loss() -> None:
    counter = MetricsRegistry().counter("things_total", "Things.")

    def count() -> None:
        for _ in range(2000):
            counter.inc()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value() == 8000


def test_process_metrics_say_what_the_kernel_says() -> None:
    registry = MetricsRegistry()
    add_process_metrics(registry)
    add_process_metrics(registry)
    before = parsed(registry.expose())["process_open_fds", ()]
    with Path(os.devnull).open():
        samples = parsed(registry.expose())
        assert samples["process_open_fds", ()] == before + 1
    assert 1_000_000 < samples["process_resident_memory_bytes", ()] < samples["process_virtual_memory_bytes", ()]
    assert samples["process_cpu_seconds_total", ()] > 0
    assert samples["process_max_fds", ()] > 0
    assert 1.6e9 < samples["process_start_time_seconds", ()] < 1e10


async def ask(port: int, request: str) -> tuple[str, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return head, body


async def test_the_port_serves_the_page_and_nothing_else() -> None:
    registry = MetricsRegistry()
    registry.counter("things_total", "Things.").inc()
    async with serve_metrics("127.0.0.1", 0, registry) as port:
        head, body = await ask(port, f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
        assert head.startswith("HTTP/1.1 200 OK")
        assert "text/plain; version=0.0.4" in head
        assert parsed(body) == {("things_total", ()): 1.0}
        assert (await ask(port, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))[1] == ""
        assert (await ask(port, "GET / HTTP/1.1\r\nHost: [::1]:1\r\n\r\n"))[0].startswith("HTTP/1.1 404")
        assert (await ask(port, "POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))[0].startswith("HTTP/1.1 405")
        assert await ask(port, "GET /metrics HTTP/1.1\r\n" + "x" * 20_000 + "\r\n\r\n") == ("", "")


async def test_a_web_page_cannot_read_metrics_by_dns_rebinding() -> None:
    async with serve_metrics("127.0.0.1", 0, MetricsRegistry()) as port:
        head, body = await ask(port, f"GET /metrics HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n")
    assert head.startswith("HTTP/1.1 421")
    assert "things" not in body


async def test_a_silent_connection_does_not_delay_the_stop() -> None:
    async with asyncio.timeout(DEADLINE):
        async with serve_metrics("127.0.0.1", 0, MetricsRegistry()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await ask(port, "GET /metrics HTTP/1.1\r\n\r\n")  # the silent one was accepted before this was answered
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_port_in_use_is_explained_with_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(FreeholdError) as refused:
        async with serve_metrics("127.0.0.1", other.getsockname()[1], MetricsRegistry()):
            pass
    assert refused.value.code == "observe.port-in-use"
    assert "observe.metrics_port" in refused.value.hint
