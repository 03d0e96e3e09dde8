"""Isolates of one interpreter draw different random numbers, also where a package drew, or made a generator, at its import."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy
import pytest
import pytest_asyncio
from tests.computer.isolates.conftest import NODE_PLACE, node_folder

from freehold.computer import Computer, Grants, Mount

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

PYTHON = """
import random
own = random.Random()
chosen = random.Random(42)
class Fixed(random.Random):
    def seed(self, number):
        super().seed(number)
fixed = Fixed(42)
first = [own.random(), chosen.random(), fixed.random()]
"""
NUMPY = """
import numpy
generator = numpy.random.default_rng()
bits = numpy.random.Philox()
state = numpy.random.RandomState()
seeds = numpy.random.SeedSequence()
generator.normal(), state.normal(), numpy.random.normal()
"""
DRAWN_OF_NUMPY = {
    "generator": "generator.random()",
    "its seeds": "generator.spawn(1)[0].random()",
    "bit generator": "bits.random_raw()",
    "state": "state.normal()",
    "seeds": "seeds.generate_state(1)[0]",
    "the global state": "numpy.random.normal()",
}
JAVASCRIPT = """
const crypto = require('node:crypto');
const { random } = Math, { randomUUID, randomInt, randomBytes } = crypto;
const seed = {draw};
let state = Number(`0.${String(seed).replace(/[^0-9]/g, '')}`) * 2 ** 31;
module.exports = {
  random, randomUUID, randomInt, seed,
  own: () => (state = (state * 48271) % 2147483647),
};
"""
DRAWS = {
    "random": "Math.random()",
    "uuid": "crypto.randomUUID()",
    "webuuid": "globalThis.crypto.randomUUID()",
    "int": "crypto.randomInt(2 ** 40)",
    "bytes": "crypto.randomBytes(6).readUIntBE(0, 6)",
    "values": "crypto.getRandomValues(new Uint32Array(1))[0]",
    "key": "crypto.generateKeySync('hmac', { length: 64 }).export().readUIntBE(0, 6)",
    "curve": "crypto.createECDH('prime256v1').generateKeys().readUIntBE(1, 6)",
    "oldbytes": "crypto.pseudoRandomBytes(6).readUIntBE(0, 6)",
    "nothing": "0",
}
DRAWN = """
const own = require({name}), crypto = require('node:crypto');
[Math.random(), own.random(), crypto.randomUUID(), own.randomUUID(), globalThis.crypto.randomUUID(), own.randomInt(2 ** 40),
 crypto.randomBytes(8).toString('hex')]
"""
MODULE = """
import { randomUUID } from 'node:crypto';
const seed = Math.random();
export const draw = () => [seed, Math.random(), randomUUID()];
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prepared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Computer]:
    folder = tmp_path_factory.mktemp("packages")
    folder.chmod(0o755)
    write(folder / "dice" / "dice.py", PYTHON)
    write(folder / "stats" / "stats.py", NUMPY)
    for name, draw in DRAWS.items():
        write(folder / name / "node_modules" / name / "index.js", JAVASCRIPT.replace("{draw}", draw))
    write(folder / "modern" / "node_modules" / "modern" / "index.js", MODULE)
    write(folder / "modern" / "node_modules" / "modern" / "package.json", '{"type": "module"}')
    mounts = [Mount(node_folder(), NODE_PLACE), Mount(folder, "/opt/packages"), *mount_numpy(folder)]
    async with Computer.start(mounts=mounts) as computer:
        yield computer


def mount_numpy(folder: Path) -> list[Mount]:
    """The numpy of this environment, as `pip install --target` makes it."""
    installed = Path(numpy.__file__).parent
    found = [installed, installed.with_name("numpy.libs")]
    for one in found:
        (folder / "numpy" / one.name).mkdir(parents=True)
    return [Mount(one, f"/opt/packages/numpy/{one.name}") for one in found if one.exists()]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_generators_that_a_python_package_made_are_seeded_anew(prepared: Computer) -> None:
    drawn = [
        await prepared.python.evaluate(
            "import dice, random; [dice.own.random(), dice.chosen.random(), dice.fixed.random(), random.random()]",
            grants=Grants(packages=("dice",)),
        )
        for _ in range(5)
    ]
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == len(drawn)


async def test_generators_of_numpy_are_seeded_anew(prepared: Computer) -> None:
    if await prepared.python.evaluate("import sys; list(sys.version_info[:2])") != list(sys.version_info[:2]):
        pytest.skip("numpy is installed here for another Python than that of the computer: it was not tried")
    code = f"import stats, numpy\nfrom stats import *\n[float(one) for one in ({', '.join(DRAWN_OF_NUMPY.values())})]"
    grants = Grants(packages=("numpy", "stats"))
    drawn = [await prepared.python.evaluate(code, grants=grants) for _ in range(5)]
    for name, values in zip(DRAWN_OF_NUMPY, zip(*drawn, strict=True), strict=True):
        assert len(set(values)) == len(drawn), name


@pytest.mark.parametrize("draw", list(DRAWS))
async def test_what_a_javascript_package_draws_at_its_load_is_drawn_anew_in_each_isolate(
    prepared: Computer, draw: str
) -> None:
    code = DRAWN.replace("{name}", repr(draw))
    grants = Grants(packages=(draw,))
    drawn = [await prepared.javascript.evaluate(code, grants=grants) for _ in range(5)]
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == len(drawn)
    own = [await prepared.javascript.evaluate(f"require({draw!r}).own()", grants=grants) for _ in range(5)]
    assert len(set(own)) == (1 if draw == "nothing" else len(own))


async def test_a_package_of_es_modules_is_loaded_in_each_isolate(prepared: Computer) -> None:
    grants = Grants(packages=("modern",))
    drawn = [
        await prepared.javascript.evaluate("import { draw } from 'modern'; draw()", grants=grants) for _ in range(5)
    ]
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == len(drawn)
