"""The control center's files, as the gateway serves them."""

import gzip
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from freehold.gateway.routes.pages import accepts, add_pages

SCRIPT = b"console.log(1);" * 200
BROTLI = b"as the build wrote it"


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "assets/page-1.js").write_bytes(SCRIPT)
    (tmp_path / "assets/page-1.js.gz").write_bytes(gzip.compress(SCRIPT))
    (tmp_path / "assets/page-1.js.br").write_bytes(BROTLI)
    (tmp_path / "icon.svg").write_text("<svg/>")
    app = FastAPI()
    add_pages(app, tmp_path)
    return app


async def _get(app: FastAPI, path: str, accepted: str) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as http:
        return await http.get(path, headers={"accept-encoding": accepted})


async def test_a_file_is_sent_compressed_when_accepted(app: FastAPI) -> None:
    packed = await _get(app, "/assets/page-1.js", "gzip, deflate")
    plain = await _get(app, "/assets/page-1.js", "identity")
    assert (packed.headers["content-encoding"], packed.content) == ("gzip", SCRIPT)
    assert int(packed.headers["content-length"]) < len(SCRIPT) / 5
    assert ("content-encoding" in plain.headers, plain.content) == (False, SCRIPT)
    for answer in (packed, plain):
        assert answer.headers["vary"] == "accept-encoding"
        assert answer.headers["content-type"].startswith("text/javascript")
    assert packed.headers["etag"] != plain.headers["etag"]


async def test_the_smaller_copy_is_sent_when_both_are_accepted(app: FastAPI) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as http:
        headers = {"accept-encoding": "gzip, deflate, br, zstd"}
        async with http.stream("GET", "/assets/page-1.js", headers=headers) as answer:
            assert answer.headers["content-encoding"] == "br"
            assert answer.headers["vary"] == "accept-encoding"
            assert b"".join([part async for part in answer.aiter_raw()]) == BROTLI


@pytest.mark.parametrize("suffix", [".gz", ".br"])
async def test_the_compressed_file_has_no_address_of_its_own(app: FastAPI, suffix: str) -> None:
    assert (await _get(app, f"/assets/page-1.js{suffix}", "gzip")).status_code == 404
    assert (await _get(app, "/icon.svg", "gzip")).text == "<svg/>"


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("x-gzip", False),
    ],
)
def test_gzip_is_not_sent_when_refused(accepted: str, taken: bool) -> None:
    assert accepts(accepted, "gzip") is taken
