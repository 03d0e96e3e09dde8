"""Packages that the code of an isolate can use from its first line. They are prepared beforehand; nothing is fetched.

A package is a folder below `/opt/packages`, made by pip (`--target`) or npm (`--prefix`), or one that the system of the
computer has, which an image brings from its lock.
"""

# pathlib is too slow to import here
# ruff: noqa: PTH110, PTH112

from __future__ import annotations

import os
import sys

from freehold.guest.spawn import OperationError

PACKAGES = b"/opt/packages"
_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYTHON_FOLDERS = (f"/usr/local/lib/python{_VERSION}/dist-packages", "/usr/lib/python3/dist-packages")
NODE_FOLDERS = ("/usr/local/lib/node_modules",)


def find_package(language: str, name: str) -> str:
    """The folder to import `name` from."""
    if not name or "/" in name or "=" in name or name.startswith("."):
        raise OperationError("computer.no-package", f"{name!r} is not the name of a package")
    prepared = os.fsdecode(PACKAGES) + "/" + name
    if language == "javascript":
        prepared += "/node_modules"
    if os.path.isdir(prepared):
        return prepared
    for folder in NODE_FOLDERS if language == "javascript" else PYTHON_FOLDERS:
        if os.path.isdir(f"{folder}/{name}") or os.path.exists(f"{folder}/{name}.py"):
            return folder
    found = ", ".join(sorted(map(os.fsdecode, _list(PACKAGES)))) or "none"
    raise OperationError(
        "computer.no-package",
        f"The package {name!r} is not prepared in this computer for {language}; {os.fsdecode(PACKAGES)} has {found}",
    )


def find_wasmtime() -> str:
    """The folder to import wasmtime from: a prepared package, or one of the computer's own Python."""
    for folder in (os.fsdecode(PACKAGES + b"/wasmtime"), *PYTHON_FOLDERS, *sys.path):
        if os.path.isdir(f"{folder}/wasmtime"):
            return folder
    raise OperationError("computer.no-wasmtime", "wasmtime, which runs WebAssembly, is not installed in this computer")


def _list(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []
