"""The node's part of joining: keys are made here, and the head is recognised by the fingerprint in the code."""

import asyncio
import os
import platform
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.fleet.certificates import (
    FleetKey,
    fingerprint_of_bytes,
    make_key,
    make_own_pair,
    make_request,
    open_context,
    write_key,
)
from freehold.fleet.join_code import JoinCode
from freehold.fleet.join_door import JoinAnswer, JoinRequest
from freehold.fleet.node_folder import NodeSettings, write_settings
from freehold.fleet.versions import read_versions
from freehold.fleet.wire import encode_message, read_error, read_message
from freehold.strict_json import WrongShape, decode, encode

JOIN_TIMEOUT = 20.0
MEMORY_SHARE = 0.8
"""Of this machine, when the owner does not say how much computers may have."""


@dataclass(frozen=True)
class NodeOffer:
    """What a machine offers to a fleet."""

    name: str
    address: str
    port: int
    ports: int
    cpus: float | None = None
    memory: int | None = None
    cache: int = 2 * 1024**3
    labels: dict[str, str] = field(default_factory=dict)
    cards: tuple[int, ...] = ()


async def join_fleet(code: JoinCode, offer: NodeOffer, folder: Path) -> NodeSettings:
    """Raises the head's refusal, and `fleet.unreachable`."""
    own, ray_key = make_own_pair(f"freehold node {offer.name}"), make_key()
    labels = {"arch": platform.machine(), **offer.labels}
    request = JoinRequest(
        code.secret,
        offer.name,
        offer.address,
        offer.port,
        own.certificate,
        make_request(ray_key),
        read_versions(),
        labels,
    )
    answer = await _ask(code, request)
    settings = NodeSettings(
        name=answer.name,
        address=offer.address,
        port=offer.port,
        ports=offer.ports,
        own=own,
        head_certificate=answer.head_certificate,
        ray_head=answer.ray_head,
        ray_token=answer.ray_token,
        ray_authority=answer.ray_authority,
        ray_own=FleetKey(answer.ray_certificate, write_key(ray_key)),
        cpus=offer.cpus or float(os.cpu_count() or 1),
        memory=offer.memory or int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE),
        cache=offer.cache,
        labels=answer.labels,
        cards=offer.cards,
        kind=answer.kind,
    )
    await asyncio.to_thread(write_settings, folder, settings)
    return settings


async def _ask(code: JoinCode, request: JoinRequest) -> JoinAnswer:
    try:
        async with asyncio.timeout(JOIN_TIMEOUT):
            context = open_context(None, server=False)
            reader, writer = await asyncio.open_connection(code.host, code.port, ssl=context)
            try:
                _check_head(writer.get_extra_info("ssl_object"), code)
                writer.write(encode_message(encode(request)))
                reply = await read_message(reader)
            finally:
                writer.transport.abort()
    except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
        raise FreeholdError(
            "fleet.unreachable",
            f"The head at {code.host} port {code.port} does not answer: {str(error) or 'no answer in time'}",
            hint="Is its Freehold running, and the port open to this machine?",
        ) from None
    if "error" in reply:
        raise read_error(reply["error"])
    try:
        return decode(JoinAnswer, reply.get("answer"))
    except WrongShape as error:
        raise FreeholdError(
            "fleet.bad-answer", f"The head answered something else than was expected: {error}"
        ) from None


def _check_head(connection: ssl.SSLObject, code: JoinCode) -> None:
    """Before the secret is sent: whoever listens there must have the head's key."""
    certificate = connection.getpeercert(binary_form=True)
    if certificate is None or fingerprint_of_bytes(certificate) != code.head:
        raise FreeholdError(
            "fleet.not-ours",
            f"Whoever answers at {code.host} port {code.port} is not the head that made this code",
            hint="Check the address; ask for a new code: freehold fleet up",
        )
