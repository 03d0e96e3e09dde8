"""The check of each form of request: its fields, its model, and what the provider keeps."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from freehold.egress.models.field_policy import Check, MediaPart, Review
from freehold.egress.models.paths import RequestForm, Route
from freehold.egress.models.request_json import malformed

MAX_MODEL_NAME = 200
MAX_ALTERNATIVES = 8
_SEARCHING = ("search-preview", "search-api", "deep-research", "sonar", "compound", "-web-search")
"""Parts of the names of models that search the web by themselves."""


@cache
def known_fields(form: RequestForm) -> Check:
    """Imported on first use: the lists are long, and most owners use one or two of them."""
    match form:
        case "chat" | "completion" | "embedding":
            from freehold.egress.models import chat_fields

            return {
                "chat": chat_fields.CHAT,
                "completion": chat_fields.COMPLETION,
                "embedding": chat_fields.EMBEDDING,
            }[form]
        case "responses" | "response-tokens":
            from freehold.egress.models import responses_fields

            return responses_fields.RESPONSES
        case "messages" | "message-tokens":
            from freehold.egress.models import messages_fields

            return messages_fields.MESSAGES
        case "generate" | "count" | "embed":
            from freehold.egress.models import gemini_fields

            return {"generate": gemini_fields.GENERATE, "count": gemini_fields.COUNT, "embed": gemini_fields.EMBED}[
                form
            ]


def check_request(route: Route, content: dict[str, Any]) -> tuple[str, list[MediaPart]]:
    """Refuses what is not known or not allowed. Changes `content` so that nothing is stored.

    Returns the model, and the media that it is sent.

    Raises `models.malformed`, `models.unknown-field` or `models.reaches-out`.
    """
    assert route.form is not None
    review = Review(frozenset(route.provider.allow))
    try:
        known_fields(route.form)(content, review)
    except RecursionError as error:
        raise malformed("its body is nested too deep") from error
    path = route.path.partition("?")[0]
    if route.form in ("generate", "count", "embed"):
        model = path.rpartition("/")[2].rsplit(":", 1)[0]
    else:
        named = content.get("model")
        if not isinstance(named, str):
            raise malformed("it names no model")
        model = named
    for name in (model, *alternative_models(content)):
        _check_model(name, review)
    if route.form == "responses" and not path.endswith("/compact") and "stored" not in review.allowed:
        content["store"] = False  # OpenAI keeps a response unless it is told not to
    return model, review.media


def alternative_models(content: Mapping[str, Any]) -> list[str]:
    """Models that may respond in the place of the first. Raises `models.malformed`."""
    others = content.get("models")
    if others is None:
        return []
    names = [name for name in others if isinstance(name, str)] if isinstance(others, list) else []
    if names != others or len(names) > MAX_ALTERNATIVES:
        raise malformed(f"models must be a list of at most {MAX_ALTERNATIVES} names")
    return names


def _check_model(name: str, review: Review) -> None:
    if not name.isascii() or not name.isprintable() or name != name.strip() or not 0 < len(name) <= MAX_MODEL_NAME:
        raise malformed(f"the name of its model is not plain text of at most {MAX_MODEL_NAME} characters")
    lower = name.lower()
    # A server on the owner's machine may load what the name says.
    if "://" in name or "\\" in name or lower.startswith(("/", ".", "~/", "file:")) or ".." in name.split("/"):
        raise malformed(f"{name[:80]!a} is an address or a path, not the name of a model")
    review.path.append(f"model {name[:80]}")
    if "online" in lower.split(":")[1:] or any(part in lower for part in _SEARCHING):
        review.need("web-search")
    if "@preset/" in lower:
        review.need("plugins")
    review.path.pop()
