"""Manifests with random keys, values and broken bytes. Each is accepted, or refused with an error that names the place."""

import json
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from tests.attack.target import RunRound

from freehold.errors import FreeholdError
from freehold.manifest import load_manifest
from freehold.manifest.edit import edit_manifest

SCHEMA = Path(__file__).parents[3] / "docs" / "freehold.schema.json"
INPUTS = 25

ODD_STRINGS = [
    "",
    " ",
    "\0",
    "\u202e",
    "é" * 300,
    "a" * 70_000,
    "../../etc/passwd",
    "/",
    "//",
    "0.0.0.0",
    "::1",
    "[::1]:80",
    "*",
    "*.*",
    "http://",
    "https://user:password@example.org:99999/",
    "did:plc:" + "a" * 24,
    "-1",
    "1e999",
    "999999999999 GiB",
    "0s",
    "always",
    "${HOME}",
    "\r\n",
    "\\",
    '"""',
]


def list_keys(schema: Mapping[str, object]) -> list[tuple[str, ...]]:
    """The keys that a manifest has, by its schema."""
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)

    def walk(node: Mapping[str, object], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if path:
            yield path
        reference = node.get("$ref")
        if isinstance(reference, str) and len(path) < 6:
            yield from walk(definitions[reference.rsplit("/", 1)[-1]], path)
        properties = node.get("properties")
        if isinstance(properties, dict):
            for name, below in properties.items():
                yield from walk(below, (*path, name))
        more = node.get("additionalProperties")
        if isinstance(more, dict):
            yield from walk(more, (*path, "some-name"))

    return sorted(set(walk(schema, ())))


def make_value(random: Random, depth: int = 0) -> str:
    """A value as TOML text, most of the time a valid one."""
    kind = random.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return str(random.choice([0, 1, -1, 80, 65535, 65536, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30]))
    if kind == 1:
        return random.choice(["0.0", "-0.0", "1.5", "inf", "-inf", "nan", "1e308", "1e-308"])
    if kind == 2:
        return random.choice(["true", "false"])
    if kind == 3:
        return random.choice(["1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "0001-01-01T00:00:00+23:59"])
    if kind in (4, 5):
        return json.dumps(random.choice(ODD_STRINGS), ensure_ascii=random.random() < 0.5)
    if kind in (6, 7):
        return "[" + ", ".join(make_value(random, depth + 1) for _ in range(random.randrange(4))) + "]"
    names = random.sample(["a", "command", "model", "key", "urls", '"x.y"', "''"], random.randrange(4))
    return "{" + ", ".join(f"{name} = {make_value(random, depth + 1)}" for name in names) + "}"


def make_manifest(random: Random, keys: list[tuple[str, ...]]) -> bytes:
    lines = []
    for path in random.sample(keys, random.randrange(1, 12)):
        spelled = [f'"{part}"' if random.random() < 0.2 else part for part in path]
        if random.random() < 0.1:
            spelled[random.randrange(len(spelled))] = random.choice(["unknown", '""', '"\\u0000"', "a" * 500])
        lines.append(f"{'.'.join(spelled)} = {make_value(random)}")
    data = bytearray("\n".join(lines).encode())
    if random.random() < 0.4:
        for _ in range(random.randrange(1, 6)):
            place = random.randrange(len(data) + 1)
            data[place : place + random.randrange(3)] = random.randbytes(random.randrange(3))
    return bytes(data)


def check_manifest(file: Path, data: bytes, key: str) -> None:
    file.write_bytes(data)
    loaded = load_manifest(file, {}, home=file.parent)
    for problem in loaded.problems:
        assert problem.code, data
        assert problem.message, data
        assert problem.hint, data
    try:
        text = data.decode()
        tomllib.loads(text)
    except ValueError:
        assert loaded.errors, data
        return
    try:
        edit_manifest(file, key, 3000)
    except FreeholdError:
        assert file.read_bytes() == data, "a refused edit changed the file"


@asynccontextmanager
async def open_target(folder: Path) -> AsyncIterator[RunRound]:
    keys = list_keys(json.loads(SCHEMA.read_text()))
    file = folder / "freehold.toml"

    async def run_round(random: Random) -> int:
        for _ in range(INPUTS):
            check_manifest(file, make_manifest(random, keys), ".".join(random.choice(keys)))
        return INPUTS

    yield run_round
