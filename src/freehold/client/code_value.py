"""The value of code that has ended, as `home.code.evaluate` returns it."""

import base64
import json
from typing import Any

from freehold.client.models import CodeRun
from freehold.client.problems import stream_error


def read_value(run: CodeRun) -> Any:
    """The value of the last expression. Raises `computer.limit` or `computer.code-failed` if the code did not succeed."""
    if run.limit is not None:
        said = f"The code reached the limit `{run.limit}` of its isolate after {run.duration:.1f} s"
        raise stream_error("computer.limit", said, f"Raise {run.limit} in `limits`, or change the code")
    if run.error is not None or run.exit_code:
        error = run.error
        said = f"exit code {run.exit_code}" if error is None else f"{error.name}: {error.message}"
        raise stream_error("computer.code-failed", f"The code failed: {said}", "Change the code and run it again")
    item = next((one for one in run.items if one.role == "value"), None)
    if item is None:
        return None
    if item.text is None:
        return base64.b64decode(item.data or "")
    if item.type not in ("json", "table"):
        return item.text
    try:
        return json.loads(item.text)
    except (ValueError, RecursionError):
        said = "The value of the code is not valid JSON"
        raise stream_error("client.odd-answer", said, "`execute` returns it as it came") from None
