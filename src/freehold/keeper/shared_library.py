"""Whether programs in a system find a shared library: by the cache of its linker, or in a folder where it always looks."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from freehold.computer.walls.inside import TOP_LEVEL

CACHE = "etc/ld.so.cache"
_USUAL = ("lib", "lib64", "usr/lib", "usr/lib64", "usr/lib/*-linux-gnu")


def has_library(root: Path, name: str, *, is_image: bool) -> bool:
    """Only places of `root` count that a computer shows: of this machine /usr, of an image /opt as well."""
    shown = ("usr", *TOP_LEVEL, *(("opt",) if is_image else ()))
    places = (place for place in _list_places(root, name) if place.partition("/")[0] in shown)
    return any(os.path.lexists(root / place) for place in places)


def _list_places(root: Path, name: str) -> Iterator[str]:
    for pattern in _USUAL:
        yield from (f"{folder.relative_to(root)}/{name}" for folder in root.glob(pattern))
    try:
        cache = (root / CACHE).read_bytes()
    except OSError:
        return
    # Of each library it has the name and the whole path, as texts that end with a zero.
    for found in re.finditer(rb"/([^\0]{1,4000}/" + re.escape(name.encode()) + rb")\0", cache):
        yield os.fsdecode(found[1])
