"""How to connect a model, in the words that every surface shows when there is none."""

_HELP = """\
No model is connected yet, so no agent can think.
Connect one in freehold.toml (freehold check says where that is), then run: freehold restart gateway

With a key: freehold secret set anthropic, and

  [models.anthropic]
  kind = "anthropic"            # or openai, gemini
  key = "secret:anthropic"      # or env:ANTHROPIC_API_KEY
  budget = { day_cost = 5.0 }   # optional, in US dollars

Without a key, on this machine with Ollama:

  [models.local]
  kind = "openai-compatible"
  base_url = "http://127.0.0.1:11434/v1"
  model = "qwen3-coder"
"""


def how_to_connect() -> str:
    return _HELP
