"""The names under which agents are offered the tools of servers. Providers of models take few characters."""

import hashlib
import re

MAX_OFFERED = 48
"""Agents put names of their own in front, such as `mcp__freehold__`, and providers take 63 or 64 characters in all."""
_DIGITS = 10
_FIT = re.compile(r"[A-Za-z0-9_-]+")
_MAPPED = re.compile(rf".*_[0-9a-f]{{{_DIGITS}}}")


def fit_offered_name(server: str, tool: str) -> str:
    """`server__tool` where that fits. Any other ends with a hash of the real name: it is always the same, and its own."""
    plain = f"{server}__{tool}"
    if len(plain) <= MAX_OFFERED and _FIT.fullmatch(plain) and not _MAPPED.fullmatch(plain):
        return plain
    digest = hashlib.sha256(f"{server}\n{tool}".encode()).hexdigest()[:_DIGITS]
    return f"{re.sub('[^A-Za-z0-9_-]', '_', plain)[: MAX_OFFERED - _DIGITS - 1]}_{digest}"
