"""`freehold secret`, `models`, `usage` and `stop`, as the owner types them."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from freehold.cli._provider_form import choose_model
from freehold.cli.main import freehold_command
from freehold.egress.models.codex_sign_in import read_sign_in
from freehold.egress.models.ledger import Ledger, UsageRecord, ensure_tables
from freehold.egress.models.offered_model import OfferedModel
from freehold.egress.models.provider_check import ProviderCheck
from freehold.egress.models.usage import TokenCounts
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

VALUE = "sk-something-1234567890abcdef"
MANIFEST = """
[models.openai]
kind = "openai"
key = "secret:openai"
budget = { day_tokens = 1000 }
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "freehold.toml").write_text(MANIFEST)
    return tmp_path


class TerminalInput(io.StringIO):
    """What is typed on a terminal."""

    def isatty(self) -> bool:
        return True


def freehold(home: Path, *words: str, said: str | None = None) -> Result:
    return CliRunner().invoke(freehold_command, [*words, "--home", str(home)], input=said, catch_exceptions=True)


def test_a_secret_is_read_from_standard_input_and_never_printed(home: Path) -> None:
    result = freehold(home, "secret", "set", "openai", said=f"{VALUE}\n")
    assert result.exit_code == 0, result.output
    assert VALUE not in result.output
    assert Vault(home / "vault").get("openai").reveal() == VALUE
    listed = freehold(home, "secret", "list", "--json")
    assert [each["name"] for each in json.loads(listed.output)] == ["openai"]
    assert VALUE not in listed.output
    assert freehold(home, "secret", "remove", "openai").exit_code == 0
    assert "no secrets" in freehold(home, "secret", "list").output
    with Timeline(home / "timeline.db") as timeline:
        assert [event.kind for event in timeline.read()] == ["secret.set", "secret.removed"]


@pytest.mark.parametrize("said", ["", "two\nlines\n", " blank "])
def test_an_invalid_secret_is_refused(said: str, home: Path) -> None:
    assert freehold(home, "secret", "set", "openai", said=said).exit_code != 0
    assert Vault(home / "vault").list() == []


