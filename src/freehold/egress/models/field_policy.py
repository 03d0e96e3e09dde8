"""How the fields of a model request are checked: by lists of what is known, on the parsed object.

A check is a function of a value and the running review; it raises when the value is refused. Whatever no list names is
refused, so a new way of a provider to fetch or keep things is closed until it was looked at.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from freehold.egress.models.request_json import malformed
from freehold.egress.names import parse_host
from freehold.errors import FreeholdError
from freehold.manifest.addresses import is_private
from freehold.manifest.sections.models import FEATURES, FIELD_PREFIX, TYPE_PREFIX, ProviderFeature

MAX_SHOWN = 120
_DATA_URL = re.compile(r"data:[!-+\--~]{0,200},", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://([A-Za-z0-9.-]+)(?::[0-9]{1,5})?(?:[/?][!-\[\]-~]*)?")
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_VERSION = re.compile(r"_20[0-9]{6}$")
_ENCODED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\r\n"


@dataclass(frozen=True)
class MediaPart:
    """A picture, document, sound or film in a request, at a place where the provider takes one."""

    kind: str
    """Its media type as the request names it, such as image/png; empty when it names none."""
    length: int
    """Characters of the request."""

    @property
    def is_image(self) -> bool:
        return self.kind.startswith("image/")


@dataclass
class Review:
    """The check of one request: what the owner allowed, and the path of the field that is checked now."""

    allowed: frozenset[str]
    path: list[str] = field(default_factory=list)
    holder: Mapping[str, object] = field(default_factory=dict)
    """The object that has the field."""
    media: list[MediaPart] = field(default_factory=list)
    """What was found so far."""

    def add_media(self, value: str) -> None:
        if _DATA_URL.match(value):
            kind = value[5:205].partition(",")[0].partition(";")[0]
        elif "image_url" in self.path[-2:]:
            kind = "image/*"
        else:
            named = [self.holder.get(name) for name in ("media_type", "mimeType", "mime_type")]
            kind = next((each for each in named if isinstance(each, str)), "")
        self.media.append(MediaPart(kind.lower(), len(value)))

    @property
    def where(self) -> str:
        """Such as `messages.content.image_url`: without the places in lists, as `allow` names a field."""
        return ".".join(self.path)

    def need(self, feature: ProviderFeature) -> None:
        """Raises `models.reaches-out` unless the owner allowed this feature of the provider."""
        if feature not in self.allowed:
            raise FreeholdError(
                "models.reaches-out",
                f"The request uses {self._shown()}: {FEATURES[feature]}",
                hint=f'The owner can add "{feature}" to allow of this provider in freehold.toml',
            )

    def unknown(self, word: str, what: str) -> None:
        """Raises `models.unknown-field` unless the owner allowed it by name."""
        if word not in self.allowed:
            raise FreeholdError(
                "models.unknown-field",
                f"The request has {what}, which Freehold does not know",
                hint=f"Leave it out, or the owner adds {word[:MAX_SHOWN]!a} to allow of this provider in freehold.toml",
            )

    def wrong(self, wanted: str) -> FreeholdError:
        return malformed(f"{self._shown()} must be {wanted}")

    def _shown(self) -> str:
        return ascii(self.where[:MAX_SHOWN])[1:-1] if self.path else "it"


Check = Callable[[object, Review], None]


def data(value: object, review: Review) -> None:
    """Any JSON: the provider hands it to the model, or back, and does not act on it."""


def scalar(value: object, review: Review) -> None:
    if isinstance(value, (dict, list)):
        raise review.wrong("text, a number, true or false")


def schema(value: object, review: Review) -> None:
    """A JSON schema. One that refers to another document could be fetched by the server that reads it."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            for name, inner in item.items():
                if name in _REFERENCES and isinstance(inner, str) and not inner.startswith("#"):
                    raise review.wrong("a schema that refers only to its own parts (#…)")
                waiting.append(inner)
        elif isinstance(item, list):
            waiting.extend(item)


