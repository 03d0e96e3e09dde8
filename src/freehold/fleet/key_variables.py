"""Which variables of the environment hold keys of the owner: those that the manifest names as `env:NAME`."""

from collections.abc import Iterator, Mapping

from freehold.manifest.model import Manifest

PREFIX = "env:"


def list_key_variables(manifest: Manifest) -> tuple[str, ...]:
    return tuple(sorted(set(_find_names(manifest.model_dump(mode="json")))))


def _find_names(value: object) -> Iterator[str]:
    if isinstance(value, str) and value.startswith(PREFIX):
        yield value.removeprefix(PREFIX)
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _find_names(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _find_names(below)
