"""Rooms that cannot import the contract have copies of the paths and ports inside. They must be the same."""

import ast
from pathlib import Path

import pytest

import freehold
from freehold.computer import registry
from freehold.computer.contract import conventions
from freehold.computer.contract.conventions import (
    AGENT_HOME,
    BASE_ENVIRONMENT,
    GUEST_PATH,
    PROXY_URL,
    RESERVED_PORTS,
    WORKSPACE,
)
from freehold.guest import guest
from freehold.history import names
from freehold.manifest.checks.computer import HOST_PORTS
from freehold.manifest.exceptions import BACKENDS
from freehold.manifest.sections.computer import ServiceSection

SOURCES = Path(freehold.__file__).parent
# The guest and the built-in agent run inside; the manifest and history import no other room; the starter is text.
HAVE_COPIES = ("guest", "builtin", "manifest", "history", "starter")


def test_the_manifest_knows_the_reserved_ports_and_the_workspace() -> None:
    assert set(HOST_PORTS) == set(RESERVED_PORTS)
    assert ServiceSection().folder == WORKSPACE


def test_the_manifest_knows_the_backends_that_exist() -> None:
    assert set(BACKENDS) == set(registry.BACKENDS)


def test_history_knows_the_persistent_folders() -> None:
    assert {WORKSPACE.encode(): b"workspace", AGENT_HOME.encode(): b"home"} == names.COMPUTER_FOLDERS


def test_the_guest_starts_in_the_workspace() -> None:
    assert f'"{WORKSPACE}"' in Path(guest.__file__).read_text()


def test_the_environment_agrees_with_the_paths() -> None:
    assert BASE_ENVIRONMENT["HOME"] == AGENT_HOME
    assert BASE_ENVIRONMENT["HTTPS_PROXY"] == BASE_ENVIRONMENT["https_proxy"] == PROXY_URL
    assert GUEST_PATH.startswith("/opt/freehold/")


def literals(path: Path) -> set[object]:
    """Every constant in a module, without its docstrings."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs}


@pytest.mark.parametrize("value", [*RESERVED_PORTS, WORKSPACE, AGENT_HOME, PROXY_URL])
def test_no_other_module_writes_them_down_again(value: object) -> None:
    """A path or port inside has one definition in each room that cannot import it, and none elsewhere."""
    elsewhere = [
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if path.relative_to(SOURCES).parts[0] not in HAVE_COPIES
        and path != Path(conventions.__file__)
        and str(value) in path.read_text()  # few files have it anywhere, and to parse one takes longer
        and value in literals(path)
    ]
    assert not elsewhere
