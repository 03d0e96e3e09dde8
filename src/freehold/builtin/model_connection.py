"""The model we were pointed at: an address on loopback and a placeholder that is no key."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.builtin.wire import Refusal

if TYPE_CHECKING:
    from pydantic_ai.models import Model

NO_MODEL = """\
No model is connected yet, so I cannot think. There are two ways to connect one:

**A provider's key.** It stays on your side and never comes into this computer:

```
freehold secret set anthropic
```

and in `freehold.toml`:

```
[models.anthropic]
kind = "anthropic"          # or "openai", "gemini"
key = "secret:anthropic"
```

**A model of your own**, with Ollama on this machine (`ollama pull qwen3-coder`):

```
[models.local]
base_url = "http://127.0.0.1:11434/v1"
model = "qwen3-coder"
```

Then `freehold restart gateway`, and ask again. Until then a line that begins with `!` runs in the computer: `!ls`
"""


@dataclass(frozen=True)
class Pointed:
    """What the environment says about the model."""

    kind: str
    url: str
    key: str
    model: str | None
    window: int | None


def find_model() -> Pointed | None:
    """None when there is no model."""
    kind, url = os.environ.get("FREEHOLD_MODEL_KIND"), os.environ.get("FREEHOLD_MODEL_URL")
    if not kind or not url:
        return None
    window = os.environ.get("FREEHOLD_MODEL_CONTEXT", "")
    key = os.environ.get("FREEHOLD_MODEL_KEY") or "none"
    return Pointed(
        kind, url, key, os.environ.get("FREEHOLD_MODEL") or None, int(window) if window.isdecimal() else None
    )


async def connect_model(pointed: Pointed) -> "Model":
    name = pointed.model or await _first_offered(pointed)
    match pointed.kind:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(name, provider=AnthropicProvider(base_url=pointed.url, api_key=pointed.key))
        case "gemini":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(name, provider=GoogleProvider(base_url=pointed.url, api_key=pointed.key))
        case "openai" | "openai-compatible":
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            provider = OpenAIProvider(base_url=pointed.url, api_key=pointed.key)
            chosen = OpenAIResponsesModel if pointed.kind == "openai" else OpenAIChatModel
            return chosen(name, provider=provider)
        case other:
            raise Refusal(f"This agent knows no API called {other!r}")


async def _first_offered(pointed: Pointed) -> str:
    """A server of the owner's own often has one model only, and then there is nothing to choose."""
    import httpx2

    path = {"anthropic": "/v1/models", "gemini": "/v1beta/models"}.get(pointed.kind, "/models")
    headers = {"authorization": f"Bearer {pointed.key}"}
    if pointed.kind in ("anthropic", "gemini"):
        headers = {"x-api-key": pointed.key, "x-goog-api-key": pointed.key, "anthropic-version": "2023-06-01"}
    try:
        async with httpx2.AsyncClient(timeout=20, headers=headers) as client:
            found = (await client.get(pointed.url.rstrip("/") + path)).json()
        rows = found.get("data") or found.get("models") or []
        return str(rows[0].get("id") or rows[0]["name"]).removeprefix("models/")
    except (httpx2.HTTPError, ValueError, LookupError, AttributeError, TypeError):
        raise Refusal(
            "No model is named, and the provider does not list any. Set model in its section of freehold.toml"
        ) from None
