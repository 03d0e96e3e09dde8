"""What nobody foresaw: the owner gets one line and an id, the log has the rest."""

import os
import secrets
import tempfile
import time
import traceback
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home

LOG_NAME = "cli"


def explain_unexpected(error: Exception, home: Home) -> FreeholdError:
    """Note the traceback where `freehold logs cli` finds it, or in a file of its own when there is no home to write to."""
    from freehold.observe.secrets import mask

    error_id = secrets.token_hex(6)
    words = mask("".join(traceback.format_exception(error)))
    where = _note(words, error_id, home)
    short = mask(" ".join(str(error).split()))[:200]
    return FreeholdError(
        "cli.unexpected",
        f"Something failed that should not have: {type(error).__name__}{f': {short}' if short else ''}",
        hint=f"{where} as {error_id}; FREEHOLD_DEBUG=1 shows it here",
    )


def is_debugging() -> bool:
    return os.environ.get("FREEHOLD_DEBUG", "") not in ("", "0")


def _note(words: str, error_id: str, home: Home) -> str:
    text = f"freehold failed [{error_id}]\n{words}"
    if home.logs.is_dir() and os.access(home.logs, os.W_OK):
        from freehold.keeper.logbook import Logbook
        from freehold.keeper.settings import LogLimits

        with Logbook(home.logs, LogLimits(), time.time) as book:
            book.note(LOG_NAME, "error", text)
        return f"freehold logs {LOG_NAME} --home {home.root} shows it"
    descriptor, name = tempfile.mkstemp(prefix="freehold-error-", suffix=".log")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return f"{Path(name)} has it"
