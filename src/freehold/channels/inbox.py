"""Attachments: stored in a folder of the workspace, and never opened."""

import re
import time
from dataclasses import dataclass

from freehold.channels.contract import ChannelAway, ChannelRefused, IncomingMessage, OwnerChannel
from freehold.channels.section import ChannelsSection
from freehold.computer import Computer
from freehold.errors import FreeholdError

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


@dataclass(frozen=True)
class StoredAttachments:
    """The paths of the files, and what was not taken."""

    paths: tuple[str, ...]
    problems: tuple[str, ...]


async def store_attachments(
    message: IncomingMessage, channel: OwnerChannel, computer: Computer, section: ChannelsSection
) -> StoredAttachments:
    """Written from inside the computer, so a planted link leads nowhere else. A repetition writes the same files again."""
    paths, problems = list[str](), list[str]()
    for place, one in enumerate(message.attachments):
        shown = safe_name(one.name)
        if one.size > section.max_attachment:
            problems.append(f"{shown} is larger than {section.max_attachment} bytes")
            continue
        try:
            content = await channel.fetch(one, section.max_attachment)
        except (ChannelAway, ChannelRefused) as error:
            problems.append(f"{shown}: {error}")
            continue
        day = time.strftime("%Y-%m-%d", time.gmtime(message.at))
        path = f"{section.inbox}/{day}-{safe_name(message.id)[-20:]}-{place}-{shown}"
        try:
            await computer.files.write(path.encode(), content, parents=True, mode=0o600)
        except FreeholdError as error:
            problems.append(f"{shown}: {error.message}")
            continue
        paths.append(path)
    return StoredAttachments(tuple(paths), tuple(problems))


def safe_name(name: str) -> str:
    """A name of a file that is none of a folder, an option or a hidden file, and ends as the sender wrote it."""
    found = _UNSAFE.sub("-", name).strip(".-")[-80:].strip(".-")
    return found or "file"
