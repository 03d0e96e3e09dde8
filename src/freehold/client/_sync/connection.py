# made from _async/connection.py by python -m tools.generate
"""The connection to one Freehold: HTTP requests, and topics of its socket."""

from collections.abc import Generator, Iterator, Mapping
from typing import Any, TypeVar

import httpx2
from pydantic import TypeAdapter, ValidationError
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from freehold.client.delay import sleep
from freehold.client.problems import connection_error, read_reply, unexpected_reply
from freehold.client.stream_position import StreamPosition
from freehold.client.topic_protocol import TopicMessage, TopicSubscription
from freehold.tls_trust import trust_for

T = TypeVar("T")
STREAM_SILENCE = 60.0
"""Seconds without a byte after which a stream counts as lost. The other side sends an empty line every few seconds."""


class SyncConnection:
    """Requests to one Freehold. The token is never sent to another address: redirects are not followed."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        self.url = url
        self._timeout = timeout
        self._headers = {"authorization": f"Bearer {token}"}
        # No proxies or passwords from the environment.
        self._http = httpx2.Client(
            base_url=url, headers=self._headers, timeout=timeout, trust_env=False, verify=trust_for(url)
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, answer: type[T], query: Mapping[str, Any] | None = None) -> T:
        return self._request("GET", path, answer, query=query)

    def post(self, path: str, answer: type[T], body: Mapping[str, Any], *, timeout: float | None = None) -> T:
        """`timeout` in seconds, for what takes longer than other requests."""
        return self._request("POST", path, answer, body=body, timeout=timeout)

    def patch(self, path: str, answer: type[T], body: Mapping[str, Any]) -> T:
        return self._request("PATCH", path, answer, body=body)

    def put(self, path: str, answer: type[T], body: Mapping[str, Any]) -> T:
        return self._request("PUT", path, answer, body=body)

    def delete(self, path: str, answer: type[T], query: Mapping[str, Any] | None = None) -> T:
        return self._request("DELETE", path, answer, query=query)

    def download(self, path: str) -> tuple[Mapping[str, str], bytes]:
        """The headers and the bytes of a resource that is not JSON."""
        try:
            response = self._http.get(path)
        except httpx2.TransportError as error:
            raise connection_error(self.url, error, self._timeout) from error
        if not response.is_success:
            read_reply(self.url, response)
        return response.headers, response.content

    def upload(self, method: str, path: str, answer: type[T], content: bytes, headers: Mapping[str, str | None]) -> T:
        """Sends bytes as they are."""
        given = {name: value for name, value in headers.items() if value is not None}
        try:
            response = self._http.request(method, path, content=content, headers=given)
        except httpx2.TransportError as error:
            raise connection_error(self.url, error, self._timeout) from error
        return self._read(response, answer)

    def _request(
        self,
        method: str,
        path: str,
        answer: type[T],
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> T:
        params = {name: value for name, value in (query or {}).items() if value is not None}
        seconds = timeout or self._timeout
        try:
            response = self._http.request(method, path, params=params, json=body, timeout=seconds)
        except httpx2.TransportError as error:
            raise connection_error(self.url, error, seconds) from error
        return self._read(response, answer)

    def _read(self, response: httpx2.Response, answer: type[T]) -> T:
        found = read_reply(self.url, response)
        try:
            return TypeAdapter(answer).validate_python(found)
        except ValidationError as error:
            raise unexpected_reply(self.url, error) from error

    def stream(self, path: str, part: type[T], body: Mapping[str, Any]) -> Generator[T]:
        """The lines of a reply, each as it arrives. Ending the iteration early hangs up."""
        adapter = TypeAdapter(part)
        waits = httpx2.Timeout(self._timeout, read=max(self._timeout, STREAM_SILENCE))
        try:
            with self._http.stream("POST", path, json=body, timeout=waits) as response:
                if not response.is_success:
                    response.read()
                    read_reply(self.url, response)
                for line in response.iter_lines():
                    if line:
                        yield adapter.validate_json(line)
        except httpx2.TransportError as error:
            raise connection_error(self.url, error, self._timeout) from error
        except ValidationError as error:
            raise unexpected_reply(self.url, error) from error

    def follow_events(self, path: str, after: int | None, query: Mapping[str, Any]) -> Generator[str]:
        """The data of server-sent events. Reconnects by itself and goes on after the last one received.

        Ends only with an error that a retry cannot solve.
        """
        position = StreamPosition(after)
        while True:
            params = {name: value for name, value in {**query, "after": position.after}.items() if value is not None}
            try:
                with self._http.stream("GET", path, params=params) as response:
                    if response.status_code == 429 or response.status_code >= 500:
                        position.note_failure()
                    elif not response.is_success:
                        response.read()
                        read_reply(self.url, response)
                    else:
                        for line in response.iter_lines():
                            data = position.receive(line)
                            if data is not None:
                                yield data
            except httpx2.TransportError as error:
                position.note_failure()
                if (problem := connection_error(self.url, error, self._timeout)).code == "client.tls":
                    raise problem from error
            sleep(position.next_wait())

    def follow(self, topic: str, after: int | None) -> Iterator[TopicMessage]:
        """The messages of a topic. Reconnects by itself; each numbered message comes once and in order.

        Ends only with an error that a retry cannot solve.
        """
        subscription = TopicSubscription(self.url, topic, after, self._timeout)
        while True:
            try:
                with connect(**subscription.connect_options(self._headers)) as socket:
                    socket.send(subscription.request())
                    for text in socket:
                        message = subscription.receive(text)
                        if message is not None:
                            yield message
            except (OSError, TimeoutError, InvalidHandshake, ConnectionClosed) as error:
                subscription.note_failure(error)
            sleep(subscription.next_wait())
