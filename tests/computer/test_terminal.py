import signal

import pytest
from tests.computer.waits import until_quiet
from tests.support.condition import until

from freehold.computer import Computer
from freehold.errors import FreeholdError

SHELL = ["/bin/sh", "-i"]
QUIET = {"PS1": "$ ", "ENV": None}


async def test_a_terminal_is_a_tty(computer: Computer) -> None:
    async with await computer.terminal(SHELL, rows=30, cols=100, env=QUIET) as terminal:
        await terminal.write(b"tty; stty size; echo en''d\n")
        shown = await terminal.read_until(b"end\r\n")
        assert b"/dev/pts/" in shown
        assert b"30 100" in shown


async def test_resize_reaches_the_program(computer: Computer) -> None:
    program = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done"
    async with await computer.terminal(program) as terminal:
        await terminal.read_until(b"ready\r\n")
        terminal.resize(41, 123)
        await terminal.read_until(b"41 123\r\n")


async def test_ctrl_c_and_signals_go_to_the_foreground(computer: Computer) -> None:
    program = "trap 'echo interrupted' INT; trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    async with await computer.terminal(program) as terminal:
        await terminal.read_until(b"ready\r\n")
        await terminal.write(b"\x03")
        await terminal.read_until(b"interrupted")
        terminal.signal(signal.SIGTERM)
        await terminal.read_until(b"asked")
        assert (await terminal.wait()).code == 5


async def test_a_terminal_outlives_its_link_and_shows_missed_output(computer: Computer) -> None:
    gone = await Computer.connect(computer.transport)
    terminal = await gone.terminal(SHELL, env=QUIET)
    await terminal.write(b"echo fir''st\n")
    await terminal.read_until(b"first\r\n$ ")
    await terminal.write(b"while [ ! -e go ]; do sleep 0.01; done; echo sec''ond; touch done\n")
    await gone.close()
    await computer.files.write("go", b"")
    async with Computer.connect(computer.transport) as back:
        (info,) = await back.terminals()
        assert info.id == terminal.id
        assert info.viewers == 0
        whole = await back.attach(terminal.id)
        assert b"first" in await whole.read_until(b"second")
        rest = await back.attach(terminal.id, since=terminal.position)
        missed = await rest.read_until(b"second")
        assert b"first" not in missed
        await rest.write(b"exit 7\n")
        assert (await rest.wait()).code == 7
        assert (await whole.wait()).code == 7
        assert await back.terminals() == []


async def test_an_ended_terminal_is_kept_until_a_viewer_has_seen_its_end(computer: Computer) -> None:
    terminal = await computer.terminal("while [ ! -e go ]; do sleep 0.01; done; echo words; exit 3")
    await terminal.detach()
    await computer.files.write("go", b"")

    async def ended() -> bool:
        return (await computer.terminals())[0].ended

    await until(ended)
    again = await computer.attach(terminal.id)
    assert await again.read_until(b"words\r\n") == b"words\r\n"
    assert (await again.wait()).code == 3
    with pytest.raises(FreeholdError) as caught:
        await computer.attach(terminal.id)
    assert caught.value.code == "computer.no-terminal"


async def test_scrollback_is_bounded(computer: Computer) -> None:
    terminal = await computer.terminal("yes | head -c 300000; echo finished; cat", scrollback=8192)
    await terminal.read_until(b"finished\r\n")
    assert terminal.position > 400_000
    again = await computer.attach(terminal.id)
    tail = await again.read_until(b"finished\r\n")
    assert len(tail) <= 2 * 8192
    await terminal.close()


async def test_the_output_of_several_terminals_does_not_mix(computer: Computer) -> None:
    terminals = [await computer.terminal(f"echo I am {number}; cat") for number in range(8)]
    for number, terminal in enumerate(terminals):
        assert await terminal.read_until(b"\r\n") == f"I am {number}\r\n".encode()
    assert len(await computer.terminals()) == 8
    for terminal in terminals:
        await terminal.close()
    await until_quiet(computer)


async def test_closing_a_terminal_kills_everything_in_it(computer: Computer) -> None:
    terminal = await computer.terminal("(setsid sleep 1000 &); echo up; sleep 1001")
    await terminal.read_until(b"up\r\n")
    await computer.close_terminal(terminal.id)
    await until_quiet(computer)
    with pytest.raises(FreeholdError):
        await computer.close_terminal(terminal.id)


async def test_a_flooding_terminal_waits_for_its_only_viewer(computer: Computer) -> None:
    async with await computer.terminal("yes") as terminal:
        await computer.run("sleep 0.2")
        assert sum(len(part) for part in terminal.output._parts) <= 256 * 1024
        for _ in range(20):
            assert await terminal.read()


async def test_the_number_of_terminals_is_limited(computer: Computer) -> None:
    for _ in range(64):
        await computer.terminal(["cat"])
    with pytest.raises(FreeholdError) as caught:
        await computer.terminal(["cat"])
    assert caught.value.code == "computer.too-many-terminals"


async def test_an_invalid_size_is_ignored(computer: Computer) -> None:
    async with await computer.terminal("cat", rows=10, cols=20) as terminal:
        terminal.resize(0, -5)
        terminal.resize(10**9, 10)
        await terminal.write(b"still here\n")
        await terminal.read_until(b"still here")
        (info,) = await computer.terminals()
        assert (info.rows, info.cols) == (10, 20)
    with pytest.raises(FreeholdError):
        await computer.terminal("cat", rows=-1)
