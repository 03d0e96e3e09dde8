"""Variables stand above the file."""

import pytest
from tests.manifest.cases import OWNER
from tests.manifest.machine import look, only

from freehold.manifest.environment import NAMED_VARIABLES
from freehold.manifest.shape import list_keys, show_example

DID = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"


def test_named_variables() -> None:
    loaded = look(
        '[owner]\ndid = "did:web:other.example.com"',
        {
            "OWNER_DID": DID,
            "PUBLIC_URL": "https://a.example.com",
            "ATPROTO_SERVICE": "https://pds.example.com",
            "SANDBOX_HOST": "tcp://10.0.0.1:2376",
        },
    )
    manifest = loaded.manifest
    assert manifest.owner.did == DID
    assert manifest.owner.service == "https://pds.example.com"
    assert manifest.gateway.public_url == "https://a.example.com"
    assert manifest.computer.host == "tcp://10.0.0.1:2376"


def test_an_empty_variable_says_nothing() -> None:
    assert (
        look(OWNER, dict.fromkeys((*NAMED_VARIABLES, "OPENAI_API_KEY", "FREEHOLD_GATEWAY_PORT"), "")).manifest
        == look(OWNER).manifest
    )


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"])
def test_a_key_in_the_environment_is_not_used_until_the_manifest_names_it(variable: str) -> None:
    assert look("", {variable: "k-0123456789"}).manifest == look("").manifest


@pytest.mark.parametrize(
    ("variable", "text", "where", "value"),
    [
        ("FREEHOLD_GATEWAY_PORT", "3001", "gateway.port", 3001),
        ("FREEHOLD_GATEWAY_TRUSTED_PROXIES", "10.0.0.1, ::1", "gateway.trusted_proxies", ("10.0.0.1", "::1")),
        ("FREEHOLD_GATEWAY_TRUSTED_PROXIES", '["10.0.0.1"]', "gateway.trusted_proxies", ("10.0.0.1",)),
        ("FREEHOLD_COMPUTER_LIMITS_MEMORY", "2GiB", "computer.limits.memory", 2 * 1024**3),
        ("FREEHOLD_COMPUTER_LIMITS_MEMORY", "1073741824", "computer.limits.memory", 1024**3),
        ("FREEHOLD_COMPUTER_LIMITS_OPEN_FILES", "99", "computer.limits.open_files", 99),
        ("FREEHOLD_COMPUTER_LIMITS_CPUS", "1", "computer.limits.cpus", 1.0),
        ("FREEHOLD_SSH_ENABLED", "true", "ssh.enabled", True),
        ("FREEHOLD_SSH_ENABLED", "Yes", "ssh.enabled", True),
        ("FREEHOLD_SSH_ENABLED", "off", "ssh.enabled", False),
        ("FREEHOLD_OWNER_HANDLE", "123.example.com", "owner.handle", "123.example.com"),
        ("FREEHOLD_OBSERVE_LOG_LEVEL", "debug", "observe.log_level", "debug"),
        ("FREEHOLD_SLOTS_BEADS_MODE", "local", "slots.beads.mode", "local"),
        ("FREEHOLD_EGRESS_MODE", "deny", "egress.mode", "deny"),
        ("FREEHOLD_AGENTS_DEFAULT", "builtin", "agents.default", "builtin"),
        ("FREEHOLD_HISTORY_QUIET", "250ms", "history.quiet", 0.25),
    ],
)
def test_any_key_can_be_set(variable: str, text: str, where: str, value: object) -> None:
    loaded = look("", {variable: text})
    assert not loaded.errors
    at: object = loaded.manifest
    for part in where.split("."):
        at = getattr(at, part)
    assert at == value


def test_every_fixed_key_has_a_variable() -> None:
    for path, field in list_keys():
        if "<name>" in path or "[]" in path:
            continue
        name = "FREEHOLD_" + "_".join(path).upper()
        text = show_example("", field).removeprefix(" = ")
        assert not [p for p in look("", {name: text}).problems if p.code in ("E007", "W008")], name


def test_named_tables_are_reached_too() -> None:
    loaded = look(
        '[models.my-local]\nbase_url = "http://127.0.0.1:1"\n[agents.mine]\ncommand = "x"',
        {
            "FREEHOLD_MODELS_MY_LOCAL_BASE_URL": "http://127.0.0.1:2",
            "FREEHOLD_MODELS_NEW_BASE_URL": "http://127.0.0.1:3",
            "FREEHOLD_AGENTS_MINE_COMMAND": "mine acp",
        },
    )
    assert loaded.problems == ()
    assert loaded.manifest.models["my-local"].base_url == "http://127.0.0.1:2"
    assert loaded.manifest.models["new"].base_url == "http://127.0.0.1:3"
    assert loaded.manifest.agents.named["mine"].command == ("mine", "acp")


def test_the_general_name_wins_over_the_short_one() -> None:
    loaded = look("", {"OWNER_DID": "did:web:a.example.com", "FREEHOLD_OWNER_DID": DID})
    assert loaded.manifest.owner.did == DID


def test_a_value_that_cannot_be_is_an_error_that_names_the_variable() -> None:
    problem = only(look("[gateway]\nport = 3001", {"FREEHOLD_GATEWAY_PORT": "many"}))
    assert (problem.code, problem.file, problem.key) == ("E007", "environment", "gateway.port")
    assert "FREEHOLD_GATEWAY_PORT" in problem.message
    assert "FREEHOLD_GATEWAY_PORT=3000" in problem.hint


def test_bytes_that_are_no_text_are_refused() -> None:
    problem = only(look("", {"OWNER_DID": "did:web:\udcff"}))
    assert problem.code == "E007"
    problem.message.encode()


def test_a_rule_broken_by_a_variable_names_the_variable() -> None:
    problem = only(look("[gateway]\nport = 3001", {"FREEHOLD_KEEPER_PORT": "3001"}))
    assert (problem.code, problem.file, problem.line) == ("E101", "environment", None)
    assert "FREEHOLD_KEEPER_PORT" in problem.message


@pytest.mark.parametrize("name", ["FREEHOLD_GATEWAY_PROT", "FREEHOLD_GATWAY_PORT"])
def test_a_variable_that_was_meant_for_a_key_is_noticed(name: str) -> None:
    problem = only(look("", {name: "1"}))
    assert problem.code == "W008"
    assert "FREEHOLD_GATEWAY_PORT" in problem.hint


@pytest.mark.parametrize("name", ["FREEHOLD_HOME", "FREEHOLD_TRACE", "FREEHOLD_TOKEN", "PATH", "GATEWAY_PORT"])
def test_other_variables_are_left_alone(name: str) -> None:
    assert look("", {name: "anything"}).problems == ()


def test_a_slot_in_short_form_keeps_its_mode_beside_a_variable() -> None:
    loaded = look('[slots]\nbeads = "local"', {"FREEHOLD_SLOTS_BEADS_REQUIRED": "true"})
    assert (loaded.manifest.slots.beads.mode, loaded.manifest.slots.beads.required) == ("local", True)


def test_a_section_that_is_no_table_is_told_and_not_hidden() -> None:
    loaded = look("gateway = 3", {"FREEHOLD_GATEWAY_PORT": "3001"})
    assert "E006" in {problem.code for problem in loaded.problems}
