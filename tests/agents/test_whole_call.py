"""What an agent says of a tool call is kept whole, and a small update of a large call is small work."""

import json
from typing import Any

import pytest

from freehold.agents.acp.json_rpc import AgentError
from freehold.agents.sessions import whole_call
from freehold.agents.sessions.tool_call import MAX_CONTENT, ToolCall
from freehold.agents.sessions.whole_call import MAX_JOINED, WholeCall

LARGE: list[tuple[str, Any, Any]] = [
    ("rawInput", {"text": "x" * 5_000_000}, {"more": 1}),
    ("rawInput", {str(number): "x" for number in range(9_000)}, {"more": 1}),
    ("locations", [{"path": f"/workspace/{number}"} for number in range(9_000)], [{"path": "/workspace/more"}]),
    (
        "content",
        [{"type": "diff", "path": f"/workspace/{number}", "newText": "x" * 100_000} for number in range(50)],
        [{"type": "diff", "path": "/workspace/more", "newText": "x"}],
    ),
]


def diff(path: str, text: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "newText": text}


@pytest.mark.parametrize(("name", "first", "small"), LARGE, ids=["input", "keys", "locations", "changes"])
def test_a_small_update_of_a_large_call_is_small_work(
    name: str, first: Any, small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred bytes cost the gateway up to 0.7 s each, in which it did nothing else."""
    call = WholeCall()
    call.add(name, first)
    written = 0

    def count(value: Any, **how: Any) -> str:
        nonlocal written
        text = json.dumps(value, **how)
        written += len(text)
        return text

    monkeypatch.setattr(whole_call, "json", type("Json", (), {"dumps": staticmethod(count)}))
    for _ in range(10):
        call.add(name, small)
    assert written < 2_000
    assert len(call.fields[name]) == len(first) + 1
    assert call.size == pytest.approx(len(json.dumps(call.fields)), rel=0.5)


def test_what_was_said_once_stays_and_what_is_said_again_replaces_it() -> None:
    call = WholeCall()
    call.add("rawInput", {"path": "a", "text": "1"})
    first = dict(call.fields)
    call.add("rawInput", {"text": "2"})
    call.add("locations", [{"path": "a"}, {"path": "b"}])
    call.add("locations", [{"path": "b"}, {"path": "c"}])
    call.add("content", [diff("a", "1"), diff("b", "1"), {"type": "content"}])
    call.add("content", [diff("a", "2")])
    call.add("title", "first")
    call.add("title", "last")
    assert call.fields == {
        "rawInput": {"path": "a", "text": "2"},
        "locations": [{"path": "a"}, {"path": "b"}, {"path": "c"}],
        "content": [diff("a", "2"), diff("b", "1")],
        "title": "last",
    }
    assert first == {"rawInput": {"path": "a", "text": "1"}}


def test_a_value_of_another_type_replaces_the_former() -> None:
    call = WholeCall()
    values: list[Any] = [{"a": 1}, "text", ["b"], 7, {"c": 2}, [{"path": "d"}]]
    for name in ("rawInput", "locations", "content"):
        for value in values:
            call.add(name, value)
    assert call.fields == {"rawInput": [{"path": "d"}], "locations": [{"path": "d"}], "content": [{"path": "d"}]}
    assert 0 < call.size < 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rawInput", {str(number): 0 for number in range(MAX_JOINED + 1)}),
        ("locations", [{"path": str(number)} for number in range(MAX_JOINED + 1)]),
    ],
)
def test_a_call_that_names_too_much_ends_the_agent(name: str, value: Any) -> None:
    with pytest.raises(AgentError, match="more than 10000"):
        WholeCall().add(name, value)


def test_a_call_with_endless_fields_ends_the_agent() -> None:
    call = WholeCall()
    for number in range(MAX_JOINED):
        call.add(f"field {number}", 0)
    with pytest.raises(AgentError, match="more than 10000 fields"):
        call.add("one more", 0)


def test_the_transcript_shows_a_limited_part_of_a_large_call() -> None:
    """It is stored again with every update, and was ten megabytes."""
    tool = ToolCall("t1")
    tool.apply_update(
        {"content": [{**diff(f"/{number}", "n" * 99_000), "oldText": "o" * 99_000} for number in range(50)]}
    )
    assert len(json.dumps(tool.as_json())) < 1.1 * MAX_CONTENT
    assert [part["path"] for part in tool.content] == [f"/{number}" for number in range(50)]
    assert len(tool.whole["content"]) == 50
    assert tool.size > 50 * 198_000


@pytest.mark.parametrize("value", [1, None, "x", True])
def test_a_value_counts_as_often_as_it_is_there(value: Any) -> None:
    """Equal numbers of a message are one object, which must not make a long list look short."""
    content = json.loads(json.dumps([value] * 100_000))
    call = WholeCall()
    for _ in range(3):
        call.add("content", content)
        assert call.size >= 100_000


def ask_after(*content: dict[str, Any]) -> Any:
    """What a permission request has as the input of a call that had this content before."""
    tool = ToolCall("t1")
    tool.apply_update({"sessionUpdate": "tool_call", "content": list(content)})
    tool.apply_update({"content": [text_block("May I?")]}, asks=True)
    return tool.whole.get("rawInput")


def text_block(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def test_an_input_that_was_streamed_as_text_is_the_input_of_the_request() -> None:
    assert ask_after(text_block('{"path": "a", "content": "x"}')) == {"path": "a", "content": "x"}
    assert ask_after(text_block('{"path": "a"}'), text_block("more")) is None
    tool = ToolCall("t1")
    tool.apply_update({"rawInput": {"command": "ls"}, "content": [text_block('{"command": "evil"}')]})
    tool.apply_update({"title": "ls"}, asks=True)
    assert tool.whole["rawInput"] == {"command": "ls"}


@pytest.mark.parametrize("text", ['{"command": "mak', '["make"]', '{"a": 1e999}', '{"a": NaN}', "[" * 100_000, ""])
def test_a_text_that_is_no_input_is_none(text: str) -> None:
    assert ask_after(text_block(text)) is None
    assert ask_after(text_block('{"a":' * 200 + "1" + "}" * 200)) is None
