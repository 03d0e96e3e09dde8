"""SQL of a slot, written once for every database.

A call is a generator: it yields statements and receives their rows, and returns the reply. SQLite and PostgreSQL each
have a driver that runs it in one transaction. Parameters are `?`, and only SQL that both understand is used.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

T = TypeVar("T")
Value: TypeAlias = "str | int | float | bytes | None"
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Statement:
    """`only` names the one database that needs it, such as for a lock that the other takes by itself."""

    sql: str
    parameters: Sequence[Value] = ()
    only: Literal["postgres", "sqlite"] | None = None


Steps: TypeAlias = Generator[Statement, list[Row], T]


def ask(sql: str, *parameters: Value) -> Steps[list[Row]]:
    """The rows of one statement: `rows = yield from ask("SELECT …", id)`."""
    return (yield Statement(sql, parameters))


def ask_one(sql: str, *parameters: Value) -> Steps[Row | None]:
    rows = yield from ask(sql, *parameters)
    return rows[0] if rows else None


def places(values: Sequence[Value]) -> str:
    """`(?, ?, ?)` for these values; `(NULL)`, which matches nothing, for none."""
    return f"({', '.join('?' * len(values)) or 'NULL'})"


def run_steps(steps: Steps[T], execute: Callable[[Statement], list[Row]]) -> T:
    """Run the statements of one call with a function that executes one of them. An exception ends the call."""
    try:
        statement = next(steps)
        while True:
            statement = steps.send(execute(statement))
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()
