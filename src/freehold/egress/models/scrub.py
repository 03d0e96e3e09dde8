"""Masks the key in a response, in case a provider returns it."""

MASK = b"*"


class Scrubber:
    """Replaces every occurrence of the key by stars, also when it is split over several parts of a stream.

    Only bytes that could be the start of the key are held back, so nothing else is delayed.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        if not self._key:
            return piece
        data = self._held + piece
        if self._key in data:
            data = data.replace(self._key, MASK * len(self._key))
        keep = self._beginning(data)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def end(self) -> bytes:
        """The bytes that were held back."""
        held, self._held = self._held, b""
        return held

    def text(self, value: str) -> str:
        """Masks a whole value, such as that of a header."""
        return value.replace(self._key.decode("latin-1"), MASK.decode() * len(self._key)) if self._key else value

    def _beginning(self, data: bytes) -> int:
        """How many bytes at the end of the data are the start of the key."""
        key = self._key
        at = max(0, len(data) - len(key) + 1)
        while (at := data.find(key[:1], at)) >= 0:
            if key.startswith(data[at:]):
                return len(data) - at
            at += 1
        return 0
