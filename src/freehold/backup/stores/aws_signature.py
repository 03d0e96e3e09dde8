"""Signature version 4 of Amazon Web Services, for the few requests of the S3 store."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote


@dataclass(frozen=True)
class AwsKey:
    access_key: str
    secret: str
    region: str


def sign_request(
    key: AwsKey,
    method: str,
    host: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    moment: datetime,
) -> dict[str, str]:
    """All headers to send. `path` is not encoded yet; `headers` are in lower case."""
    stamp = moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    signed = {**headers, "host": host, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        (
            method,
            encode_path(path),
            encode_query(query),
            *(f"{name}:{signed[name].strip()}" for name in sorted(signed)),
            "",
            names,
            digest,
        )
    )
    scope = f"{stamp[:8]}/{key.region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    derived = f"AWS4{key.secret}".encode()
    for part in (stamp[:8], key.region, "s3", "aws4_request"):
        derived = hmac.digest(derived, part.encode(), "sha256")
    signature = hmac.digest(derived, text.encode(), "sha256").hex()
    signed["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={key.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return signed


def encode_path(path: str) -> str:
    return quote(path, safe="/-_.~")


def encode_query(query: Mapping[str, str]) -> str:
    return "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(query.items()))
