# made from _async/models.py by python -m tools.generate
"""The model providers of this Freehold: `home.models`."""

from typing import Any, Literal

from freehold.client._sync.connection import SyncConnection
from freehold.client.models import ModelChange, ModelOffers, ModelsInfo, ModelTrial
from freehold.client.topic_protocol import quote_segment


class SyncModels:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def state(self) -> ModelsInfo:
        """The providers that agents can use, and why one cannot be used now."""
        return self._connection.get("/v1/models", ModelsInfo)

    def offers(self) -> ModelOffers:
        """The providers that Freehold knows, and those that it found on its machine."""
        return self._connection.get("/v1/model-offers", ModelOffers)

    def connect(
        self,
        name: str,
        kind: Literal["openai", "anthropic", "gemini", "openai-compatible"],
        *,
        key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        auth: Literal["key", "claude-code", "codex"] = "key",
        default: bool = False,
    ) -> ModelChange:
        """Connect a provider, or change the one of this name. The key goes into the vault. It takes effect at once."""
        body: dict[str, Any] = {"kind": kind, "auth": auth, "default": default}
        body |= {"key": key, "base_url": base_url, "model": model}
        return self._connection.put(f"/v1/models/{quote_segment(name)}", ModelChange, body)

    def test(self, name: str) -> ModelTrial:
        """Ask a provider for its list of models with its key, which is free."""
        return self._connection.post(f"/v1/models/{quote_segment(name)}/test", ModelTrial, {})

    def choose_default(self, name: str) -> ModelChange:
        """Let agents that name no provider use this one."""
        return self._connection.post(f"/v1/models/{quote_segment(name)}/default", ModelChange, {})

    def disconnect(self, name: str) -> ModelChange:
        """Disconnect a provider, and remove its key when no other uses it."""
        return self._connection.delete(f"/v1/models/{quote_segment(name)}", ModelChange)
