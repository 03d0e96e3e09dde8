"""What the Python client reads is what the API describes: it refuses no reply, and lacks no field of one.

The types of the TypeScript client are made from the same description.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter
from tests.client.test_api_coverage import DESCRIPTION, OPERATIONS, RecordedConnection, find_operation, record_python

Schema = dict[str, Any]
DIGITS = ("sequence",)
"""Text with digits in the API, and a number in the client."""
SHAPE = {"type", "properties", "enum", "const"}


def find_alternatives(schema: Schema, named: dict[str, Schema]) -> Iterator[Schema]:
    """The schemas of which a value has one, without references."""
    while "$ref" in schema:
        schema = named[schema["$ref"].rpartition("/")[2]]
    options = schema.get("anyOf") or schema.get("oneOf")
    if not options:
        yield schema
    for option in options or ():
        yield from find_alternatives(option, named)


def read_kind(schema: Schema) -> str:
    return str(schema.get("type") or ("string" if {"enum", "const"} & schema.keys() else "anything"))


def read_values(schema: Schema) -> set[object] | None:
    """None: every value of its kind."""
    return {schema["const"]} if "const" in schema else set(schema["enum"]) if "enum" in schema else None


class ReplyComparison:
    """`problems` are the places of a reply that the client would refuse, or not have."""

    def __init__(self, known: dict[str, Schema]) -> None:
        self._known = known
        self.problems: set[str] = set()

    def compare(self, place: str, described: Schema, read: Schema) -> None:
        options = list(find_alternatives(read, self._known))
        if not all(SHAPE & one.keys() for one in options):
            return  # the client takes anything
        for one in find_alternatives(described, DESCRIPTION["components"]["schemas"]):
            kind = read_kind(one)
            fitting = [other for other in options if self._takes(kind, read_kind(other), place)]
            if not fitting:
                self.problems.add(f"{place}: {kind} is not read")
            self._compare_values(place, one, fitting)
            for other in fitting:
                self._compare_inner(place, one, other)

    @staticmethod
    def _takes(kind: str, reads: str, place: str) -> bool:
        is_digits = place.rpartition(".")[2] in DIGITS and (kind, reads) == ("string", "integer")
        return kind == reads or (kind, reads) == ("integer", "number") or is_digits

    def _compare_values(self, place: str, described: Schema, fitting: list[Schema]) -> None:
        sent, read = read_values(described), [read_values(one) for one in fitting]
        if not fitting or None in read:
            return
        unread = (sent or {"any value"}) - set().union(*(one for one in read if one is not None))
        self.problems |= {f"{place}: {one} is not read" for one in unread}

    def _compare_inner(self, place: str, described: Schema, read: Schema) -> None:
        if "items" in described and "items" in read:
            self.compare(f"{place}[]", described["items"], read["items"])
        sent, had = described.get("properties"), read.get("properties")
        if sent is not None and had is not None:
            self.problems |= {f"{place}.{name}: the client does not have it" for name in sent.keys() - had.keys()}
            self.problems |= {f"{place}.{name}: the API does not send it" for name in had.keys() - sent.keys()}
            for name in sent.keys() & had.keys():
                self.compare(f"{place}.{name}", sent[name], had[name])
        values, kept = described.get("additionalProperties"), read.get("additionalProperties")
        if isinstance(values, dict) and isinstance(kept, dict):
            self.compare(f"{place}{{}}", values, kept)


def find_reply(operation: str) -> Schema | None:
    """The schema of what it answers when all is well. None for what is not JSON."""
    method, path = OPERATIONS[operation]
    answers = DESCRIPTION["paths"][path][method.lower()]["responses"]
    content = next(answer for status, answer in answers.items() if status.startswith("2")).get("content", {})
    found = content.get("application/json") or content.get("application/x-ndjson") or {}
    return found.get("schema")


async def test_the_python_client_has_every_field_of_every_reply() -> None:
    connection = RecordedConnection()
    await record_python(connection)
    compared, problems = 0, set()
    for method, path, answer in connection.answers:
        operation = find_operation(method, path)
        assert operation is not None
        described = find_reply(operation)
        if described is None:
            continue
        read = TypeAdapter(answer).json_schema()
        comparison = ReplyComparison(read.get("$defs", {}))
        comparison.compare(operation, described, read)
        problems |= comparison.problems
        compared += 1
    assert compared > 150
    assert sorted(problems) == []


def compare(described: Schema, read: Schema) -> set[str]:
    comparison = ReplyComparison({})
    comparison.compare("reply", described, read)
    return comparison.problems


def test_the_comparison_finds_what_would_be_refused_or_missed() -> None:
    text, number, null = {"type": "string"}, {"type": "integer"}, {"type": "null"}
    assert compare(text, text) == set()
    assert compare(number, {"type": "number"}) == set()
    assert compare(text, number) == {"reply: string is not read"}
    assert compare({"anyOf": [text, null]}, text) == {"reply: null is not read"}
    assert compare({"enum": ["a", "b"]}, {"const": "a"}) == {"reply: b is not read"}
    assert compare(text, {"enum": ["a"]}) == {"reply: any value is not read"}
    one = {"type": "object", "properties": {"a": text, "b": {"type": "array", "items": text}}}
    other = {"type": "object", "properties": {"b": {"type": "array", "items": number}, "c": text}}
    assert compare(one, other) == {
        "reply.a: the client does not have it",
        "reply.b[]: string is not read",
        "reply.c: the API does not send it",
    }
