"""What comes back for a request with a secret: without the secret, and without a second key to the same place."""

from collections.abc import Iterable
from dataclasses import replace

from freehold.egress import http1
from freehold.egress.http1 import Field, HttpRequest, HttpResponse
from freehold.egress.models.scrub import Scrubber

_OVERRIDES = frozenset(
    {"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"}
)
"""Some servers take the method or the path from these fields."""
_DROPPED = ("connection", "upgrade", "range", "if-range", "accept-encoding", *_OVERRIDES)
"""A part of a response could hold a part of the secret, and a compressed one all of it."""
_LENGTHS = ("content-length", "transfer-encoding")
_COOKIES = ("set-cookie", "set-cookie2")
"""A cookie would be a sign-in that holds for every path and method."""


def add_credential(request: HttpRequest, header: str, value: str) -> HttpRequest:
    """The request as it is sent with the secret."""
    kept = request.end_to_end(without=(*_DROPPED, header.lower()))
    lengths = [(name, text) for name, text in request.fields if name.lower() in _LENGTHS]
    return replace(request, fields=(*kept, *lengths, (header, value), ("Accept-Encoding", "identity")))


class ResponseMask:
    """Replaces each spelling of the secret by stars, in header fields and in the body as it arrives."""

    def __init__(self, spellings: Iterable[bytes]) -> None:
        # Longer ones first: a short one may be a part of them.
        self._scrubbers = [Scrubber(one) for one in sorted(spellings, key=len, reverse=True)]

    def clean(self, response: HttpResponse) -> HttpResponse:
        """Raises `egress.bad-response` for a compressed body: nobody could see whether the secret is in it."""
        if response.listed("content-encoding") - {"identity"}:
            raise http1.bad_response("it is compressed although that was not asked for")
        fields: list[Field] = []
        for name, value in response.fields:
            if name.lower() not in _COOKIES:
                for scrubber in self._scrubbers:
                    value = scrubber.text(value)
                fields.append((name, value))
        reason = response.reason
        for scrubber in self._scrubbers:
            reason = scrubber.text(reason)
        return replace(response, fields=tuple(fields), reason=reason)

    def feed(self, piece: bytes) -> bytes:
        for scrubber in self._scrubbers:
            piece = scrubber.feed(piece)
        return piece

    def end(self) -> bytes:
        """The bytes that were held back."""
        rest = b""
        for scrubber in self._scrubbers:
            rest = scrubber.feed(rest) + scrubber.end()
        return rest
