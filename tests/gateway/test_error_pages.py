"""A browser at a wrong address gets a page with a link, and no more information than the API gives."""

import pytest
from tests.gateway.running_gateway import RunningGateway

PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_the_owner_at_a_wrong_address_gets_a_page_with_a_link(gateway: RunningGateway) -> None:
    answer = await gateway.http.get("/nowhere", headers={**gateway.browser(), **PAGE})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert 'href="/"' in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "DENY"
    assert "nowhere" not in answer.text


async def test_every_address_shows_the_same_page_without_a_sign_in(gateway: RunningGateway) -> None:
    pages = {**PAGE, "host": gateway.browser()["host"]}
    answers = [await gateway.http.get(path, headers=pages) for path in ("/nowhere", "/.git/config", "/metrics")]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert 'href="/"' in answers[0].text
    assert answers[0].headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/v1/nowhere", "/v1"])
async def test_the_api_answers_browsers_with_json_too(gateway: RunningGateway, path: str) -> None:
    answer = await gateway.http.get(path, headers={**gateway.browser(), **PAGE})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "request.not-found")
    assert (await gateway.http.get(path, headers=PAGE)).json()["error"]["code"] == "identity.not-signed-in"


async def test_a_client_that_does_not_accept_html_gets_json(gateway: RunningGateway) -> None:
    browser = gateway.browser()
    assert (await gateway.http.get("/nowhere", headers=browser)).json()["error"]["code"] == "request.not-found"
    assert (await gateway.http.post("/nowhere", headers={**browser, **PAGE})).json()["error"][
        "code"
    ] == "request.not-found"
    assert (await gateway.http.head("/nowhere", headers={**browser, **PAGE})).content == b""
