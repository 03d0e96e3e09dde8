"""A keeper whose early gateway ends before it is needed."""

import freehold.keeper.__main__ as keeper
from freehold.keeper import started_process


class EndedProcess(started_process.EarlyProcess):
    def take(self) -> started_process.StartedProcess | None:
        if self._started is not None:
            self._started.process.kill()
        return super().take()


started_process.EarlyProcess = EndedProcess  # type: ignore[misc]
if __name__ == "__main__":
    keeper.main()
