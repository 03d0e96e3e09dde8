"""The repository of the owner's account, as long as one sign-in lasts. Each request proves the key of that sign-in."""

import json
from collections.abc import Callable, Mapping

from freehold.identity.atproto.dpop import DpopKey
from freehold.identity.atproto.fetcher import Fetcher, FetchError, FetchResponse
from freehold.identity.atproto.problems import SignInProblem, escape_for_log, explain_fetch_error


class OwnerRepository:
    """Writes and removes records. The server refuses whatever the owner has not agreed to."""

    def __init__(
        self, fetcher: Fetcher, pds: str, did: str, token: str, key: DpopKey, *, clock: Callable[[], float]
    ) -> None:
        self._fetcher = fetcher
        self._pds = pds.rstrip("/")
        self._did = did
        self._token = token
        self._key = key
        self._clock = clock
        self._nonce: str | None = None

    async def put(self, collection: str, name: str, record: Mapping[str, object]) -> None:
        """Idempotent. Raises SignInProblem."""
        await self._call("putRecord", {"collection": collection, "rkey": name, "record": dict(record)})

    async def delete(self, collection: str, name: str) -> None:
        """Idempotent. Raises SignInProblem."""
        await self._call("deleteRecord", {"collection": collection, "rkey": name})

    async def _call(self, method: str, body: Mapping[str, object]) -> None:
        url = f"{self._pds}/xrpc/com.atproto.repo.{method}"
        content = json.dumps({"repo": self._did, **body}).encode()
        try:
            answer = await self._send(url, content)
            if answer.status == 401 and "dpop-nonce" in answer.headers:
                answer = await self._send(url, content)
        except FetchError as error:
            raise explain_fetch_error(error, "pds") from None
        if answer.status != 200:
            reason = f"{method} was answered {answer.status} {_error_of(answer)}"
            raise SignInProblem("write-refused", reason, place=self._pds.split("://")[-1])

    async def _send(self, url: str, content: bytes) -> FetchResponse:
        headers = {
            "authorization": f"DPoP {self._token}",
            "dpop": self._key.proof("POST", url, nonce=self._nonce, clock=self._clock, token=self._token),
            "content-type": "application/json",
        }
        answer = await self._fetcher.request("POST", url, headers, content)
        self._nonce = answer.headers.get("dpop-nonce", self._nonce)
        return answer


def _error_of(answer: FetchResponse) -> str:
    try:
        found = answer.json()
    except FetchError as error:
        return str(error)
    return f"{escape_for_log(found.get('error'))}: {escape_for_log(found.get('message'))}"
