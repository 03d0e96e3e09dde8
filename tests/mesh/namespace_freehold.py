"""A whole Freehold in a network namespace of its own: `python -m tests.mesh.namespace_freehold ADDRESS FOLDER HOME SKEW`.

It has a keeper, a computer and https at its address. The first line of standard input is its manifest; then each line is
a request of its owner in JSON (method, path, body), and each line of standard output the status and the answer. With a
model it has the built-in agent. `SKEW` is by how many seconds the clocks of all its programs are wrong.
"""

import asyncio
import json
import secrets
import sys
from pathlib import Path

import httpx2
from tests.mesh.namespace_tls import serve_tls
from tests.support.condition import DEADLINE
from tests.support.freehold import ROOT, FreeholdHarness
from tests.support.running_freehold import MODELS, FreeholdOptions, prepare_harness, run_harness

from freehold.identity.tokens import ApiTokens, Scope
from freehold.testing import ScriptedModel

OWNER = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
SCOPES: tuple[Scope, ...] = ("admin", "read", "prompt", "files", "history")
CLOCK = "import time\n_true = time.time\ntime.time = lambda: _true() + {skew}\n"


def prepare(folder: Path, manifest: str, model_url: str | None, skew: float) -> FreeholdHarness:
    """The home, which may be there from before."""
    clock = folder / "clock"
    clock.mkdir(parents=True, exist_ok=True)
    (clock / "sitecustomize.py").write_text(CLOCK.format(skew=skew))
    environment = {"PYTHONPATH": f"{clock}:{ROOT / 'src'}:{ROOT}", "XDG_RUNTIME_DIR": "", "HOME": str(folder)}
    agents = () if model_url is None else ("builtin",)
    if not (folder / "home").exists():
        return prepare_harness(folder, FreeholdOptions(agents, manifest=manifest, environment=environment), model_url)
    harness = FreeholdHarness(folder)
    harness.environment |= environment
    harness.home.manifest.write_text(manifest + (MODELS if model_url else "").replace("{model_url}", model_url or ""))
    return harness


async def serve(address: str, certificates: Path, folder: Path, manifest: str, skew: float) -> None:
    lines = asyncio.StreamReader(limit=1 << 22)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with ScriptedModel() as model:
        model_url = model.url if 'orchestrator = "local"' in manifest else None
        harness = await asyncio.to_thread(prepare, folder, manifest, model_url, skew)
        running = run_harness(harness)
        freehold = await asyncio.to_thread(running.__enter__)
        try:
            with ApiTokens(freehold.home.identity, owner=OWNER) as tokens:
                token = tokens.create(f"owner-{secrets.token_hex(4)}", SCOPES, None)[1]
            headers = {"authorization": f"Bearer {token}"}
            async with (
                serve_tls(address, certificates, harness.gateway_port),
                httpx2.AsyncClient(base_url=freehold.url, headers=headers, trust_env=False, timeout=DEADLINE) as http,
            ):
                print("ready", flush=True)
                while line := await lines.readline():
                    asked = json.loads(line)
                    answer = await http.request(asked["method"], asked["path"], json=asked["body"])
                    print(json.dumps([answer.status_code, answer.json()]), flush=True)
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


if __name__ == "__main__":
    text = json.loads(sys.stdin.readline())
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), text, float(sys.argv[4])))
