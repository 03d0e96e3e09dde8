"""The host lets a model write only where that costs next to nothing, and never with a subscription."""

import pytest

from freehold.egress.models.provider import read_provider
from freehold.egress.models.short_text import is_cheap
from freehold.manifest.sections.models import ModelSection


def judge(model: str, **section: str) -> bool:
    return is_cheap(read_provider("it", ModelSection.model_validate(section)), model)


@pytest.mark.parametrize(
    ("kind", "model", "cheap"),
    [
        ("anthropic", "claude-haiku-4-5", True),
        ("anthropic", "claude-opus-4-1", False),
        ("openai", "gpt-5-mini", True),
        ("openai", "gpt-5-pro", False),
        ("openai", "a-model-without-a-price", False),
    ],
)
def test_the_price_of_the_model_decides(kind: str, model: str, cheap: bool) -> None:
    assert judge(model, kind=kind) is cheap


@pytest.mark.parametrize(
    ("address", "cheap"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://localhost:1234/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.1.5:11434/v1", False),
        ("https://localhost.example.org/v1", False),
    ],
)
def test_a_server_on_this_machine_costs_nothing(address: str, cheap: bool) -> None:
    assert judge("qwen3-coder", kind="openai-compatible", base_url=address) is cheap


def test_a_subscription_is_for_the_agent_of_its_vendor_only() -> None:
    assert not judge("claude-haiku-4-5", kind="anthropic", auth="claude-code")
