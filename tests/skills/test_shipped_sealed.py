"""Each skill that comes with Freehold is loaded by a real agent with a scripted model, and its scripts work sealed."""

import asyncio
import json
import struct
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from tests.builtin.client import relay_model
from tests.skills.permissive_client import PermissiveClient
from tests.support.agents import link_agents

import freehold.skills
from freehold.agents.acp.options import AgentOptions
from freehold.agents.acp.program import AgentProgram, run_agent
from freehold.agents.catalogue.definition import ModelEndpoint
from freehold.agents.catalogue.registry import find_agent
from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENTS_PATH, SKILLS_PATH, WORKSPACE
from freehold.computer.contract.spec import Mount
from freehold.home import Home
from freehold.manifest.model import Manifest
from freehold.skills.checks import list_scripts
from freehold.skills.library import SkillLibrary
from freehold.skills.sources import read_source
from freehold.testing import ScriptedModel

SHIPPED = {one.package.name: one.package for one in read_source(str(Path(freehold.skills.__file__).parent / "shipped"))}
GIT = "git -c user.name=t -c user.email=t@example.org"
REPOSITORY = f"git init -q -b main . && {GIT} commit -q --allow-empty -m 'feat: begin' && git tag v1 && git add -A"
SERVE = "python3 -m http.server PORT --bind 127.0.0.1 >/dev/null 2>&1 &"
WAIT = "~/.agents/skills/show-a-page/scripts/wait_for_port.py PORT"


def make_png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = zlib.compress((b"\0" + bytes([255, 0, 0] * 4)) * 2)
    head = struct.pack(">IIBBBBB", 4, 2, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@dataclass(frozen=True)
class Work:
    """One task with a skill. `S` in the command is the folder of its scripts; `seen` is what the agent is told then."""

    command: str
    seen: tuple[str, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict)


WORK = {
    "accessibility-check": Work(
        "S/check_page.py page.html", ("no alt", "no label"), {"page.html": "<img src=a><input id=q>"}
    ),
    "code-review": Work(
        f"{REPOSITORY} && S/describe_diff.py v1", ("look: a.py:2",), {"a.py": "def f():\n    return eval('1')\n"}
    ),
    "data-to-chart": Work(
        "S/chart.py a.csv --x month --y sales --out a.svg && grep -c svg a.svg",
        ("2 rows, 1 left out",),
        {"a.csv": "month,sales\nJan,10\nFeb,x\nMar,30\n"},
    ),
    "database-work": Work(
        "python3 fill.py && S/sqlite.py a.db schema && S/sqlite.py a.db query 'SELECT name * 6 FROM pet'",
        ("table pet: 1 rows", "42"),
        {
            "fill.py": "import sqlite3\nwith sqlite3.connect('a.db') as db:\n"
            "    db.execute('CREATE TABLE pet (name)')\n    db.execute('INSERT INTO pet VALUES (7)')\n"
        },
    ),
    "debug-a-crash": Work("S/repeat.py 2 -- python3 -c 'raise SystemExit(3)'", ("exit 3",)),
    "git-hygiene": Work(
        f"{REPOSITORY} && S/check_commit.py",
        ("key.txt: looks like a secret",),
        {"key.txt": "-----BEGIN RSA PRIVATE KEY-----\n"},
    ),
    "images": Work("S/png.py resize a.png b.png 2 && S/png.py info b.png", ("PNG 2",), {"a.png": make_png()}),
    "long-documents": Work(
        "S/document.py outline a.md && S/document.py check a.md",
        ("skips a level",),
        {"a.md": "# One\n\n### Two\n\nx\n"},
    ),
    "pdf": Work(
        "S/make_pdf.py a.md a.pdf && S/read_pdf.py a.pdf", ("Pages: 1", "About tea"), {"a.md": "# About tea\n\nHot.\n"}
    ),
    "performance-profile": Work(
        "S/profile_python.py s.py && S/compare.py --runs 3 -- true --- true",
        ("Peak of Python's memory", "brew"),
        {"s.py": "def brew():\n    return sum(range(300000))\nkept = [brew() for _ in range(3)]\n"},
    ),
    "release-notes": Work(
        f"{REPOSITORY} && {GIT} commit -q -m 'fix!: mend' && S/list_changes.py", ("v1..HEAD: 1 commits",), {"a": "x"}
    ),
    "rest-client": Work(
        f"{SERVE} {WAIT} && S/call.py GET http://127.0.0.1:PORT/tea.json; kill $!".replace("PORT", "8101"),
        ("lapsang",),
        {"tea.json": '["lapsang"]'},
    ),
    "scheduling": Work(
        "S/calendar_file.py make Tea 2026-03-02T10:00 45 --zone Europe/Berlin --out m.ics"
        " && S/calendar_file.py list m.ics --from 2026-03-02 --days 3 --zone Europe/Berlin",
        ("Mon 2026-03-02 10:00-10:45 Tea",),
    ),
    "show-a-page": Work(f"{SERVE} S/wait_for_port.py PORT; kill $!".replace("PORT", "8102"), ("answers with 200",)),
    "slides": Work("S/make_slides.py d.md d.html", ("2 slides",), {"d.md": "# One\n---\n# Two\n"}),
    "spreadsheet": Work(
        "S/xlsx.py from-csv a.xlsx Data=a.csv && S/xlsx.py show a.xlsx", ("Data has 3 rows",), {"a.csv": "a\nb\nc\n"}
    ),
    "web-research": Work(
        f"{SERVE} {WAIT} && S/fetch.py http://127.0.0.1:PORT/p.html && cat research/*.jsonl; kill $!".replace(
            "PORT", "8103"
        ),
        ("Assam is strong", "sha256"),
        {"p.html": "<p>Assam is strong<script>x</script>"},
    ),
    "write-a-skill": Work(
        "chmod +x tea/scripts/boil.sh && S/check_skill.py tea",
        ("tea is fine",),
        {
            "tea/SKILL.md": "---\nname: tea\ndescription: Makes tea.\n---\n\nRun scripts/boil.sh.\n",
            "tea/scripts/boil.sh": "#!/bin/sh\n",
        },
    ),
    "write-tests": Work(
        "S/find_untested.py src tests",
        ("a.py:2 unknown", "1 of 2"),
        {"src/a.py": "def known(): ...\ndef unknown(): ...\n", "tests/a.py": "known()\n"},
    ),
}


@dataclass(frozen=True)
class RunningAgent:
    computer: Computer
    model: ScriptedModel
    program: AgentProgram
    session: str

    async def do(self, text: str) -> str:
        """What its model was sent last in this turn."""
        self.model.requests.clear()
        await self.program.prompt(self.session, [{"type": "text", "text": text}])
        return self.model.requests[-1].body.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningAgent]:
    folder = tmp_path_factory.mktemp("home")
    home = Home(folder, folder / "run")
    link_agents(home.agents, ("builtin",))
    SkillLibrary(home).add(read_source(str(Path(freehold.skills.__file__).parent / "shipped")))
    definition = find_agent(Manifest(), "builtin")
    mounts = [Mount(home.agents, AGENTS_PATH), Mount(home.skills, SKILLS_PATH)]
    async with Computer.start(mounts=mounts) as computer, ScriptedModel() as model:
        around = await relay_model(computer, model, definition.kinds[0])
        endpoint = ModelEndpoint("test", definition.kinds[0], str(around["FREEHOLD_MODEL_URL"]), "key", "scripted")
        client = PermissiveClient(AgentOptions())
        async with run_agent(computer, definition.launch(endpoint), client) as program:
            opened = await program.new_session([])
            yield RunningAgent(computer, model, program, opened["sessionId"])


