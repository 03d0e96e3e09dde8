"""Asks a provider for embeddings on the host's own behalf."""

import base64
import binascii
import json
import struct
from collections.abc import Sequence
from typing import Any

from freehold.egress.models.gateway import ModelGateway
from freehold.egress.models.host_request import send_host_request
from freehold.errors import FreeholdError

SESSION = "slot.memory"
"""What usage and budgets show as the session."""
MAX_DIMENSIONS = 16_384


async def fetch_embeddings(models: ModelGateway, provider: str, model: str, texts: Sequence[str]) -> list[list[float]]:
    """A vector for each text. Raises `models.…` when the provider is not there, refused, or over its budget."""
    await models.wait_ready()
    endpoint = models.endpoint_for(provider, SESSION)
    if not endpoint.provider.speaks_openai:
        raise FreeholdError(
            "models.no-embeddings",
            f"The provider {provider} has no /v1/embeddings",
            hint="Choose one of the kind openai or openai-compatible",
        )
    body = json.dumps({"model": model, "input": list(texts), "encoding_format": "base64"}).encode()
    status, answer = await send_host_request(models, endpoint, "/v1/embeddings", body)
    return _read_answer(provider, status, answer, len(texts))


def _read_answer(provider: str, status: int, answer: bytes, count: int) -> list[list[float]]:
    try:
        content: Any = json.loads(answer)
    except (ValueError, RecursionError):
        content = None
    if status != 200:
        error = content.get("error") if isinstance(content, dict) else None
        words = str(error.get("message", ""))[:300] if isinstance(error, dict) else ""
        raise FreeholdError(
            "models.embedding-refused", f"{provider} answered {status} to a request for embeddings: {words}"
        )
    try:
        rows = sorted(content["data"], key=lambda row: int(row["index"]))
        found = [_read_vector(row["embedding"]) for row in rows]
    except (KeyError, TypeError, ValueError, binascii.Error, struct.error):
        found = []
    if len(found) != count or any(not 0 < len(row) <= MAX_DIMENSIONS for row in found):
        raise FreeholdError("models.bad-embedding", f"{provider} did not answer with a vector for each text")
    return found


def _read_vector(given: object) -> list[float]:
    """Base64 is a quarter of the size. A provider that does not know it sends a list."""
    if isinstance(given, str):
        data = base64.b64decode(given, validate=True)
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    if not isinstance(given, list):
        raise TypeError("not a vector")
    return [float(one) for one in given]
