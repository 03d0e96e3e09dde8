"""Reads and writes files of tensors in the safetensors format: a length, a head in JSON, and raw numbers. No code runs."""

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_KINDS = {"F32": "<f4", "I8": "i1", "I64": "<i8"}
_NAMES = {np.dtype(kind): name for name, kind in _KINDS.items()}


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Every tensor by name. They are mapped, so only what is used is read from the disk."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    begin = 8 + int.from_bytes(mapped[:8], "little")
    head = json.loads(mapped[8:begin])
    head.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            mapped, _KINDS[one["dtype"]], int(np.prod(one["shape"])), begin + one["data_offsets"][0]
        ).reshape(one["shape"])
        for name, one in head.items()
    }


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """The file is complete or not there."""
    head: dict[str, object] = {}
    offset = 0
    for name, tensor in tensors.items():
        span = [offset, offset := offset + tensor.nbytes]
        head[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": span}
    encoded = json.dumps(head).encode()
    encoded += b" " * (-len(encoded) % 8)
    draft = path.with_name(f".{path.name}.new")
    with draft.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).tobytes())
    draft.replace(path)
