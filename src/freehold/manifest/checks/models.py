"""Checks of `[models]` and `[budget]`, and of secrets that are written into the manifest."""

from collections.abc import Iterator

from freehold.manifest.addresses import host_of, is_private
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value
from freehold.manifest.secret_text import looks_placeholder, looks_secret, mask, names_secret, parse_reference
from freehold.manifest.sections.models import FEATURES, FIELD_PREFIX, SUBSCRIPTIONS, TYPE_PREFIX, BudgetSection


def _references(manifest: Manifest) -> Iterator[tuple[KeyPath, str]]:
    """Every value that should be a reference to a secret."""
    for name, model in manifest.models.items():
        if model.key is not None:
            yield ("models", name, "key"), model.key
    for slot in type(manifest.slots).model_fields:
        for setting, value in getattr(manifest.slots, slot).settings.items():
            if names_secret(setting):
                yield ("slots", slot, "settings", setting), value


def _texts(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every string in the manifest."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from _texts(below, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, below in enumerate(value):
            yield from _texts(below, (*path, index))


def _budgets(manifest: Manifest) -> Iterator[tuple[KeyPath, BudgetSection]]:
    yield ("budget",), manifest.budget
    for name, model in manifest.models.items():
        yield ("models", name, "budget"), model.budget


@check("E401")
def secret_written_as_a_value(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A key, token or password stands in the manifest itself."""
    references = dict(_references(manifest))
    for path, text in references.items():
        if not text or looks_placeholder(text):
            continue
        if text.startswith(("env:", "secret:")) and not looks_secret(text):
            if parse_reference(text) is None:
                yield CheckFinding(
                    path,
                    f"{show_key(path)} is {show_value(text)}, which is not a valid reference",
                    "env:OPENAI_API_KEY, or secret:openai",
                )
        else:
            yield CheckFinding(
                path,
                f"{show_key(path)} holds a secret: {mask(text)}",
                "Put it where the agent cannot read it and name the place: env:OPENAI_API_KEY, or secret:openai. Then replace that key: it has been in a file",
            )
    for path, text in _texts(manifest.model_dump(exclude_unset=True)):
        if path not in references and looks_secret(text):
            yield CheckFinding(
                path,
                f"{show_key(path)} holds something with the shape of a key: {mask(text)}",
                "Keys stay out of the manifest and of the computer: name them under [models.<name>] as env:NAME or secret:name",
            )


@check("E402")
def placeholder_secret(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A secret was never filled in."""
    for path, text in _references(manifest):
        reference = parse_reference(text)
        value = facts.environ.get(reference[1], "") if reference and reference[0] == "env" else ""
        if looks_placeholder(text):
            yield CheckFinding(
                path,
                f"{show_key(path)} is {show_value(text)}, a placeholder",
                "Name where the key is: env:OPENAI_API_KEY, or secret:openai",
            )
        elif value and looks_placeholder(value):
            yield CheckFinding(
                path,
                f"{show_key(path)} names {show_value(text)}, and that variable holds a placeholder",
                f"Set {reference[1] if reference else text} to the real key",
            )
        elif not text:
            yield CheckFinding(
                path, f"{show_key(path)} is empty", "Leave it out, or name where the key is: env:OPENAI_API_KEY"
            )


@check("E403")
def variable_is_unset(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A reference names an environment variable that is not set."""
    for path, text in _references(manifest):
        reference = parse_reference(text)
        off = path[0] == "models" and not manifest.models[str(path[1])].enabled
        if (
            reference
            and reference[0] == "env"
            and not facts.environ.get(reference[1])
            and not off
            and not looks_placeholder(text)
        ):
            yield CheckFinding(
                path,
                f"{show_key(path)} names {show_value(text)}, and {reference[1]} is not set",
                f"export {reference[1]}=… where Freehold is started, or use secret:name",
            )


@check("E404")
def provider_without_address(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A provider has no base URL, and its kind has no usual one."""
    for name, model in manifest.models.items():
        if model.enabled and not model.address:
            key: KeyPath = ("models", name)
            yield CheckFinding(
                key,
                f"[{show_key(key)}] has no base_url",
                'Example: base_url = "http://127.0.0.1:11434/v1", or say its kind',
            )


@check("E405")
def provider_without_key(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A provider elsewhere has no key."""
    for name, model in manifest.models.items():
        if model.enabled and model.key is None and model.address and not is_private(host_of(model.address)):
            key: KeyPath = ("models", name)
            yield CheckFinding(
                key,
                f"[{show_key(key)}] is reached at {show_value(model.address)} and has no key",
                'Example: key = "env:OPENAI_API_KEY"',
            )


@check("W406")
def all_models_off(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Models are described, and every one is switched off."""
    if manifest.models and not any(model.enabled for model in manifest.models.values()):
        names = ", ".join(manifest.models)
        yield CheckFinding(
            ("models",),
            f"Every model is switched off ({show_value(names)}), so no agent can run",
            "Set enabled = true on one",
        )


@check("E407")
def budget_of_nothing(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A budget is zero or less."""
    for below, budget in _budgets(manifest):
        for key in BudgetSection.model_fields:
            value: float | None = getattr(budget, key)
            if value is not None and value <= 0:
                path: KeyPath = (*below, key)
                yield CheckFinding(
                    path,
                    f"{show_key(path)} is {show_value(value)}",
                    "To use nothing of it write enabled = false; for no bound leave the line out",
                )


@check("W408")
def day_above_month(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The budget of a day is above that of a month."""
    for below, budget in _budgets(manifest):
        for unit in ("cost", "tokens"):
            day: float | None = getattr(budget, f"day_{unit}")
            month: float | None = getattr(budget, f"month_{unit}")
            if day is not None and month is not None and day > month:
                path: KeyPath = (*below, f"day_{unit}")
                yield CheckFinding(
                    path,
                    f"{show_key(path)} ({day:g}) is above that of the month ({month:g})",
                    "Make the day the smaller one",
                )


@check("E409")
def unknown_word_in_allow(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A provider's `allow` has a word that allows nothing."""
    for name, model in manifest.models.items():
        for place, word in enumerate(model.allow):
            is_path = word.rpartition(" ")[2].startswith("/")
            named = word.startswith((FIELD_PREFIX, TYPE_PREFIX)) and not word.endswith(":")
            if word not in FEATURES and not is_path and not named:
                path: KeyPath = ("models", name, "allow", place)
                yield CheckFinding(
                    path,
                    f"{show_key(path)} is {show_value(word)}, which is neither a path nor a known word",
                    f"A path such as GET /v1/files/*, field:NAME, type:NAME, or one of {', '.join(FEATURES)}",
                )


@check("E410")
def subscription_elsewhere(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The token of a subscription would go to another address than its vendor's, or cannot be kept."""
    for name, model in manifest.models.items():
        terms = SUBSCRIPTIONS.get(model.auth)
        if terms is None:
            continue
        if model.kind != terms.kind:
            yield CheckFinding(
                ("models", name, "kind"),
                f"{show_key(('models', name, 'kind'))} is {show_value(model.kind)}, and {model.auth} is for {terms.kind}",
                f'Write kind = "{terms.kind}"',
            )
        if model.base_url is not None and model.base_url.rstrip("/") != terms.base_url:
            yield CheckFinding(
                ("models", name, "base_url"),
                f"The token of {model.auth} is for {terms.base_url} only, and base_url is {show_value(model.base_url)}",
                "Leave base_url out",
            )
        if model.auth == "codex" and not (model.key or "").startswith("secret:"):
            yield CheckFinding(
                ("models", name, "key"),
                f"{show_key(('models', name, 'key'))} must be in the vault, because Freehold refreshes it",
                f'key = "secret:{name}", and: freehold models add codex',
            )
