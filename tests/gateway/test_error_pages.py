"""A browser at an address where nothing is: a page with a way back, and no word more than the API says."""

import pytest
from tests.gateway.running import Running

PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_the_owner_at_a_wrong_address_gets_a_page_with_a_way_back(gateway: Running) -> None:
    answer = await gateway.http.get("/nowhere", headers={**gateway.browser(), **PAGE})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert 'href="/"' in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "DENY"
    assert "nowhere" not in answer.text


async def test_a_stranger_sees_the_same_page_at_every_address(gateway: Running) -> None:
    answers = [await gateway.http.get(path, headers=PAGE) for path in ("/nowhere", "/.git/config", "/metrics")]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert 'href="/sign-in"' in answers[0].text
    assert answers[0].headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/v1/nowhere", "/v1"])
async def test_the_api_answers_in_its_shape_whoever_asks(gateway: Running, path: str) -> None:
    answer = await gateway.http.get(path, headers={**gateway.browser(), **PAGE})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "request.not-found")
    assert (await gateway.http.get(path, headers=PAGE)).json()["error"]["code"] == "identity.not-signed-in"


async def test_who_asks_for_no_page_gets_none(gateway: Running) -> None:
    browser = gateway.browser()
    assert (await gateway.http.get("/nowhere", headers=browser)).json()["error"]["code"] == "request.not-found"
    assert (await gateway.http.post("/nowhere", headers={**browser, **PAGE})).json()["error"][
        "code"
    ] == "request.not-found"
    assert (await gateway.http.head("/nowhere", headers={**browser, **PAGE})).content == b""
