"""The manifest in force: some of its sections follow the files while Freehold runs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from freehold.manifest.loader import LoadedManifest, checksum_of, require_manifest
from freehold.manifest.model import Manifest
from freehold.manifest.overlay import LIVE_SECTIONS, overlay_path

FileVersion = tuple[tuple[int, int, int] | None, ...]


class CurrentManifest:
    """`reload` applies the sections of `LIVE_SECTIONS`. All others stay as they were when Freehold started."""

    def __init__(self, loaded: LoadedManifest, environ: Mapping[str, str], home: Path) -> None:
        self._loaded = loaded
        self._environ = environ
        self._home = home

    @property
    def loaded(self) -> LoadedManifest:
        return self._loaded

    @property
    def manifest(self) -> Manifest:
        return self._loaded.manifest

    def reload(self) -> None:
        """Blocking. Raises `manifest.invalid` when the files have errors: nothing changes then."""
        found = require_manifest(self._loaded.path, self._environ, home=self._home)
        live = {name: getattr(found.manifest, name) for name in LIVE_SECTIONS}
        manifest = self.manifest.model_copy(update=live)
        self._loaded = replace(found, manifest=manifest, checksum=checksum_of(manifest))

    def read_version(self) -> FileVersion:
        """Changes when one of the files was changed or replaced."""
        return tuple(_version_of(path) for path in (self._loaded.path, overlay_path(self._loaded.path)))


def _version_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)
