"""Objects that the tools, the routes and the service of one feature share."""

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

FO = TypeVar("FO")


class FeatureObjects:
    """One object for each class, made when it is asked for first. Also used by the thread that loads the routes."""

    def __init__(self) -> None:
        self._made: dict[type[object], object] = {}
        self._making = Lock()

    def find(self, kind: type[FO], make: Callable[[], FO]) -> FO:
        with self._making:
            found = self._made.get(kind)
            if not isinstance(found, kind):
                found = self._made[kind] = make()
            return found
