"""The context windows of models, for the built-in agent: an extract of the package genai-prices."""

import json

PROVIDERS = ("anthropic", "openai", "google", "mistral", "deepseek", "x-ai", "groq")
"""The makers of models. Others host the same models under the same names."""


def context_windows() -> str:
    from genai_prices.data import providers

    found: dict[str, int] = {}
    for name in PROVIDERS:
        provider = next(provider for provider in providers if provider.id == name)
        for model in provider.models:
            if model.context_window:
                found.setdefault(model.id.rpartition("/")[2], model.context_window)
    return json.dumps(dict(sorted(found.items())), indent=0) + "\n"
