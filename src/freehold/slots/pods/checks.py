"""What a path, a media type and an ETag may be. Every error names the field."""

import re
from fnmatch import fnmatchcase

from freehold.slots.errors import SlotError
from freehold.slots.pods.contract import MAX_DEPTH, MAX_MEDIA, MAX_NAME, MAX_PATH

_MEDIA = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)
RESERVED_ENDINGS = (".acl", ".acr", ".meta")
"""Names by which Solid servers keep who may reach a document, and what is known about it."""
VARIANT = "$."
"""In the name of a file, what follows is its media type. See `files`."""


def invalid(message: str, hint: str = "") -> SlotError:
    return SlotError("pods", "invalid", message, hint=hint)


def not_found(path: str) -> SlotError:
    return SlotError("pods", "not-found", f"There is no {path[:200]!a}", hint="freehold pods lists what is there")


def conflict(message: str, hint: str = "") -> SlotError:
    return SlotError("pods", "conflict", message, hint=hint)


def changed(path: str) -> SlotError:
    """A condition of a write does not hold. As HTTP has it, this is 412."""
    message, hint = f"{path[:200]!a} has changed, or is there already", "Read it again, and decide what to keep"
    return SlotError("pods", "conflict", message, hint=hint, kind="precondition")


def check_path(path: str) -> tuple[str, ...]:
    """The names of a path that does not end with `/`. Raises `pods.invalid`."""
    if not 0 < len(path) <= MAX_PATH:
        raise invalid(f"A path has 1 to {MAX_PATH} characters")
    names = tuple(path.split("/"))
    if len(names) > MAX_DEPTH:
        raise invalid(f"A path has at most {MAX_DEPTH} parts")
    for name in names:
        if name in ("", ".", "..") or len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
            raise invalid(f"{path[:200]!a} is not a path: each part has 1 to {MAX_NAME} bytes, and is not . or ..")
        if name.lower().endswith(RESERVED_ENDINGS):
            raise invalid(f"{name[:80]!a} is kept for servers: who may reach a document is not a document")
        if not name.isprintable() or "\\" in name or VARIANT in name or name.startswith(".freehold-"):
            raise invalid(
                f"{name[:80]!a} cannot be the name of a document", "Use printable characters without \\ and $."
            )
    return names


def check_folder(folder: str) -> str:
    """The path of a folder, with `/` at its end; empty for the root."""
    plain = folder.removesuffix("/")
    if plain:
        check_path(plain)
    return f"{plain}/" if plain else ""


def check_media(media: str) -> str:
    """Without parameters, in small letters."""
    plain = media.partition(";")[0].strip().lower()
    if len(plain) > MAX_MEDIA or _MEDIA.fullmatch(plain) is None:
        raise invalid(f"{media[:80]!a} is not a media type", "Such as text/plain or application/json")
    return plain


def check_pattern(media: str) -> str:
    """A media type, in which both halves or the second one may be `*`."""
    if media == "*/*":
        return media
    if media.endswith("/*"):
        return f"{check_media(media[:-1] + 'any').removesuffix('any')}*"
    return check_media(media)


def media_matches(pattern: str, media: str | None) -> bool:
    return media is not None and fnmatchcase(media, pattern)
