"""The metrics of models, and that an agent cannot add labels to them."""

from pathlib import Path

from tests.egress.models.gateway_harness import GatewayHarness, run_gateway

from freehold.manifest.sections.models import BudgetSection
from freehold.observe.metrics import registry
from freehold.testing import ScriptedUsage


def value(name: str, **labels: str) -> float:
    """A value of the exposed metrics, as Prometheus reads it."""
    wanted = {f'{label}="{text}"' for label, text in labels.items()}
    for line in registry.expose().splitlines():
        head, _, number = line.rpartition(" ")
        found, _, rest = head.partition("{")
        if found == name and wanted <= set(rest.rstrip("}").split(",")):
            return float(number)
    return 0.0


async def test_requests_tokens_cost_and_time_are_counted(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, usage=ScriptedUsage(100_000, 10_000)) as gateway:
        labels = {"provider": "openai", "model": "gpt-4o"}
        names = {
            "freehold_model_requests_total": ({**labels, "outcome": "answered"}, 1.0),
            "freehold_model_tokens_total": ({**labels, "kind": "output"}, 10_000.0),
            "freehold_model_cost_dollars_total": (labels, 0.35),
            "freehold_model_request_seconds_count": ({"provider": "openai"}, 1.0),
        }
        before = {name: value(name, **labels) for name, (labels, _) in names.items()}
        await gateway.ask()
        await gateway.models.usage_of("s1")
        for name, (labels, grown) in names.items():
            assert abs(value(name, **labels) - before[name] - grown) < 1e-9, name


async def test_an_invented_model_is_not_a_label(gateway: GatewayHarness) -> None:
    before = value("freehold_model_unpriced_requests_total", provider="openai")
    for number in range(5):
        await gateway.ask(model=f"made-up-{number}")
    await gateway.models.usage_of("s1")
    assert "made-up" not in registry.expose()
    assert value("freehold_model_unpriced_requests_total", provider="openai") == before + 5


async def test_every_refusal_is_counted_though_few_are_recorded(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=1)) as gateway:
        labels = {"provider": "openai", "code": "models.budget-reached"}
        before = value("freehold_model_refusals_total", **labels)
        for _ in range(3):
            assert (await gateway.ask()).status_code == 402
        assert value("freehold_model_refusals_total", **labels) == before + 3
        assert len(gateway.events("models.request_refused")) == 1
