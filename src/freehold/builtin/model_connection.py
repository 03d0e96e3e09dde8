"""The model of this agent, from the environment: an address on loopback and a placeholder in the place of the key."""

import json
import os
import re
from dataclasses import dataclass

from freehold.builtin.conversation import ModelMessage
from freehold.builtin.http_client import HttpError, open_request
from freehold.builtin.json_rpc import RequestError
from freehold.builtin.providers.anthropic import AnthropicMessages
from freehold.builtin.providers.contract import ProviderApi, ProviderRequest, ReplyBuilder, ask_model
from freehold.builtin.providers.gemini import GeminiContent
from freehold.builtin.providers.openai_chat import OpenAiChat
from freehold.builtin.providers.openai_responses import OpenAiResponses

LIST_TIMEOUT = 20.0
MAX_LIST = 4 * 1024 * 1024
_NOT_FOR_TEXT = re.compile(r"embed|rerank|minilm|\bbge\b|whisper|\btts\b|dall-e|image|moderation|guard|davinci|babbage")

NO_MODEL = """\
Connect a model to start, in Settings, Models and keys, or on the command line of the host:

```
freehold models add anthropic     # the key stays on the host and never enters this computer
freehold models add ollama        # a local model, with Ollama on that machine
```

Then send your prompt again. A prompt that begins with `!` runs in the computer without a model: `!ls`
"""


@dataclass(frozen=True)
class ModelSettings:
    """The model settings of the environment. `window` is the context window in tokens."""

    kind: str
    url: str
    key: str
    model: str | None
    window: int | None


def read_model_settings() -> ModelSettings | None:
    """None when there is no model."""
    kind, url = os.environ.get("FREEHOLD_MODEL_KIND"), os.environ.get("FREEHOLD_MODEL_URL")
    if not kind or not url:
        return None
    window = os.environ.get("FREEHOLD_MODEL_CONTEXT", "")
    key = os.environ.get("FREEHOLD_MODEL_KEY") or "none"
    return ModelSettings(
        kind, url, key, os.environ.get("FREEHOLD_MODEL") or None, int(window) if window.isdecimal() else None
    )


@dataclass(frozen=True)
class ModelConnection:
    """A model at its address."""

    api: ProviderApi
    url: str
    key: str
    name: str

    async def ask(self, request: ProviderRequest, reply: ReplyBuilder) -> ModelMessage:
        return await ask_model(self.api, self.url, self.key, request, reply)


async def connect_model(settings: ModelSettings) -> ModelConnection:
    api = _APIS.get(settings.kind)
    if api is None:
        raise RequestError(f"This agent does not support the model API {settings.kind!r}")
    name = settings.model or await _find_first_model(settings, api)
    return ModelConnection(api, settings.url, settings.key, name)


async def _find_first_model(settings: ModelSettings, api: ProviderApi) -> str:
    """A local server often has only one model for text, so the owner need not name it."""
    path = {"anthropic": "/v1/models", "gemini": "/v1beta/models"}.get(settings.kind, "/models")
    try:
        url = settings.url.rstrip("/") + path
        async with open_request("GET", url, api.headers(settings.key), timeout=LIST_TIMEOUT) as answer:
            found = json.loads(await answer.read(MAX_LIST))
        rows = found.get("data") or found.get("models") or []
        names = [str(row.get("id") or row["name"]).removeprefix("models/") for row in rows]
        return next((name for name in names if not _NOT_FOR_TEXT.search(name.lower())), names[0])
    except (HttpError, ValueError, LookupError, AttributeError, TypeError):
        raise RequestError(
            "No model is set, and the provider lists none. Set model in its section of freehold.toml"
        ) from None


_APIS: dict[str, ProviderApi] = {
    "anthropic": AnthropicMessages(),
    "gemini": GeminiContent(),
    "openai": OpenAiResponses(),
    "openai-compatible": OpenAiChat(),
}
