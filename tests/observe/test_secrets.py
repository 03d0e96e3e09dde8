"""Only `reveal` returns the value of a secret."""

import copy
import json
import pickle

import pytest

from freehold.observe.secrets import MASK, Secret, is_secret_name, mask_secrets

VALUE = "correct-horse-battery"


def test_no_way_of_printing_shows_a_secret() -> None:
    secret = Secret(VALUE)
    shown = [str(secret), repr(secret), f"{secret}", f"{secret!r:>40}", f"{[secret]}", f"{ {'key': secret} }"]
    shown += [f"%s {secret}" % secret, "{:>60}".format(secret)]  # noqa: UP032
    assert all(MASK in text and VALUE not in text for text in shown)
    assert secret.reveal() == VALUE


def test_a_secret_cannot_be_encoded_pickled_or_joined() -> None:
    secret = Secret(VALUE)
    for act in (
        lambda: json.dumps({"key": secret}),
        lambda: pickle.dumps(secret),
        lambda: copy.deepcopy(secret),
        lambda: "".join([secret]),  # type: ignore[list-item]
        lambda: vars(secret),
    ):
        with pytest.raises(TypeError) as refused:
            act()
        assert VALUE not in str(refused.value)


def test_equal_secrets_are_equal() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer abcDEF123.456-_~", "Authorization: Bearer •••"),
        ("authorization=dpop eyJhbGciOiJFUzI1NiJ9.e30.sig", "authorization=dpop •••"),
        ("key sk-ant-api03-AAAABBBBCCCC used", "key ••• used"),
        ("token fh_0123456789abcdef.", "token •••."),
        ("ghp_0123456789abcdefABCDEF", "•••"),
        ("jwt eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln ok", "jwt ••• ok"),
        ("GET https://owner:hunter2@example.org/x", "GET https://owner:•••@example.org/x"),
        ("a\n-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\nb", "a\n•••\nb"),
        ("-----BEGIN PRIVATE KEY-----\nMHcC cut sho", "•••"),
        ("task-management, risk-averse-people and a bearer of news", None),
        ("https://example.org:8080/path", None),
    ],
)
def test_what_looks_like_a_secret_is_masked_and_the_rest_stays(text: str, kept: str | None) -> None:
    assert mask_secrets(text) == (text if kept is None else kept)


def test_names_of_secret_fields() -> None:
    for name in (
        "token",
        "access_token",
        "Authorization",
        "api_key",
        "x-api-key",
        "password",
        "client.secret",
        "cookie",
    ):
        assert is_secret_name(name), name
    for name in ("tokens", "token_count", "keyboard", "path", "secretary"):
        assert not is_secret_name(name), name
