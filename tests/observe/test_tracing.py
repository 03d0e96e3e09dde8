"""OpenTelemetry is not loaded until an endpoint is set; then spans arrive there."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.support.trace_receiver import ReceivedSpan, TraceReceiver, receive_traces

from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret
from freehold.observe.tracing import (
    MAX_KEPT_PARENTS,
    begin_span,
    configure_tracing,
    current_span,
    drop_parent,
    find_parent,
    keep_parent,
    shutdown_tracing,
    span,
    trace_parent,
)


def test_without_an_endpoint_nothing_is_imported_and_a_span_is_one_shared_object() -> None:
    code = """
import sys
from freehold.observe.tracing import (
    MAX_KEPT_PARENTS,
    begin_span,
    configure_tracing,
    current_span,
    drop_parent,
    find_parent,
    keep_parent,
    shutdown_tracing,
    span,
    trace_parent,
)
configure_tracing(None)
with span("turn", {"agent": "claude"}) as outer, span("tool") as inner:
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
    assert printed.startswith(f"observe.no-otel {sys.executable} -m pip install 'freehold[otel]'")


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:4318", "ftp://x", "http://"])
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(FreeholdError) as refused:
        configure_tracing(endpoint)
    assert refused.value.code == "observe.bad-endpoint"


@pytest.fixture
def receiver() -> Iterator[TraceReceiver]:
    with receive_traces() as receiver:
        yield receiver
        shutdown_tracing()


def spans_sent(receiver: TraceReceiver) -> dict[str, ReceivedSpan]:
    shutdown_tracing()  # sends what waits
    return {found.name: found for found in receiver.spans}


def test_spans_arrive_nested_and_masked(receiver: TraceReceiver) -> None:
    configure_tracing(receiver.url, program="gateway")
    with span("turn", {"agent": "claude", "key": Secret("by-type-secret"), "count": 3}) as outer:
        outer.set("header", "Bearer by-shape-secret")
        with pytest.raises(ValueError), span("tool"):
            raise ValueError("refused fh_by-message-secret")
    sent = spans_sent(receiver)
    assert set(sent) == {"turn", "tool"}
    assert sent["tool"].parent == sent["turn"].id
    assert sent["turn"].attributes["agent"] == "claude"
    assert sent["turn"].attributes["count"] == 3
    assert sent["tool"].failed
    assert "-secret" not in str(sent)
    with span("after the end") as nothing:
        nothing.set("x", 1)
    assert len(receiver.spans) == 2


def test_a_parent_travels_as_text(receiver: TraceReceiver) -> None:
    """As from the gateway to the keeper. The span that is open here does not count."""
    configure_tracing(receiver.url)
    with span("asks"):
        parent = trace_parent()
    assert parent is not None
    with span("unrelated"), span("does", parent=parent, side="server"):
        begin_span("begun", {"x": 1}, parent=parent).end("went wrong")
    sent = spans_sent(receiver)
    assert sent["does"].parent == sent["begun"].parent == sent["asks"].id
    assert {sent[name].trace for name in ("asks", "does", "begun")} == {sent["asks"].trace}
    assert sent["unrelated"].trace != sent["asks"].trace
    assert sent["begun"].failed
    assert sent["begun"].attributes["error.type"] == "went wrong"


@pytest.mark.parametrize("text", ["", "x", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "00-" + "g" * 32, "\r\nx: y"])
def test_a_parent_that_is_not_one_is_ignored(receiver: TraceReceiver, text: str) -> None:
    configure_tracing(receiver.url)
    with span("outer"), span("inner", parent=text):
        pass
    sent = spans_sent(receiver)
    assert sent["inner"].parent in ("", sent["outer"].id)


def test_a_parent_is_kept_for_work_that_begins_later(receiver: TraceReceiver) -> None:
    configure_tracing(receiver.url)
    with span("prompt"):
        keep_parent("turn 1")
    with span("turn", parent=find_parent("turn 1")):
        current_span().set("tokens", 7)
    drop_parent("turn 1")
    drop_parent("turn 1")
    assert find_parent("turn 1") is None
    sent = spans_sent(receiver)
    assert sent["turn"].parent == sent["prompt"].id
    assert sent["turn"].attributes["tokens"] == 7


def test_kept_parents_are_bounded(receiver: TraceReceiver) -> None:
    configure_tracing(receiver.url)
    with span("prompt"):
        for number in range(MAX_KEPT_PARENTS + 10):
            keep_parent(str(number))
    assert find_parent("9") is None
    assert find_parent("10") is not None


def test_without_tracing_nothing_is_kept() -> None:
    with span("prompt"):
        keep_parent("1")
        assert trace_parent() is None
    assert find_parent("1") is None
    begin_span("x", {}).end()
    current_span().set("x", 1)
