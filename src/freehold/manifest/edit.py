"""Change some keys and keep everything else as the owner wrote it, comments included."""

import fcntl
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from freehold.errors import FreeholdError
from freehold.manifest.line_numbers import find_key_lines
from freehold.manifest.problem import show_path
from freehold.manifest.reader import parse_source, read_source
from freehold.manifest.structure import build_manifest

Plain = str | int | float | bool | list["Plain"] | dict[str, "Plain"]


def edit_manifest(path: Path, key: str, value: Plain | None) -> None:
    """Set one key (`"gateway.port"`), or take it out with None. Comments and order stay.

    Atomic: another reader sees the old file or the new one. A key or type that the manifest does not have is refused,
    and nothing is written.
    """
    edit_manifest_keys(path, {key: value})


def edit_manifest_keys(path: Path, changes: Mapping[str, Plain | None]) -> None:
    """As `edit_manifest` for several keys in one step: all are changed, or none. None may take out a whole table."""
    path = Path(os.path.realpath(path))
    with _alone_in(path.parent):
        source = read_source(path)
        if source.problems:
            problem = source.problems[0]
            raise FreeholdError(
                "manifest.unreadable",
                f"{problem.place}: {problem.message}",
                hint="Mend the file first; `freehold check` shows how",
            )
        steps = [(key, _parse_key(key), value) for key, value in changes.items()]
        _refuse_mistakes(source.tree, with_changes(source.tree, changes))
        tree, text = source.tree, source.text
        for key, parts, value in steps:
            wanted = _with_value(tree, parts, value)
            text = _rewrite(text, parts, value)
            written = parse_source(path, text.encode())
            if written.problems or _without_empty(written.tree, parts) != _without_empty(wanted, parts):
                raise FreeholdError(
                    "manifest.cannot-edit",
                    f"{key} cannot be changed in {show_path(path)} without touching what stands around it",
                    hint="Change it by hand in an editor",
                )
            tree = written.tree
        write_private(path, text)


def with_changes(tree: Mapping[str, object], changes: Mapping[str, Plain | None]) -> Mapping[str, object]:
    """A copy of the tree in which these keys are changed."""
    for key, value in changes.items():
        tree = _with_value(tree, _parse_key(key), value)
    return tree


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step, readable by its owner alone, and on the disk when this returns."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _parse_key(key: str) -> tuple[str, ...]:
    try:
        tree: object = tomllib.loads(f"{key} = 0")
    except ValueError:
        raise FreeholdError(
            "manifest.bad-key", f"{key!r} is not a key", hint="Write it with dots: gateway.port"
        ) from None
    parts: list[str] = []
    while isinstance(tree, dict):
        (part, tree) = next(iter(tree.items()))
        parts.append(part)
    return tuple(parts)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One writer at a time: reading, changing and replacing belong together."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _with_value(tree: Mapping[str, object], parts: tuple[str, ...], value: Plain | None) -> dict[str, object]:
    result: dict[str, Any] = deepcopy(dict(tree))
    at = result
    for part in parts[:-1]:
        at = at.setdefault(part, {})
        if not isinstance(at, dict):
            raise FreeholdError("manifest.bad-key", f"{'.'.join(parts)} lies below a value", hint="freehold check")
    if value is None:
        at.pop(parts[-1], None)
    else:
        at[parts[-1]] = value
    return result


def _without_empty(tree: Mapping[str, object], parts: tuple[str, ...]) -> Mapping[str, object]:
    """The tree without the tables on the way to a key that hold nothing: with the key they come and go."""
    if not parts or not isinstance(tree.get(parts[0]), dict):
        return tree
    below = _without_empty(tree[parts[0]], parts[1:])  # type: ignore[arg-type]
    others = {name: value for name, value in tree.items() if name != parts[0]}
    return {**others, parts[0]: below} if below else others


def _refuse_mistakes(before: Mapping[str, object], after: Mapping[str, object]) -> None:
    known = {mistake.path for mistake in build_manifest(before)[1]}
    for mistake in build_manifest(after)[1]:
        if mistake.path not in known:
            raise FreeholdError("manifest.bad-value", mistake.message, hint=mistake.hint)


def _rewrite(text: str, parts: tuple[str, ...], value: Plain | None) -> str:
    import tomlkit
    from tomlkit.items import InlineTable, Table

    document = tomlkit.parse(text)
    at: Any = document
    for depth, part in enumerate(parts[:-1]):
        if part not in at:
            if value is None:
                return text
            last = depth == len(parts) - 2
            new = tomlkit.inline_table() if isinstance(at, InlineTable) else tomlkit.table(is_super_table=not last)
            at[part] = new
        at = at[part]
    if value is None and isinstance(at.get(parts[-1]), Table):
        return _without_table(document, at[parts[-1]], parts)
    if value is None:
        at.pop(parts[-1], None)
    elif parts[-1] in at:
        at[parts[-1]] = value
    else:
        _append_before_comments(document if at is document else at.value, at, parts[-1], value)
    return tomlkit.dumps(document)


def _without_table(document: Any, table: Any, parts: tuple[str, ...]) -> str:
    """The text without a table. The comments in it stay: the last ones most often speak of the table that follows."""
    import tomlkit
    from tomlkit.items import Table

    comments: list[Any] = []
    last: Any = table
    while isinstance(last, Table):
        body = last.value.body
        end = len(body)
        while end and body[end - 1][0] is None:
            end -= 1
        if last is not table:
            comments = body[end:]
        last = body[end - 1][1] if end else None
    for key in list(table):
        del table[key]
    table.value.body.extend(comments)
    text: str = tomlkit.dumps(document)
    place = find_key_lines(text).get(parts)
    lines = text.splitlines(keepends=True)
    if place is not None and lines[place - 1].lstrip().startswith("["):
        del lines[place - 1]
        while place > 1 and not lines[place - 2].strip() and not "".join(lines[place - 1 : place]).strip():
            del lines[place - 2]
            place -= 1
    return "".join(lines)


def _append_before_comments(container: Any, table: Any, key: str, value: Plain) -> None:
    """A comment at the end of a table most often speaks of the table that follows: the new key goes before it."""
    from tomlkit.container import Container

    if not isinstance(container, Container):  # a table that is written in several places has no one end
        table[key] = value
        return
    body = container.body
    end = len(body)
    while end and body[end - 1][0] is None:
        end -= 1
    trailing = body[end:]
    del body[end:]
    table.append(key, value)
    body.extend(trailing)