def test_every_script_of_every_shipped_skill_is_used_here() -> None:
    assert len(SHIPPED) >= 20
    for name, package in SHIPPED.items():
        for script in list_scripts(package):
            assert script.path.replace("scripts/", "S/") in WORK[name].command, f"{name}/{script.path}"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SHIPPED)
async def test_a_real_agent_loads_the_skill_and_its_scripts_do_their_work_sealed(
    agent: RunningAgent, name: str
) -> None:
    """Three are instructions for tools of Freehold and have no script."""
    instructions, work = SHIPPED[name].instructions, WORK.get(name, Work("true", ()))
    await agent.computer.run(f"mkdir {name}")
    for path, content in work.files.items():
        data = content.encode() if isinstance(content, str) else content
        await agent.computer.run(f"mkdir -p {name}/$(dirname {path})")
        await agent.computer.files.write(f"{WORKSPACE}/{name}/{path}", data)
    command = work.command.replace("S/", f"~/.agents/skills/{name}/scripts/")
    async with asyncio.timeout(120):
        said = await agent.do(f"CALL skill {json.dumps({'name': name})}\nRUN cd {name}; {command}\nSAY done")
    first = instructions.rpartition("\n---\n")[2].strip().splitlines()[0]
    assert json.dumps(first, ensure_ascii=False)[1:-1] in said
    for words in work.seen:
        assert words not in instructions, "the skill itself says it"
        assert words not in command, "the prompt says it"
        assert words in said, said[-3000:]
