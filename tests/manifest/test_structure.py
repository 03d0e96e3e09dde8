"""Unknown keys and wrong types: told with line, nearest key and example."""

from collections.abc import Iterator

import pytest
from pydantic.fields import FieldInfo
from tests.manifest.machine import look, only

from freehold.manifest import structure
from freehold.manifest.shape import list_keys


@pytest.mark.parametrize(
    ("text", "line", "key", "meant"),
    [
        ("[gateway]\n\nprot = 3000", 3, "gateway.prot", "gateway.port? Example: port = 3000"),
        ("[gatway]\nport = 3000", 1, "gatway", "gateway? Example: [gateway]"),
        ("[computer.limits]\nmem = 1", 2, "computer.limits.mem", "computer.limits.memory"),
        ('[computer.limit]\nmemory = "1GiB"', 1, "computer.limit", "computer.limits? Example: [computer.limits]"),
        ('[[computer.mounts]]\nsource = "~/a"\ntarget = "/mnt/a"\nwriteable = true', 4, "computer.mounts[0].writeable", "writable"),
        ("[computer.services.web]\ncommand = 'x'\nrestart-on-undo = true", 3, "computer.services.web.restart-on-undo", "restart_on_undo"),
        ("[models.local]\nenabled = false\nbase-url = 'x'", 3, "models.local.base-url", "base_url"),
        ("[agents.mine]\ncommand = 'x'\nmodes = 'x'", 3, "agents.mine.modes", "mode"),
        ("slots = { bead = 'off' }", 1, "slots.bead", "slots.beads"),
        ("[security.exceptions.plain-model]\nreasons = 'x'\nreason = 'x'", 2, "security.exceptions.plain-model.reasons", "reason"),
    ],
)  # fmt: skip
def test_unknown_key_names_the_nearest(text: str, line: int, key: str, meant: str) -> None:
    problem = next(problem for problem in look(text).problems if problem.code == "E005")
    assert (problem.line, problem.key) == (line, key)
    assert key in problem.message
    assert meant in problem.hint


def test_a_key_of_another_section_is_sent_home() -> None:
    assert "belongs in [computer.limits]" in only(look("[gateway]\nopen_files = 3")).hint


def test_a_key_like_no_other_gets_the_list() -> None:
    assert "owner, gateway, keeper" in only(look("zzz = 1")).hint


