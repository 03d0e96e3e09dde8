"""What turns texts into vectors: the model that comes with Freehold, or the embeddings of a model provider."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeAlias

from freehold.errors import FreeholdError
from freehold.slots.settings import ExternalSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from freehold.slots.memory.minilm.model import MiniLm

    Floats: TypeAlias = NDArray[np.float32]

EmbedTexts = Callable[[str, str, Sequence[str]], Awaitable[list[list[float]]]]
"""Asks a provider of the manifest by its name for the vectors of texts by one of its models."""
OWN_MODEL = "minilm"
_OWN_NAME = "all-MiniLM-L6-v2"
EMBED_TIMEOUT = 8.0
TEXTS_AT_ONCE = 2


class Embedder(Protocol):
    name: str
    """Stored beside each vector: vectors of different names cannot be compared."""

    async def embed(self, texts: Sequence[str]) -> "Floats":
        """A row of length 1 for each text. Raises `FreeholdError` when it cannot be had now."""
        ...

    async def close(self) -> None: ...


class OwnEmbedder:
    """The model that comes with Freehold, in a thread of its own. It is loaded when it is needed first."""

    name = _OWN_NAME

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._model: MiniLm | None = None

    async def embed(self, texts: Sequence[str]) -> "Floats":
        import numpy as np

        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "slot-memory-model")
        loop = asyncio.get_running_loop()
        # A few at a time, so that a question does not wait for many texts that are embedded in the background.
        found = [
            await loop.run_in_executor(self._thread, self._embed, tuple(texts[start : start + TEXTS_AT_ONCE]))
            for start in range(0, len(texts), TEXTS_AT_ONCE)
        ]
        return np.concatenate(found)

    def _embed(self, texts: Sequence[str]) -> "Floats":
        if self._model is None:
            self._model = _load_model()
        return self._model.embed(texts)

    async def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.shutdown)


def _load_model() -> "MiniLm":
    # Two threads of the model on two busy cores are slower than one. It counts when numpy is loaded first.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from freehold.slots.memory.minilm.model import WEIGHTS, MiniLm

    try:
        return MiniLm()
    except FileNotFoundError:
        raise FreeholdError(
            "memory.no-weights",
            f"The weights of {_OWN_NAME} are not in {WEIGHTS.parent}",
            hint="Install a released wheel, or run: python -m tools.minilm",
        ) from None


class ProviderEmbedder:
    """The embeddings of a model provider, through the model gateway, which adds the key and counts the cost."""

    def __init__(self, provider: str, model: str, ask: EmbedTexts | None) -> None:
        self.name = f"{provider}/{model}"
        self._provider = provider
        self._model = model
        self._ask = ask

    async def embed(self, texts: Sequence[str]) -> "Floats":
        import numpy as np

        if self._ask is None:
            raise FreeholdError(
                "memory.no-gateway",
                f"{self.name} can be asked only while Freehold runs",
                hint="freehold up. Memories are found by their words until then",
            )
        try:
            async with asyncio.timeout(EMBED_TIMEOUT):
                given = await self._ask(self._provider, self._model, texts)
        except TimeoutError:
            raise FreeholdError(
                "memory.slow-embedding", f"{self.name} did not answer within {EMBED_TIMEOUT:g} s"
            ) from None
        sizes = {len(row) for row in given}
        if len(given) != len(texts) or len(sizes) != 1 or 0 in sizes:
            raise FreeholdError("memory.bad-embedding", f"{self.name} did not answer with a vector for each text")
        rows: Floats = np.array(given, "float32")
        if not np.isfinite(rows).all():
            raise FreeholdError("memory.bad-embedding", f"{self.name} answered with numbers that are not finite")
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return rows

    async def close(self) -> None:
        """Nothing was opened."""


def make_embedder(settings: ExternalSettings, ask: EmbedTexts | None) -> Embedder:
    """By the setting `embedding`: `minilm`, or `PROVIDER/MODEL`."""
    chosen = settings.find("embedding") or OWN_MODEL
    if chosen == OWN_MODEL:
        return OwnEmbedder()
    provider, _, model = chosen.partition("/")
    if not provider or not model or len(chosen) > 200 or not chosen.isprintable() or "'" in chosen:
        raise settings.wrong(
            f"slots.{settings.slot}.settings.embedding is {chosen[:80]!a}",
            f'embedding = "{OWN_MODEL}", or a provider of [models] and its model: "openai/text-embedding-3-small"',
        )
    return ProviderEmbedder(provider, model, ask)
