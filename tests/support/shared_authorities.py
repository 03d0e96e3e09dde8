"""The HTTP clients of tests share the certificate authorities of the system: reading them for each takes 30 ms."""

import os
import ssl
from functools import cache
from typing import Any

import httpcore2

_make = httpcore2.default_ssl_context


@cache
def _read(trusts_environment: bool, *_environment: str | None) -> ssl.SSLContext:
    return _make(_trust_env=trusts_environment)


def _find(*, _trust_env: bool = True) -> ssl.SSLContext:  # the name is httpcore's
    return _read(_trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


def read_once() -> None:
    module: Any = httpcore2
    module.default_ssl_context = _find
