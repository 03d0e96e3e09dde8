"""How many tokens a model takes, by its name. The table is generated."""

import json
from pathlib import Path

DEFAULT_WINDOW = 64_000
"""For a model that is not in the table: small enough for most, and a model that is smaller says so."""

TABLE = Path(__file__).with_name("context_windows.json")


def find_context_window(model: str) -> int:
    """The window of the model in the table whose name is the longest begin of this one."""
    name = model.rpartition("/")[2].lower()
    table: dict[str, int] = json.loads(TABLE.read_bytes())
    known = max((each for each in table if name.startswith(each)), key=len, default=None)
    return DEFAULT_WINDOW if known is None else table[known]
