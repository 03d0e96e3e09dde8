"""The home of a year, small: what the generator makes is a home like any other."""

import json
from pathlib import Path

import httpx2
from tests.support.freehold import PROCESS_TIMEOUT, FreeholdHarness
from tools.simulated_year import RARE_WORD, YearAmounts, make_year, scaled_amounts

from freehold.identity.tokens import ApiTokens

AMOUNTS = YearAmounts(sessions=12, turns=200, events=6000, entries=800)


def test_a_year_has_the_promised_amounts() -> None:
    assert scaled_amounts(1.0) == YearAmounts(500, 50_000, 2_000_000, 100_000)
    assert sum(AMOUNTS.share(AMOUNTS.turns, day) for day in range(AMOUNTS.days)) == AMOUNTS.turns


def test_a_simulated_year_verifies_boots_and_lists_everything(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    make_year(harness.home, AMOUNTS, seed=1)

    def run(*words: str) -> dict[str, object]:
        done = harness.run(*words, "--json")
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        return found

    size = run("timeline", "size")
    assert size["events"] == AMOUNTS.events + 1  # and the one that says that old ones were archived
    archived = size["archived"]
    assert isinstance(archived, int)
    assert AMOUNTS.events * 0.6 < archived < AMOUNTS.events * 0.8
    assert run("timeline", "verify")["ok"] is True
    assert run("history", "verify")["damages"] == []
    with ApiTokens(harness.home.identity, owner=None) as tokens:
        _, secret = tokens.create("year", ("read", "prompt"), None)
    try:
        assert run("up", "-d")["event"] == "ready"
        with httpx2.Client(
            base_url=harness.url,
            headers={"authorization": f"Bearer {secret}"},
            trust_env=False,
            timeout=PROCESS_TIMEOUT,
        ) as http:

            def get(path: str) -> dict[str, list[dict[str, object]]]:
                answer = http.get(path)
                assert answer.status_code == 200, answer.text
                found: dict[str, list[dict[str, object]]] = answer.json()
                return found

            sessions = get("/v1/sessions?limit=200")["sessions"]
            assert len(sessions) + len(get("/v1/sessions?archived=true")["sessions"]) == AMOUNTS.sessions
            (found, *_) = get(f"/v1/sessions?query={RARE_WORD}")["sessions"]
            assert get(f"/v1/sessions/{found['id']}/events")["events"]
            assert [event["seq"] for event in get("/v1/timeline?after=0&limit=3")["events"]] == [1, 2, 3]
            assert get("/v1/timeline?before=3000&limit=5&kind=turn.*")["events"]
            # Nothing looked changed at the start; and the year was thinned as it passed.
            entries = get("/v1/history?limit=1000")["entries"]
            assert entries[0]["kind"] == "quiet"
            assert 300 < len(entries) < AMOUNTS.entries
            days = get("/v1/usage?by=day")["rows"]
            assert len(days) == 100  # one page of them
    finally:
        harness.run("down")
    assert run("timeline", "verify")["ok"] is True
