"""Providers in the page: found and connected with one press, by a key, the model of a session, and the default."""

import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect
from tests.support.browser import OwnerPage
from tests.support.provider_gateway import provider_environment
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.testing import ScriptedModel

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
KEY = "key-0123456789abcdef"
REFUSAL = "This key was revoked on Tuesday."
MODELS = [
    {"id": "mistral-embed"},
    {"id": "codestral-latest", "context_length": 256_000},
    {"id": "a-new-one", "context_length": 32_000},
]


class KeyedProvider(BaseHTTPRequestHandler):
    """Lists its models and answers for a request with the key, and has words of its own for any other."""

    def answer(self, content: object) -> None:
        if self.headers["authorization"] != f"Bearer {KEY}":
            self.send(401, {"error": {"message": REFUSAL}})
        else:
            self.send(200, content)

    def send(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer({"data": MODELS})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.answer({"choices": [{"message": {"content": "ok"}}]})

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def keyed() -> Iterator[str]:
    """The address of a provider that needs a key."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), KeyedProvider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ollama() -> AsyncIterator[ScriptedModel]:
    """What answers where Ollama would."""
    async with ScriptedModel() as model:
        yield model


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(
    tmp_path_factory: pytest.TempPathFactory, ollama: ScriptedModel, keyed: str
) -> AsyncIterator[RunningFreehold]:
    environment = provider_environment({"ollama": f"{ollama.url}/v1", "mistral": keyed})
    environment["MISTRAL_API_KEY"] = "key-that-was-revoked"
    options = FreeholdOptions(
        ("builtin",), environment=environment, keeper="tests.support.provider_keeper", is_connected=False
    )
    async with run_freehold(tmp_path_factory.mktemp("freehold"), options) as freehold:
        yield freehold


async def open_dialog(owner_page: OwnerPage) -> Locator:
    await owner_page.go("/settings/models")
    await owner_page.page.get_by_role("button", name="Connect a model").first.click()
    dialog = owner_page.page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Another server")).to_be_visible()
    return dialog


async def test_what_was_shared_before_there_is_a_model_begins_a_message_afterwards(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = owner_page.page
    await owner_page.go("/sessions?share_text=From+another+app")
    await expect(page.get_by_role("region", name="Two steps to your first session")).to_be_visible()
    await freehold.call("PUT", "/v1/models/first", kind="openai-compatible", base_url=f"{freehold.model.url}/v1")
    await page.evaluate("window.dispatchEvent(new Event('focus'))")
    await expect(owner_page.message).to_have_value("From another app")
    await owner_page.message.fill("")
    await freehold.call("DELETE", "/v1/models/first")


async def test_a_server_that_was_found_is_used_after_one_press_and_not_before(
    freehold: RunningFreehold, owner_page: OwnerPage, ollama: ScriptedModel
) -> None:
    dialog = await open_dialog(owner_page)
    found = dialog.locator("[data-found=ollama]")
    await expect(found).to_contain_text(f"It answers at {ollama.url}/v1 and offers 1 model")
    await expect(dialog).to_contain_text("Nothing of this is used until you connect it.")
    assert {(each.method, each.path) for each in ollama.requests} == {("GET", "/v1/models")}
    assert "ollama" not in [each["name"] for each in (await freehold.call("GET", "/v1/models"))["models"]]
    await found.get_by_role("button", name="Connect Ollama").click()
    await expect(owner_page.page.locator("[data-model=ollama]")).to_be_visible()
    session = await freehold.open("builtin", model="ollama")
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, "SAY it is used")
    assert [each.json["model"] for each in ollama.requests if each.method == "POST"] == ["scripted"]


async def test_a_key_that_was_found_and_is_refused_is_not_connected(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    dialog = await open_dialog(owner_page)
    found = dialog.locator("[data-found=mistral]")
    await expect(found).to_contain_text("MISTRAL_API_KEY")
    await found.get_by_role("button", name="Connect Mistral").click()
    await expect(found.get_by_role("status").locator("q")).to_have_text(REFUSAL)
    await expect(found.get_by_role("button", name="Connect Mistral")).to_be_enabled()
    assert "mistral" not in [each["name"] for each in (await freehold.call("GET", "/v1/models"))["models"]]


async def test_a_key_that_is_refused_shows_the_words_of_the_provider_and_a_good_one_its_models(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    await (await open_dialog(owner_page)).locator("[data-provider=mistral]").click()
    form = owner_page.page.get_by_role("dialog", name="Mistral")
    await form.get_by_label("Key", exact=True).fill("key-that-was-revoked")
    await form.get_by_role("button", name="Test", exact=True).click()
    await expect(form.get_by_role("status")).to_contain_text("It responds, but refuses the key")
    await expect(form.get_by_role("status").locator("q")).to_have_text(REFUSAL)
    await expect(form.get_by_label("Model")).to_have_count(0)
    await form.get_by_label("Key", exact=True).fill(KEY)
    await form.get_by_role("button", name="Test", exact=True).click()
    await expect(form.get_by_role("status")).to_contain_text("It responds and offers 3 models")
    priced = re.compile(r"^codestral-latest · \$[\d.]+ in, \$[\d.]+ out · 256k$")
    offered = form.get_by_label("Model").get_by_role("option")
    embedding = re.compile(r"^mistral-embed · ")
    await expect(offered).to_have_text(["The agent chooses", priced, embedding, "a-new-one · 32k"])
    await expect(form.get_by_label("Model")).to_have_value("codestral-latest")
    await form.get_by_role("button", name="Connect", exact=True).click()
    await expect(owner_page.page.locator("[data-model=mistral]")).to_contain_text("mistral")
    assert KEY not in await owner_page.page.content()
    rows = {each["name"]: each for each in (await freehold.call("GET", "/v1/models"))["models"]}
    assert (rows["mistral"]["model"], rows["mistral"]["problem"]) == ("codestral-latest", None)


async def test_the_model_of_a_session_is_changed_in_the_composer_and_shown_in_the_header(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    body = {"kind": "openai-compatible", "base_url": f"{freehold.model.url}/v1", "model": "second"}
    await freehold.call("PUT", "/v1/models/other", **body)
    page = owner_page.page
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    await page.get_by_role("button", name="Agent and model").click()
    choice = page.get_by_role("dialog", name="Agent and model")
    await choice.get_by_label("Provider").select_option("other")
    await expect(page.locator(".sessions-agent")).to_contain_text("other/second")
    await choice.get_by_label("Model").fill("third")
    await choice.get_by_label("Model").press("Enter")
    await expect(page.locator(".sessions-agent")).to_contain_text("other/third")
    await page.keyboard.press("Escape")
    async with freehold.watch(session) as watch:
        await owner_page.send_prompt("SAY changed")
        await watch.until("turn.ended")
    assert [each for each in freehold.model.requests if each.method == "POST"][-1].json["model"] == "third"


async def test_a_provider_is_made_the_default_and_disconnected_in_the_settings(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    body = {"kind": "openai-compatible", "base_url": f"{freehold.model.url}/v1"}
    await freehold.call("PUT", "/v1/models/spare", **body)
    page = owner_page.page
    await owner_page.go("/settings/models")
    row = page.locator("[data-model=spare]")
    await row.get_by_role("button", name="Make default: spare").click()
    await expect(row).to_contain_text("default")
    disconnect = page.get_by_role("button", name="Disconnect spare")
    # The page ignores a second press that comes at once.
    await disconnect.evaluate(
        "(it) => { it.click(); return new Promise((on) => setTimeout(on, 500)).then(() => it.click()) }"
    )
    await expect(row).to_have_count(0)
    assert "spare" not in freehold.home.manifest.read_text()
