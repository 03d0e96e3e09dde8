"""Packages of this machine that every computer has for its isolates: wasmtime, which runs WebAssembly."""

import dataclasses
import importlib.util
from functools import cache
from pathlib import Path

from freehold.computer.contract.conventions import PACKAGES_PATH
from freehold.computer.contract.spec import ComputerSpec, Mount

WASMTIME = f"{PACKAGES_PATH}/wasmtime"


@cache
def _find_wasmtime() -> Path | None:
    """The package of this Python, whose own code is the same for every Python. Nothing of it is loaded here."""
    found = importlib.util.find_spec("wasmtime")
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]) if places else None


def add_prepared_packages(spec: ComputerSpec) -> ComputerSpec:
    """The spec with a read-only mount for each package, unless the spec has something there itself."""
    folder = _find_wasmtime()
    taken = any(f"{WASMTIME}/".startswith(f"{mount.target.rstrip('/')}/") for mount in spec.mounts)
    if folder is None or taken:
        return spec
    return dataclasses.replace(spec, mounts=(*spec.mounts, Mount(folder, f"{WASMTIME}/wasmtime")))