def test_an_unreachable_model_is_reported(home: Path) -> None:
    (home / "freehold.toml").write_text(
        '[models.near]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    result = freehold(home, "models", "--test")
    assert result.exit_code == 1
    assert "The model provider near cannot be reached" in result.output
    (row,) = json.loads(freehold(home, "models", "--test", "--json").output)
    assert row["test"]["ok"] is False


def test_models_shows_a_missing_key_until_it_is_set(home: Path) -> None:
    assert "freehold secret set openai" in freehold(home, "models").output
    freehold(home, "secret", "set", "openai", said=VALUE)
    (row,) = json.loads(freehold(home, "models", "--json").output)
    assert row["problem"] is None
    assert row["inside"] == "http://127.0.0.1:3129/openai/v1"


def test_models_without_any_explains_how_to_connect_one(home: Path) -> None:
    (home / "freehold.toml").write_text("")
    assert "Connect a model to start" in freehold(home, "models").output


def test_a_provider_is_connected_chosen_and_disconnected(home: Path) -> None:
    (home / "freehold.toml").write_text("# mine\n" + MANIFEST)
    added = freehold(home, "models", "add", "groq", "--no-test", "--model", "llama", said=f"{VALUE}\n")
    assert added.exit_code == 0, added.output
    assert VALUE not in added.output
    assert Vault(home / "vault").get("groq").reveal() == VALUE
    assert freehold(home, "models", "default", "groq").exit_code == 0
    rows = {row["name"]: row for row in json.loads(freehold(home, "models", "--json").output)}
    assert (rows["groq"]["address"], rows["groq"]["model"]) == ("https://api.groq.com/openai/v1", "llama")
    assert [row["default"] for row in rows.values()] == [False, True]
    assert freehold(home, "models", "remove", "groq").exit_code == 0
    assert (home / "freehold.toml").read_text().startswith("# mine\n\n[models.openai]\n")
    assert Vault(home / "vault").list() == []
    with Timeline(home / "timeline.db") as timeline:
        kinds = [event.kind for event in timeline.read()]
    assert kinds == ["models.provider_connected", "models.provider_default", "models.provider_removed"]


@pytest.mark.parametrize(
    ("words", "said", "written"),
    [
        (("anthropic",), f"{VALUE}\n", 'kind = "anthropic"'),
        (("claude-code",), f"sk-ant-oat01-{VALUE}\n", 'auth = "claude-code"'),
        (("ollama", "--model", "qwen3-coder"), None, 'base_url = "http://127.0.0.1:11434/v1"'),
        (
            ("custom", "--name", "studio", "--url", "http://studio.local:11434/v1", "--model", "qwen3-coder"),
            "",
            'base_url = "http://studio.local:11434/v1"',
        ),
    ],
)
def test_the_providers_of_the_guides_are_connected(
    home: Path, words: tuple[str, ...], said: str | None, written: str
) -> None:
    added = freehold(home, "models", "add", *words, "--no-test", said=said)
    assert added.exit_code == 0, added.output
    name = words[2] if "--name" in words else words[0]
    assert written in (home / "freehold.toml").read_text().partition(f"[models.{name}]")[2]
    assert freehold(home, "models", "default", name).exit_code == 0


def test_the_model_of_a_provider_is_changed_and_its_key_stays(home: Path) -> None:
    freehold(home, "models", "add", "openai", "--no-test", said=VALUE)
    changed = freehold(home, "models", "add", "openai", "--no-test", "--model", "gpt-5", said="")
    assert changed.exit_code == 0, changed.output
    (row,) = json.loads(freehold(home, "models", "--json").output)
    assert (row["model"], row["problem"]) == ("gpt-5", None)
    assert "day_tokens = 1000" in (home / "freehold.toml").read_text()
    assert Vault(home / "vault").get("openai").reveal() == VALUE


def test_a_provider_that_cannot_be_reached_is_not_connected(home: Path) -> None:
    before = (home / "freehold.toml").read_text()
    words = ("models", "add", "custom", "--name", "near", "--url", "http://127.0.0.1:9/v1")
    result = freehold(home, *words, said="")
    assert isinstance(result.exception, FreeholdError)
    assert result.exception.code == "models.unreachable"
    assert (home / "freehold.toml").read_text() == before


def test_the_models_of_a_provider_are_listed_with_prices_and_context_to_choose_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = (OfferedModel("large", 3.0, 15.0, 200_000), OfferedModel("small"))
    check = ProviderCheck(True, 200, 1, "It responds", ("large", "small"), offered, suggested="large")
    assert choose_model(check) == "large", "a script is not asked"
    for typed, chosen in (("small\n", "small"), ("\n", "large"), ("-\n", None)):
        monkeypatch.setattr("sys.stdin", TerminalInput(typed))
        assert choose_model(check) == chosen
        assert capsys.readouterr().out.startswith("  large  $3 in, $15 out / 1M  200,000 tokens\n  small\nModel ")
    monkeypatch.setattr("sys.stdin", TerminalInput("\n"))
    assert choose_model(replace(check, suggested=None)) is None


def test_the_sign_in_of_codex_is_read_from_its_file(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    file.write_text(json.dumps({"tokens": {"access_token": "a.b.c", "refresh_token": "r"}}, indent=2))
    added = freehold(home, "models", "add", "codex", "--no-test", "--file", str(file))
    assert added.exit_code == 0, added.output
    assert read_sign_in(Vault(home / "vault").get("codex").reveal()).refresh_token == "r"
    assert 'auth = "codex"' in (home / "freehold.toml").read_text()


def test_without_a_name_it_shows_what_was_found_and_all_providers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", VALUE)
    shown = freehold(home, "models", "add").output
    assert "freehold models add groq --env GROQ_API_KEY" in shown
    assert VALUE not in shown
    assert "OpenRouter" in shown
    added = freehold(home, "models", "add", "groq", "--no-test", "--env", "GROQ_API_KEY")
    assert added.exit_code == 0, added.output
    assert Vault(home / "vault").get("groq").reveal() == VALUE


def test_models_shows_the_errors_of_the_manifest(home: Path) -> None:
    (home / "freehold.toml").write_text(MANIFEST + 'colour = "green"\n')
    done = freehold(home, "models")
    assert done.exit_code == 1
    assert "There is no key models.openai.colour" in done.output
    assert "To check it again: freehold check" in done.output
    assert [row["name"] for row in json.loads(freehold(home, "models", "--json").stdout)] == ["openai"]


def test_home_before_the_command_is_refused_with_the_right_place(home: Path) -> None:
    for words in (["--home", str(home), "models"], [f"--home={home}", "models"]):
        done = CliRunner().invoke(freehold_command, words)
        assert done.exit_code == 2
        assert "--home goes after the command" in done.output


def test_an_invalid_port_is_refused(home: Path) -> None:
    for word in ("abc", "0", "70000", "٣"):
        done = freehold(home, "preview", word)
        assert done.exit_code == 2
        assert f"'{word}' is not a port number" in done.output


def test_usage_shows_the_cost_and_the_state_of_each_budget(home: Path) -> None:
    assert "no model requests yet" in freehold(home, "usage").output
    spend(home, 900, 0.5)
    spend(home, 200, None)
    shown = freehold(home, "usage", "--by", "session").output
    assert "unknown" in shown
    assert "1,100 of 1,000 tokens (110%)" in shown
    (row,) = json.loads(freehold(home, "usage", "--json").output)["rows"]
    assert row["input"] == 1100
    assert row["cost"] is None
    assert row["priced"] == 0.5


def test_a_reached_budget_is_lifted_and_one_is_set(home: Path) -> None:
    spend(home, 1100, None)
    assert "lifted day_tokens of openai" in freehold(home, "usage", "lift").output
    assert ", lifted" in freehold(home, "usage").output
    assert freehold(home, "usage", "budget", "*", "--day-cost", "5").exit_code == 0
    assert "budget * day_cost" in freehold(home, "usage").output
    assert freehold(home, "usage", "budget", "nobody", "--day-cost", "5").exit_code != 0
    assert freehold(home, "usage", "budget", "*", "--day-cost", "0").exit_code != 0


def test_stop_is_stored_and_lifted(home: Path) -> None:
    assert json.loads(freehold(home, "stop", "too much", "--json").output)["stopped"] is True
    with Timeline(home / "timeline.db") as timeline:
        stopped = Ledger(timeline).stopped()
        assert stopped is not None
        assert stopped.why == "too much"
    assert "are allowed again" in freehold(home, "stop", "--lift").output


def spend(home: Path, tokens: int, cost: float | None) -> None:
    with Timeline(home / "timeline.db") as timeline:
        ensure_tables(timeline)
        record = UsageRecord("openai", "gpt-4o", "s1", None, TokenCounts(tokens), cost, True, "lost")
        Ledger(timeline).close(record, 0, [])
