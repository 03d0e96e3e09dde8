"""What Prometheus is told of models, and that an agent cannot make it tell more."""

from pathlib import Path

from tests.egress.models.doorway import Doorway, doorway

from freehold.manifest.sections.minds import Budget
from freehold.observe.metrics import registry
from freehold.testing import Usage


def value(name: str, **labels: str) -> float:
    """From what is exposed, as Prometheus reads it."""
    wanted = {f'{label}="{text}"' for label, text in labels.items()}
    for line in registry.expose().splitlines():
        head, _, number = line.rpartition(" ")
        found, _, told = head.partition("{")
        if found == name and wanted <= set(told.rstrip("}").split(",")):
            return float(number)
    return 0.0


async def test_questions_tokens_cost_and_time_are_counted(tmp_path: Path) -> None:
    async with doorway(tmp_path, usage=Usage(100_000, 10_000)) as door:
        labels = {"provider": "openai", "model": "gpt-4o"}
        names = {
            "freehold_model_requests_total": ({**labels, "outcome": "answered"}, 1.0),
            "freehold_model_tokens_total": ({**labels, "kind": "output"}, 10_000.0),
            "freehold_model_cost_dollars_total": (labels, 0.35),
            "freehold_model_request_seconds_count": ({"provider": "openai"}, 1.0),
        }
        before = {name: value(name, **told) for name, (told, _) in names.items()}
        await door.ask()
        await door.models.usage_of("s1")
        for name, (told, grown) in names.items():
            assert abs(value(name, **told) - before[name] - grown) < 1e-9, name


async def test_a_made_up_model_is_no_label(door: Doorway) -> None:
    before = value("freehold_model_unpriced_requests_total", provider="openai")
    for number in range(5):
        await door.ask(model=f"made-up-{number}")
    await door.models.usage_of("s1")
    assert "made-up" not in registry.expose()
    assert value("freehold_model_unpriced_requests_total", provider="openai") == before + 5


async def test_every_refusal_is_counted_though_few_are_written_down(tmp_path: Path) -> None:
    async with doorway(tmp_path, budget=Budget(day_tokens=1)) as door:
        labels = {"provider": "openai", "code": "models.budget-reached"}
        before = value("freehold_model_refusals_total", **labels)
        for _ in range(3):
            assert (await door.ask()).status_code == 402
        assert value("freehold_model_refusals_total", **labels) == before + 3
        assert len(door.events("models.request_refused")) == 1
