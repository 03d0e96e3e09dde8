"""Every error has a kind that somebody chose, and the kind decides the status, the exit code and the default hint."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from freehold import errors
from freehold.errors import KINDS, FreeholdError, find_kind, kind_of_status

SOURCE = Path(errors.__file__).parent
# These classes give the kind themselves, or build the code from their own table.
OWN_KIND = {"SignInProblem"}
# Here a code comes from a variable: from the wire, or from a caller whose literal is found by its `code=`.
PASSED_ON = {
    "agents/acp/program.py",
    "cli/up.py",
    "client/topic_protocol.py",
    "client/problems.py",
    "computer/library/reply.py",
    "fleet/wire.py",
    "keeper/client.py",
    "keeper/plan_reader.py",
    "keeper/wire.py",
    "private_file.py",
    "typed_call.py",
}


@cache
def trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def nodes() -> dict[str, list[ast.Call | ast.ClassDef]]:
    """Every call and every class of each file. To walk all of them takes seconds, and so it is done once."""
    return {
        path: [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.ClassDef)]
        for path, tree in trees().items()
    }


@cache
def error_classes() -> frozenset[str]:
    """FreeholdError and every class below it."""
    classes = [node for found in nodes().values() for node in found if isinstance(node, ast.ClassDef)]
    known = {"FreeholdError"}
    while True:
        below = {node.name for node in classes if any(name_of(base) in known for base in node.bases)}
        if below <= known:
            return frozenset(known - OWN_KIND)
        known |= below


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def constants_of(tree: ast.Module) -> dict[str, str]:
    return {
        name_of(target): node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
    }


def takes_code(name: str) -> bool:
    """Whether the class takes a code as its first argument, as FreeholdError does."""
    for found in nodes().values():
        for node in found:
            if isinstance(node, ast.ClassDef) and node.name == name:
                inits = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
                return not inits or inits[0].args.args[1].arg == "code"
    return False


def written_codes() -> Iterator[tuple[str, str | None, bool]]:
    """Every place that makes an error: where it is, its code (None when it is not a literal), and whether it has kind=."""
    classes = {name for name in error_classes() if takes_code(name)}
    for path, tree in trees().items():
        constants = constants_of(tree)
        for node in nodes()[path]:
            if not isinstance(node, ast.Call):
                continue
            is_super = name_of(node.func) == "__init__" and any(
                keyword.arg in ("hint", "kind") for keyword in node.keywords
            )
            if name_of(node.func) not in classes and not is_super:
                continue
            has_kind = any(keyword.arg == "kind" for keyword in node.keywords)
            where = f"{path}:{node.lineno}"
            match node.args[0] if node.args else None:
                case ast.Constant(value=str(code)):
                    yield where, code, has_kind
                case ast.Name(id=name) if name in constants:
                    yield where, constants[name], has_kind
                case _:
                    yield where, None, has_kind or (is_super and path != "errors.py")


def test_every_code_in_the_source_has_a_kind_in_the_table_or_beside_it() -> None:
    found = list(written_codes())
    assert len(found) > 300
    without = [(where, code) for where, code, has_kind in found if code and not has_kind and find_kind(code) is None]
    assert without == [], "add the last word of the code to the table in errors.py, or give kind="


def test_a_code_that_is_no_literal_is_made_only_where_codes_are_passed_on() -> None:
    variable = {where.partition(":")[0] for where, code, has_kind in written_codes() if code is None and not has_kind}
    assert variable <= PASSED_ON


def test_codes_that_are_passed_as_an_argument_have_a_kind() -> None:
    passed = {
        keyword.value.value
        for found in nodes().values()
        for node in found
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
    }
    assert len(passed) >= 3
    assert [code for code in passed if find_kind(code) is None or find_kind(f"{code}-exposed") is None] == []


def test_codes_of_the_guest_have_a_kind() -> None:
    from freehold.guest.files import CODES

    codes = {f"files.{word}" for word in (*CODES.values(), "failed")}
    for path, tree in trees().items():
        if path.startswith("guest/"):
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    room, dot, word = node.value.partition(".")
                    if room in ("files", "computer") and dot and word.replace("-", "").isalpha():
                        codes.add(node.value)
    assert len(codes) > 20
    assert sorted(code for code in codes if find_kind(code) is None) == []


def test_no_word_of_the_table_is_left_over() -> None:
    """A word that no code ends in any more goes."""
    texts = "key-exposed\n".join(  # made from the caller's code in private_file.py
        (SOURCE / path).read_text() for path in trees() if path != "errors.py"
    )
    words = {word for kind in KINDS.values() for word in kind.words if word != kind.name}
    assert sorted(word for word in words if word not in texts) == []


def test_no_word_belongs_to_two_kinds() -> None:
    words = [word for kind in KINDS.values() for word in kind.words]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("code", "status", "exit_code"),
    [
        ("session.not-found", 404, 1),
        ("history.no-such-entry", 404, 1),
        ("egress.no-request", 404, 1),
        ("secret.empty", 400, 1),
        ("history.empty", 409, 1),
        ("token.expiry", 400, 2),
        ("keeper.not-running", 503, 1),
        ("timeline.disk-full", 507, 1),
    ],
)
def test_the_kind_decides_status_and_exit_code(code: str, status: int, exit_code: int) -> None:
    error = FreeholdError(code, "What happened")
    assert (error.kind.status, error.kind.exit_code) == (status, exit_code)


def test_an_error_without_a_hint_shows_the_hint_of_its_kind() -> None:
    assert FreeholdError("session.not-found", "No").body()["hint"] == KINDS["not-found"].hint
    assert FreeholdError("session.not-found", "No", hint="Look there").body()["hint"] == "Look there"


def test_a_kind_can_be_given() -> None:
    assert FreeholdError("weather.rain", "It rains", kind="unavailable").kind.status == 503
    assert FreeholdError("weather.rain", "It rains").kind.name == "internal"


def test_an_unknown_code_from_elsewhere_has_the_kind_of_its_status() -> None:
    assert [kind_of_status(status).name for status in (404, 409, 418, 500, 503, 599)] == [
        "not-found",
        "conflict",
        "invalid",
        "internal",
        "unavailable",
        "internal",
    ]
