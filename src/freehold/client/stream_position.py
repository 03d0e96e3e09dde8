"""Server-sent events, without any input or output: both halves of the client use it."""

FIRST_RETRY = 0.1
MAX_RETRY = 10.0


class StreamPosition:
    """The last event that was received, and the wait before the next attempt to connect."""

    def __init__(self, after: int | None) -> None:
        self.after = after
        self._wait = FIRST_RETRY
        self._kind, self._data = "", ""
        self._id: int | None = None

    def receive(self, line: str) -> str | None:
        """The data of a message that this line ends; None while there is none."""
        if line == "":
            kind, data, id = self._kind, self._data, self._id
            self._kind, self._data, self._id = "", "", None
            if id is not None:
                self.after = id
                self._wait = FIRST_RETRY
            return data if data and not kind else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data = f"{self._data}\n{value}" if self._data else value
        elif name == "event":
            self._kind = value
        elif name == "id" and value.isascii() and value.isdigit():
            self._id = int(value)
        return None

    def note_failure(self) -> None:
        """What was received of an unfinished message comes again."""
        self._kind, self._data, self._id = "", "", None

    def next_wait(self) -> float:
        """Seconds before the next attempt; twice as many after each that brought nothing."""
        self.note_failure()
        wait, self._wait = self._wait, min(MAX_RETRY, self._wait * 2)
        return wait