@pytest.mark.parametrize(
    ("text", "key", "says", "example"),
    [
        ('[gateway]\nport = "3000"', "gateway.port", "whole number", "port = 3000"),
        ("[gateway]\nport = 3000.0", "gateway.port", "whole number", "port = 3000"),
        ("[gateway]\nport = true", "gateway.port", "not true", "port = 3000"),
        ("[gateway]\nport = 70000", "gateway.port", "between 1 and 65535, not 70000", "port = 3000"),
        ("[gateway]\nport = 0", "gateway.port", "between 1 and 65535, not 0", "port = 3000"),
        ("gateway = 3000", "gateway", "a table, not 3000", "[gateway]"),
        ("[gateway]\ntrusted_proxies = '::1'", "gateway.trusted_proxies", "a list", "trusted_proxies = ["),
        ("[gateway]\ntrusted_proxies = [1]", "gateway.trusted_proxies[0]", "a string in quotes, not 1", "trusted_proxies = ["),
        ("[ssh]\nenabled = 1", "ssh.enabled", "true or false", "enabled = true"),
        ("[ssh]\nlifetime = '1 fortnight'", "ssh.lifetime", "1 fortnight", 'lifetime = "1d"'),
        ("[ssh]\nlifetime = '1500ms'", "ssh.lifetime", "whole number of seconds", 'lifetime = "1d"'),
        ("[computer.limits]\nmemory = '4 gigs'", "computer.limits.memory", "GiB", 'memory = "4GiB"'),
        ("[computer.limits]\ncpus = nan", "computer.limits.cpus", "finite", "cpus = 1.5"),
        ("[computer.limits]\ncpus = inf", "computer.limits.cpus", "finite", "cpus = 1.5"),
        ("[computer]\nbackend = 'bubblewarp'", "computer.backend", "'docker'", 'backend = "bubblewrap"'),
        ("[computer]\nmounts = { source = 'x' }", "computer.mounts", "a list, not a table", "[[computer.mounts]]"),
        ("[computer]\nservices = []", "computer.services", "a table, not a list", "[computer.services]"),
        ("[computer.services.web]\ncommand = 'a \"b'", "computer.services.web.command", "quotation", "npm run dev"),
        ("[slots]\nbeads = 'remote'", "slots.beads.mode", "'external'", "mode ="),
        ("[slots]\nbeads = 3", "slots.beads", "a table, not 3", "[slots.beads]"),
        ("[agents]\ndefualt = 'x'", "agents.defualt", "a table", "agents.default"),
        ("[agents.mine]\ncommand = 'x'\nenv = { A = 1 }", "agents.mine.env.A", "a string in quotes, not 1", "env = {"),
        ("[security.exceptions.plain-model]\nreason = 'x'\nuntil = 'soon'", "security.exceptions.plain-model.until", "soon", "2027-06-30"),
        ("[security.exceptions.plain-model]\nreason = 'x'\nuntil = 12:00:00", "security.exceptions.plain-model.until", "date", "2027-06-30"),
    ],
)  # fmt: skip
def test_wrong_type_names_what_is_wanted(text: str, key: str, says: str, example: str) -> None:
    problem = next(problem for problem in look(text).problems if problem.code == "E006")
    assert problem.key == key
    assert problem.line == next(
        number
        for number, line in enumerate(text.splitlines(), 1)
        if key.split(".")[-1].split("[")[0] in line or "beads" in line
    )
    assert says in problem.message
    assert example in problem.hint


def test_all_problems_are_told_at_once() -> None:
    text = """\
[gateway]
prot = 1
port = "x"
[keeper]
port = 9091
[[computer.mounts]]
source = 3
target = "/mnt/a"
[[computer.mounts]]
source = "~/.ssh"
target = "/mnt/b"
[[computer.mounts]]
target = 4
source = "~/code"
[egress]
mode = "alow"
allow = ["*"]
"""
    assert [(problem.code, problem.line) for problem in look(text).problems] == [
        ("E005", 2),
        ("E006", 3),
        ("E101", 5),
        ("E006", 7),
        ("E221", 10),
        ("E006", 13),
        ("E006", 16),
        ("E303", 17),
    ]


def test_what_could_not_be_read_is_not_called_missing() -> None:
    assert only(look("[agents.mine]\ncommand = 3")).code == "E006"
    assert only(look("[models.openai]\nkind = 'openai'\nkey = 3")).code == "E006"


@pytest.mark.parametrize("text", ["[models.a]\nkey = 'hunter2hunter2'", "[models.a]\nkey = { is = 'hunter2hunter2' }", "[gateway]\nport = 'sk-hunter2hunter2hunter2'", "[gateway]\nhost = 'https://u:hunter2@x.com'", "[agents.a]\ncommand = 'x'\nenv = { K = 'sk-hunter2hunter2hunter2' }", "[slots.beads]\nmode = 'external'\nsettings = { api_token = 'hunter2' }"])  # fmt: skip
def test_a_secret_in_the_manifest_is_never_repeated(text: str) -> None:
    loaded = look(text)
    assert loaded.errors
    assert "hunter2" not in "".join(problem.message + problem.hint for problem in loaded.problems)


def test_the_keys_are_listed_once_however_many_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at all of them takes a third of a millisecond, and a file can hold thirty thousand wrong names."""
    looks = 0

    def counted() -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
        nonlocal looks
        looks += 1
        return list_keys()

    monkeypatch.setattr(structure, "list_keys", counted)
    structure._places.cache_clear()
    _, mistakes = structure.build_manifest({f"k{number}": 1 for number in range(200)})
    assert len(mistakes) == 200
    assert looks == 1
