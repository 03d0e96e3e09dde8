"""The model of this agent, from the environment: an address on loopback and a placeholder in the place of the key."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.builtin.json_rpc import RequestError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

NO_MODEL = """\
Connect a model to start. There are two ways:

**The key of a provider.** It stays on the host and never enters this computer:

```
freehold secret set anthropic
```

Add to `freehold.toml`:

```
[models.anthropic]
kind = "anthropic"          # or "openai", "gemini"
key = "secret:anthropic"
```

**A local model**, with Ollama on this machine (`ollama pull qwen3-coder`):

```
[models.local]
base_url = "http://127.0.0.1:11434/v1"
model = "qwen3-coder"
```

Then run `freehold restart gateway` and send your prompt again. A prompt that begins with `!` runs in the computer
without a model: `!ls`
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


async def connect_model(settings: ModelSettings) -> "Model":
    name = settings.model or await _find_first_model(settings)
    match settings.kind:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(name, provider=AnthropicProvider(base_url=settings.url, api_key=settings.key))
        case "gemini":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(name, provider=GoogleProvider(base_url=settings.url, api_key=settings.key))
        case "openai" | "openai-compatible":
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            provider = OpenAIProvider(base_url=settings.url, api_key=settings.key)
            chosen = OpenAIResponsesModel if settings.kind == "openai" else OpenAIChatModel
            return chosen(name, provider=provider)
        case other:
            raise RequestError(f"This agent does not support the model API {other!r}")


async def _find_first_model(settings: ModelSettings) -> str:
    """A local server often has only one model, so the owner need not name it."""
    import httpx2

    path = {"anthropic": "/v1/models", "gemini": "/v1beta/models"}.get(settings.kind, "/models")
    headers = {"authorization": f"Bearer {settings.key}"}
    if settings.kind in ("anthropic", "gemini"):
        headers = {"x-api-key": settings.key, "x-goog-api-key": settings.key, "anthropic-version": "2023-06-01"}
    try:
        async with httpx2.AsyncClient(timeout=20, headers=headers) as client:
            found = (await client.get(settings.url.rstrip("/") + path)).json()
        rows = found.get("data") or found.get("models") or []
        return str(rows[0].get("id") or rows[0]["name"]).removeprefix("models/")
    except (httpx2.HTTPError, ValueError, LookupError, AttributeError, TypeError):
        raise RequestError(
            "No model is set, and the provider lists none. Set model in its section of freehold.toml"
        ) from None
