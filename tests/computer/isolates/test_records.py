"""The records of isolates: two copies of the same numbers, and a reader that no bytes can surprise."""

import json
import os
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.computer.contract import isolate_filter
from freehold.computer.contract.conventions import AGENTS_PATH, EGRESS_PORT, GUEST_PATH
from freehold.computer.isolates import records
from freehold.computer.isolates.execution import ExecutionReceiver, read_code_error, read_said
from freehold.computer.isolates.limits import IsolateLimits
from freehold.computer.isolates.records import ITEM, RECORD, STDERR, STDOUT, RecordReader, read_item, read_table
from freehold.errors import FreeholdError
from freehold.guest.isolates import program, walls
from freehold.guest.isolates import records as guest_records

KINDS = st.tuples(st.sampled_from([STDOUT, STDERR, ITEM]), st.binary(min_size=1, max_size=50))


class only_protocol_errors:
    """Swallows `link.protocol` and nothing else."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, FreeholdError) and error.code == "link.protocol"


def test_both_sides_have_the_same_numbers() -> None:
    for name in ("STDOUT", "STDERR", "ITEM", "RESULT", "MAX_ITEM", "MAX_REQUEST"):
        assert getattr(records, name) == getattr(guest_records, name), name
    assert records.RECORD.format == guest_records.RECORD.format
    assert isolate_filter.PID_MARK == walls.PID_MARK
    assert walls.PROXY_PORT == EGRESS_PORT
    assert program.ARCHIVE == GUEST_PATH
    assert program.NODE_PLACES[0].startswith(AGENTS_PATH.encode())


def test_the_filter_names_the_pid_once_and_nothing_else_looks_like_it() -> None:
    """The isolate replaces the mark by its own pid, wherever it stands."""
    for compiled in isolate_filter.compile_isolate_filters():
        assert compiled.count(isolate_filter.PID_MARK.to_bytes(4, "little")) == 1
        assert len(compiled) % 8 == 0


@given(st.lists(KINDS, max_size=10), st.integers(1, 60))
def test_records_are_read_in_pieces_of_any_size(sent: list[tuple[int, bytes]], piece: int) -> None:
    stream = b"".join(RECORD.pack(kind, len(content)) + content for kind, content in sent)
    reader = RecordReader(len(stream))
    pieces = [stream[at : at + piece] for at in range(0, len(stream), piece)]
    assert [record for part in pieces for record in reader.feed(memoryview(part))] == sent


@given(st.binary(max_size=200))
def test_no_bytes_cause_anything_but_a_protocol_error(data: bytes) -> None:
    with only_protocol_errors():
        for kind, content in RecordReader(1000).feed(memoryview(data)):
            if kind == ITEM:
                read_item(content).value()


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["value", "file", "json", "table"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "type", "name", "columns", "rows", "total", "index"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON, JSON)
def test_no_item_causes_anything_but_a_protocol_error(head: Any, content: Any) -> None:
    with only_protocol_errors():
        read_item(json.dumps(head).encode() + b"\n" + json.dumps(content).encode()).value()
        read_table(json.dumps(content).encode())
        read_code_error(content)
        read_said(json.dumps(head))


@pytest.mark.parametrize("size", [records.MAX_ITEM + 1, 2**32 - 1])
def test_a_record_that_is_too_large_is_refused_by_its_header(size: int) -> None:
    with pytest.raises(FreeholdError, match="a record of kind 2"):
        list(RecordReader(100).feed(memoryview(struct.pack("<BI", ITEM, size))))


@pytest.mark.parametrize("kind", [STDOUT, STDERR, ITEM])
def test_a_record_without_content_is_refused(kind: int) -> None:
    """They would count little and cost the host much."""
    with pytest.raises(FreeholdError, match=f"a record of kind {kind} with 0 bytes"):
        list(RecordReader(100).feed(memoryview(struct.pack("<BI", kind, 0))))


def test_more_bytes_than_asked_for_are_refused() -> None:
    with pytest.raises(FreeholdError, match="more output"):
        list(RecordReader(10).feed(memoryview(bytes(11))))


async def test_more_output_than_asked_for_is_refused_also_where_results_would_have_room() -> None:
    receiver = ExecutionReceiver(IsolateLimits(output=10), 1.0, None)
    record = RECORD.pack(STDERR, 5) + b"hello"
    receiver.data(0, memoryview(record * 2))
    with pytest.raises(FreeholdError, match="more output"):
        receiver.data(0, memoryview(record))


def test_a_kernel_without_a_wall_for_ports_grants_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    built = walls.Walls((), b"", b"")
    os.close(built._make_ruleset((), network=True))
    monkeypatch.setattr(built, "_version", 3)
    with pytest.raises(walls.WallError, match=r"6\.7"):
        built._make_ruleset((), network=True)
    os.close(built.ruleset)
