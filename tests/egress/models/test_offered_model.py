"""The model that is suggested is one for text, also where the list of a provider begins with others."""

import pytest

from freehold.egress.models.offered_model import offer_models, suggest_model

OPENAI = "https://api.openai.com/v1"
GEMINI = "https://generativelanguage.googleapis.com"
GROQ = "https://api.groq.com/openai/v1"
LOCAL = "http://127.0.0.1:1234/v1"


@pytest.mark.parametrize(
    ("address", "names", "suggested"),
    [
        (OPENAI, ["gpt-4-0613", "davinci-002", "tts-1", "text-embedding-3-small", "gpt-5", "gpt-5-mini"], "gpt-5"),
        (OPENAI, ["gpt-image-1", "gpt-realtime", "gpt-4o-transcribe", "sora-2", "gpt-4.1", "gpt-5-pro"], "gpt-4.1"),
        (GEMINI, ["embedding-gecko-001", "gemini-2.0-flash", "gemini-flash-latest", "aqa"], "gemini-flash-latest"),
        (GROQ, ["whisper-large-v3", "llama-3.1-8b-instant", "moonshotai/kimi-k2-instruct-0905"], "moonshotai/kimi-k2-instruct-0905"),
        (LOCAL, ["text-embedding-nomic-embed-text-v1.5", "qwen3"], "qwen3"),
        (LOCAL, ["nomic-embed-text", "bge-m3", "all-minilm"], None),
        (LOCAL, [], None),
    ],
)  # fmt: skip
def test_a_model_for_text_with_a_usual_price_is_suggested(
    address: str, names: list[str], suggested: str | None
) -> None:
    assert suggest_model(offer_models(address, {name: {} for name in names})) == suggested


def test_of_several_the_newest_is_suggested() -> None:
    rows = {"gpt-4o": {"created": 1_715_367_049}, "gpt-5": {"created": 1_754_425_777}, "gpt-4.1": {"created": 9**99}}
    assert suggest_model(offer_models(OPENAI, rows)) == "gpt-5"


@pytest.mark.parametrize(
    "row",
    [
        {"supported_parameters": ["temperature"]},
        {"supportedGenerationMethods": ["embedContent"]},
        {"capabilities": {"function_calling": False}},
    ],
)
def test_a_model_that_cannot_call_tools_is_not_suggested(row: dict[str, object]) -> None:
    assert suggest_model(offer_models(LOCAL, {"talks-only": row, "works": {"capabilities": 5}})) == "works"
    assert suggest_model(offer_models(LOCAL, {"talks-only": row})) is None
