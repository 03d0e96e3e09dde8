"""The sleep of one computer, as the keeper runs it, when something goes wrong."""

import contextlib
import errno
import os
from pathlib import Path

import pytest
from tests.computer.test_backend_conformance import make_spec
from tests.support.condition import until

from freehold.computer import Computer, launch
from freehold.computer.contract.report import SleepReport
from freehold.keeper.computer_sleep import ComputerSleep, open_use_socket


async def test_a_computer_whose_sleep_fails_unexpectedly_stays_awake_and_its_status_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "link"
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(open_use_socket(path))
        machine = await launch(make_spec(tmp_path, "one"), path)
        stack.push_async_callback(machine.stop, 0)

        async def fail() -> SleepReport:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(machine, "sleep", fail)
        sleep = ComputerSleep(machine, 0.02, listener, lambda *_: None)
        stack.push_async_callback(sleep.close)
        await until(lambda: sleep.status().trouble is not None)
        assert "No space left on device" in (sleep.status().trouble or "")
        assert not sleep.status().asleep
        assert "does not sleep any more" in caplog.text
        async with Computer.connect(path) as computer:
            assert (await computer.run("echo awake")).stdout == b"awake\n"
