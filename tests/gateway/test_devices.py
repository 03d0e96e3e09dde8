"""Programs that wait for a token: strangers cannot use up the places."""

from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway

from freehold.errors import FreeholdError
from freehold.gateway.devices import MAX_PER_ADDRESS, MAX_WAITING, REQUEST_LIFETIME, DeviceRequests


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def ask(requests: DeviceRequests, address: str) -> tuple[str, str]:
    """The code and the secret of a new request."""
    device, secret = requests.ask("laptop", ("read",), address)
    return device.code, secret


def is_waiting(requests: DeviceRequests, code: str) -> bool:
    try:
        return requests.find(code).code == code
    except FreeholdError:
        return False


def test_strangers_at_many_addresses_do_not_keep_the_owner_out() -> None:
    """Nor do they drop the owner's request: the network with the most loses its oldest first."""
    requests = DeviceRequests()
    for number in range(MAX_WAITING):
        ask(requests, f"198.51.{number // 5}.7")
    code, secret = ask(requests, "203.0.113.9")
    for number in range(200):
        ask(requests, f"198.51.{number % 50}.7")
    assert is_waiting(requests, code)
    requests.answer(code, "fh_token")
    assert requests.collect(secret).secret == "fh_token"


@pytest.mark.parametrize("network", ["192.0.2.1", "2001:db8:1:2:{:x}::1"])
def test_one_network_has_few_places_and_loses_its_own_oldest(network: str) -> None:
    requests = DeviceRequests()
    kept, _ = ask(requests, "203.0.113.9")
    codes = [ask(requests, network.format(number))[0] for number in range(MAX_PER_ADDRESS * 3)]
    assert [is_waiting(requests, code) for code in codes] == [False] * MAX_PER_ADDRESS * 2 + [True] * MAX_PER_ADDRESS
    assert is_waiting(requests, kept)


def test_an_answer_that_waits_to_be_collected_is_dropped_last() -> None:
    requests = DeviceRequests()
    code, secret = ask(requests, "192.0.2.1")
    requests.answer(code, "fh_token")
    for _ in range(MAX_PER_ADDRESS * 3):
        ask(requests, "192.0.2.1")
    assert requests.collect(secret).secret == "fh_token"


def test_a_request_expires() -> None:
    clock = Clock()
    requests = DeviceRequests(clock)
    code, secret = ask(requests, "192.0.2.1")
    clock.now = REQUEST_LIFETIME + 1
    assert not is_waiting(requests, code)
    with pytest.raises(FreeholdError, match="expired"):
        requests.collect(secret)


async def test_a_flood_from_many_addresses_neither_refuses_the_owner_nor_fills_the_timeline(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, 'trusted_proxies = ["127.0.0.1"]\n') as gateway:

        async def request(address: str) -> int:
            headers = {"x-forwarded-for": address}
            body = {"name": "x", "scopes": ["read"]}
            return (await gateway.http.post("/v1/devices", headers=headers, json=body)).status_code

        for number in range(150):
            assert await request(f"198.51.{number}.7") == 201
        assert await request("203.0.113.9") == 201
        assert len(gateway.services.timeline.read(kinds=["identity.token_requested"])) < 100
