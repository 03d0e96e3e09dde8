"""The model itself: six layers of BERT, then the mean of the tokens."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freehold.slots.memory.minilm.safetensors import read_tensors
from freehold.slots.memory.minilm.wordpiece import WordPieces

FOLDER = Path(__file__).parent
WEIGHTS, VOCABULARY = FOLDER / "weights.safetensors", FOLDER / "vocabulary.txt"
DIMENSIONS = 384
HEADS = 12
LAYERS = 6
MAX_TOKENS = 256
BATCH = 16
SCALE = ".scale"
"""Beside each matrix of whole numbers: what each of its rows is multiplied by."""
_ROOT_OF_HALF = np.float32(0.7071067811865476)
_WORDS = "embeddings.word_embeddings.weight"

Floats: TypeAlias = NDArray[np.float32]


class MiniLm:
    """Not safe in two threads at once."""

    def __init__(self, weights: Path = WEIGHTS, vocabulary: Path = VOCABULARY) -> None:
        self._pieces = WordPieces(vocabulary.read_text("utf-8").split("\n"))
        stored = read_tensors(weights)
        # The table of words stays mapped as whole numbers: a text needs a few rows of it.
        self._words, self._word_scales = stored.pop(_WORDS), stored.pop(_WORDS + SCALE)
        self._weights: dict[str, Floats] = {}
        for name, tensor in stored.items():
            if name.endswith(SCALE):
                continue
            scale = stored.get(name + SCALE)
            full = tensor.astype("float32") if scale is None else tensor * scale
            self._weights[name] = np.ascontiguousarray(full.T) if name.startswith("encoder.") else full

    def embed(self, texts: Sequence[str]) -> Floats:
        """A row of length 1 for each text."""
        tokens = [self._pieces.encode(text, MAX_TOKENS) for text in texts]
        # Alike lengths together, so that little is filled up.
        order = sorted(range(len(texts)), key=lambda place: len(tokens[place]))
        found: Floats = np.empty((len(texts), DIMENSIONS), "float32")
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            found[some] = self._forward([tokens[place] for place in some])
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
        return found

    def _forward(self, tokens: Sequence[Sequence[int]]) -> Floats:
        longest = max(len(one) for one in tokens)
        ids = np.zeros((len(tokens), longest), "int64")
        mask = np.zeros((len(tokens), longest), "float32")
        for row, one in enumerate(tokens):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        weights = self._weights
        x = self._words[ids] * self._word_scales[ids]
        x += weights["embeddings.position_embeddings.weight"][:longest]
        x += weights["embeddings.token_type_embeddings.weight"][0]
        x = self._normal(x, "embeddings.LayerNorm")
        hidden = ((1 - mask) * np.float32(-1e9))[:, None, None, :]
        for number in range(LAYERS):
            x = self._layer(x, hidden, f"encoder.layer.{number}.")
        kept = mask[:, :, None]
        mean: Floats = (x * kept).sum(1) / kept.sum(1)
        return mean

    def _layer(self, x: Floats, hidden: Floats, at: str) -> Floats:
        batch, length, _ = x.shape
        query, key, value = (
            self._linear(x, f"{at}attention.self.{one}").reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
            for one in ("query", "key", "value")
        )
        score: Floats = query @ key.transpose(0, 1, 3, 2)
        score *= np.float32((DIMENSIONS // HEADS) ** -0.5)
        score += hidden
        score = np.exp(score - score.max(-1, keepdims=True))
        score /= score.sum(-1, keepdims=True)
        mixed = (score @ value).transpose(0, 2, 1, 3).reshape(batch, length, -1)
        x = self._normal(x + self._linear(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        inner = _gelu(self._linear(x, f"{at}intermediate.dense"))
        return self._normal(x + self._linear(inner, f"{at}output.dense"), f"{at}output.LayerNorm")

    def _linear(self, x: Any, name: str) -> Any:
        flat = x.reshape(-1, x.shape[-1]) @ self._weights[f"{name}.weight"]
        flat += self._weights[f"{name}.bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _normal(self, x: Floats, name: str) -> Floats:
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        x *= self._weights[f"{name}.weight"]
        x += self._weights[f"{name}.bias"]
        return x


def _gelu(x: Floats) -> Floats:
    """The exact one, with an approximation of erf that is good to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    z = np.abs(x)
    z *= _ROOT_OF_HALF
    t = z * np.float32(0.3275911)
    t += 1
    np.reciprocal(t, out=t)
    erf = np.full_like(t, 1.061405429)
    for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0):
        erf *= t
        erf += np.float32(term)
    z *= z
    np.negative(z, out=z)
    erf *= np.exp(z, out=z)
    np.subtract(1, erf, out=erf)
    np.copysign(erf, x, out=erf)
    erf += 1
    erf *= x
    erf *= np.float32(0.5)
    return erf
