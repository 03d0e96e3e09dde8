"""Packages for isolates: prepared folders, there from the first line, and never fetched."""

from collections.abc import AsyncIterator
from itertools import combinations
from pathlib import Path

import pytest
import pytest_asyncio
from tests.computer.isolates.conftest import NODE_PLACE, node_folder
from tests.support.condition import until

from freehold.computer import Computer, Grants, Mount
from freehold.errors import FreeholdError
from freehold.guest.isolates import package
from freehold.guest.isolates.service import MAX_ZYGOTES
from freehold.guest.spawn import OperationError

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

SMALL = ("one", "two", "three", "four")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prepared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Computer]:
    folder = tmp_path_factory.mktemp("packages")
    folder.chmod(0o755)
    write(folder / "greeting" / "greeting.py", "WORDS = 'hello'")
    write(folder / "py-yaml" / "yaml.py", "NAME = 'yaml'")
    write(folder / "broken" / "broken.py", "raise ImportError('no such library')")
    write(folder / "shout" / "node_modules" / "shout" / "index.js", "module.exports = (text) => text.toUpperCase()")
    write(folder / "noise" / "node_modules" / "noise" / "index.js", "throw new Error('no such library')")
    for name in SMALL:
        write(folder / name / f"{name}.py", "")
    write(folder / "notes" / "private.txt", "private")
    mounts = [Mount(node_folder(), NODE_PLACE), Mount(folder, "/opt/packages"), Mount(folder / "notes", "/opt/notes")]
    async with Computer.start(mounts=mounts) as computer:
        yield computer


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)


async def count_zygotes(computer: Computer) -> int:
    return len([one for one in await computer.processes() if "--zygote" in one.command and one.parent == 1])


async def test_a_python_package_is_loaded_before_the_code_runs(prepared: Computer) -> None:
    context = await prepared.python.contexts.create(packages=("greeting",))
    assert await context.evaluate("import sys; 'greeting' in sys.modules")
    assert await context.evaluate("import greeting; greeting.WORDS") == "hello"
    await context.delete()


async def test_without_it_the_package_is_not_there(prepared: Computer) -> None:
    result = await prepared.python.execute("import greeting")
    assert result.error is not None
    assert result.error.name == "ModuleNotFoundError"


async def test_what_else_is_mounted_below_opt_is_not_granted(prepared: Computer) -> None:
    assert (await prepared.run("cat /opt/notes/private.txt")).stdout == b"private"
    python = await prepared.python.execute("open('/opt/notes/private.txt')")
    assert python.error is not None
    assert python.error.name == "PermissionError"
    javascript = await prepared.javascript.execute("require('fs').readFileSync('/opt/notes/private.txt')")
    assert javascript.error is not None
    assert "EACCES" in javascript.error.message


async def test_the_modules_of_a_package_may_have_other_names(prepared: Computer) -> None:
    assert await prepared.python.evaluate("import yaml; yaml.NAME", grants=Grants(packages=("py-yaml",))) == "yaml"


async def test_a_javascript_package_can_be_required(prepared: Computer) -> None:
    for language in (prepared.javascript, prepared.typescript):
        context = await language.contexts.create(packages=("shout",))
        assert await context.evaluate("require('shout')('quiet')") == "QUIET"
        await context.delete()
    assert (await prepared.javascript.execute("require('shout')")).error is not None


@pytest.mark.parametrize(("language", "name"), [("python", "broken"), ("javascript", "noise")])
async def test_a_package_that_cannot_be_loaded_says_why(prepared: Computer, language: str, name: str) -> None:
    with pytest.raises(FreeholdError, match="no such library"):
        await getattr(prepared, language).execute("1", grants=Grants(packages=(name,)))


@pytest.mark.parametrize("name", ["../greeting", "", ".", "a=b", "/etc"])
async def test_a_name_that_leads_elsewhere_is_refused(prepared: Computer, name: str) -> None:
    with pytest.raises(FreeholdError, match="is not the name of a package"):
        await prepared.python.execute("1", grants=Grants(packages=(name,)))


async def test_what_the_system_of_the_computer_has_counts_as_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "site" / "six.py", "")
    monkeypatch.setattr(package, "PYTHON_FOLDERS", (str(tmp_path / "site"),))
    assert package.find_package("python", "six") == str(tmp_path / "site")
    with pytest.raises(OperationError, match="not prepared in this computer for javascript"):
        package.find_package("javascript", "six")


async def test_many_sets_of_packages_do_not_fill_the_computer_with_interpreters(prepared: Computer) -> None:
    """The order of the names makes no difference, and the interpreter that was idle for longest ends."""
    sets = [names for size in range(len(SMALL) + 1) for names in combinations(SMALL, size)]
    assert len(sets) > MAX_ZYGOTES

    async def few_are_left() -> bool:
        return await count_zygotes(prepared) <= MAX_ZYGOTES

    for names in sets:
        assert await prepared.python.evaluate("1", grants=Grants(packages=names)) == 1
        assert await prepared.python.evaluate("2", grants=Grants(packages=names[::-1])) == 2
        await until(few_are_left)
