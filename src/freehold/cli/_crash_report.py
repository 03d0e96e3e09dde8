"""Reports an unexpected error: the owner sees one line with an id, and the log has the traceback."""

import os
import time
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home

LOG_NAME = "cli"


def report_crash(error: Exception, home: Home) -> FreeholdError:
    """Write the traceback to the log `cli`, or to a temporary file when the home cannot be written."""
    import secrets
    import traceback

    from freehold.observe.secrets import mask_secrets

    error_id = secrets.token_hex(6)
    words = mask_secrets("".join(traceback.format_exception(error)))
    where = _write_report(words, error_id, home)
    short = mask_secrets(" ".join(str(error).split()))[:200]
    return FreeholdError(
        "cli.unexpected",
        f"Unexpected error: {type(error).__name__}{f': {short}' if short else ''}",
        hint=f"{where} (id {error_id}). To print the traceback here, set FREEHOLD_DEBUG=1",
    )


def is_debugging() -> bool:
    return os.environ.get("FREEHOLD_DEBUG", "") not in ("", "0")


def _write_report(words: str, error_id: str, home: Home) -> str:
    text = f"freehold failed [{error_id}]\n{words}"
    if home.logs.is_dir() and os.access(home.logs, os.W_OK):
        from freehold.keeper.log_writer import LogWriter
        from freehold.keeper.settings import LogLimits

        with LogWriter(home.logs, LogLimits(), time.time) as book:
            book.note(LOG_NAME, "error", text)
        return f"For details run: freehold logs {LOG_NAME} --home {home.root}"
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix="freehold-error-", suffix=".log")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return f"The details are in {Path(name)}"
