"""The text that shows how to connect a model when there is none."""

_HELP = """\
Connect a model to start.
Add one to freehold.toml (freehold check shows its path), then run: freehold restart gateway

With a key: run freehold secret set anthropic, and add

  [models.anthropic]
  kind = "anthropic"            # or openai, gemini
  key = "secret:anthropic"      # or env:ANTHROPIC_API_KEY
  budget = { day_cost = 5.0 }   # optional, in US dollars

Without a key, for example Ollama on this machine:

  [models.local]
  kind = "openai-compatible"
  base_url = "http://127.0.0.1:11434/v1"
  model = "qwen3-coder"
"""


def connect_help() -> str:
    return _HELP
