"""The text that shows how to connect a model when there is none."""

_HELP = """\
Connect a model to start, in Settings, Models and keys, or on the command line:

  freehold models add                # shows what was found on this machine, and all providers
  freehold models add anthropic      # asks for the key, tests it and stores it in the vault
  freehold models add ollama         # a model on this machine needs no key
  freehold models add claude-code    # a Claude subscription, for the agent Claude Code

It takes effect at once. All providers: docs/guides/models.md
"""


def connect_help() -> str:
    return _HELP