def url(value: object, review: Review) -> None:
    """Content as a `data:` URL. Another URL only where the owner lets the provider fetch, and then a public one."""
    if not isinstance(value, str):
        raise review.wrong("a URL")
    review.add_media(value)
    if _DATA_URL.match(value):
        return
    review.need("urls")
    found = _WEB_URL.fullmatch(value)
    if found is None or not is_public_host(found[1]):
        raise review.wrong("a data: URL, or an http or https URL of a public host")


def is_public_host(host: str) -> bool:
    """Whether a provider on the owner's own machine could not be pointed at that machine by this name."""
    try:
        return not is_private(parse_host(host).text)
    except FreeholdError:
        return False


def encoded(value: object, review: Review) -> None:
    """Content in base64, which no server can take for an address."""
    if not isinstance(value, str) or not value.isascii() or value.encode().translate(None, _ENCODED):
        raise review.wrong("base64")
    review.add_media(value)


def encoded_or_url(value: object, review: Review) -> None:
    if not isinstance(value, str) or not value.isascii() or value.encode().translate(None, _ENCODED):
        url(value, review)
    else:
        review.add_media(value)


def needs(feature: ProviderFeature, *harmless: object) -> Check:
    """A field that uses a feature of the provider, unless it has one of these values. `1` is not `true` here."""

    def check(value: object, review: Review) -> None:
        if not any(type(value) is type(each) and value == each for each in harmless):
            review.need(feature)

    return check


@dataclass(frozen=True)
class Fields:
    """An object with known fields. Null is the same as an absent field."""

    known: Mapping[str, Check]

    def __call__(self, value: object, review: Review) -> None:
        if not isinstance(value, dict):
            raise review.wrong("an object")
        for name, item in value.items():
            review.path.append(name)
            check = self.find(name)
            if check is None:
                review.unknown(FIELD_PREFIX + review.where, f"the field {review.where[:MAX_SHOWN]!a}")
            elif item is not None:
                review.holder = value
                check(item, review)
            review.path.pop()

    def find(self, name: str) -> Check | None:
        return self.known.get(name)

    def __or__(self, more: "Mapping[str, Check] | Fields") -> "Fields":
        return type(self)({**self.known, **(more.known if isinstance(more, Fields) else more)})


@dataclass(frozen=True)
class EitherCaseFields(Fields):
    """An object of Google's APIs, which read `file_data` and `fileData` as one field. Both at once are refused."""

    def __call__(self, value: object, review: Review) -> None:
        if isinstance(value, dict) and len({_camel(name) for name in value}) != len(value):
            raise review.wrong("an object without the same field in two spellings")
        super().__call__(value, review)

    def find(self, name: str) -> Check | None:
        return self.known.get(_camel(name))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest) if first and all(rest) else name


@dataclass(frozen=True)
class Each:
    """A list of such values."""

    inner: Check

    def __call__(self, value: object, review: Review) -> None:
        if not isinstance(value, list):
            raise review.wrong("a list")
        for item in value:
            self.inner(item, review)


@dataclass(frozen=True)
class TextOr:
    """Text, or what `inner` accepts."""

    inner: Check

    def __call__(self, value: object, review: Review) -> None:
        if not isinstance(value, str):
            self.inner(value, review)


@dataclass(frozen=True)
class ByType:
    """An object whose `type` says what it is. `untyped` checks one without a type.

    With `versions`, `bash` stands for `bash_20250124` and every other version.
    """

    cases: Mapping[str, Check]
    untyped: Check | None = None
    versions: bool = False

    def __call__(self, value: object, review: Review) -> None:
        if not isinstance(value, dict):
            raise review.wrong("an object")
        kind = value.get("type")
        if kind is None and self.untyped is not None:
            return self.untyped(value, review)
        if not isinstance(kind, str):
            raise review.wrong("an object with a type")
        check = self.cases.get(_VERSION.sub("", kind) if self.versions else kind)
        if check is None:
            at = f" in {review.where}" if review.path else ""
            return review.unknown(TYPE_PREFIX + kind, f"the type {kind[:MAX_SHOWN]!a}{at}")
        return check(value, review)


def fields(scalars: str = "", **known: Check) -> Fields:
    """`scalars` are the names of fields with plain values."""
    return Fields({**dict.fromkeys(scalars.split(), scalar), **known})
