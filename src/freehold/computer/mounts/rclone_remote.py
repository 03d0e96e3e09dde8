"""What rclone is told about a remote folder: S3, WebDAV, a Solid pod, or one of its own remotes."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from freehold.computer.mounts.endpoint_relay import ServerAddress, read_endpoint
from freehold.errors import FreeholdError

RemoteKind = Literal["s3", "webdav", "solid", "rclone"]
REMOTE_KINDS: tuple[RemoteKind, ...] = ("s3", "webdav", "solid", "rclone")
BRIDGE = ServerAddress("pod.internal", 80)
"""Where rclone finds a pod: at the program of the mounts, which signs its requests. It gets no key itself."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@ -]{0,99}", re.ASCII)
_OBSCURE_TIMEOUT = 10.0


@dataclass(frozen=True)
class RcloneRemote:
    """`sections` is rclone's configuration and holds the credentials; `target` is `NAME:PATH`."""

    target: str
    endpoints: tuple[ServerAddress, ...]
    sections: Mapping[str, Mapping[str, str]] = field(repr=False)

    def configuration(self) -> bytes:
        lines = []
        for name, settings in self.sections.items():
            lines += [f"[{name}]", *(f"{key} = {value}" for key, value in settings.items()), ""]
        return "\n".join(lines).encode()


@dataclass(frozen=True)
class RemoteFolder:
    """What the owner configured. `key` is the value of the secret, or empty."""

    kind: RemoteKind
    source: str
    endpoint: str = ""
    user: str = ""
    issuer: str = ""
    region: str = ""
    hosts: tuple[str, ...] = ()
    key: str = field(default="", repr=False)


def describe_remote(folder: RemoteFolder, rclone: str) -> RcloneRemote:
    """Blocking. Raises `computer.mount-refused` for settings that rclone could not use."""
    match folder.kind:
        case "s3":
            return _describe_s3(folder)
        case "webdav":
            return _describe_webdav(folder, rclone)
        case "solid":
            return _make(
                "remote",
                "",
                (BRIDGE,),
                {"remote": {"type": "webdav", "url": f"http://{BRIDGE.host}", "vendor": "other"}},
            )
        case "rclone":
            return _describe_own(folder)
        case _:
            assert_never(folder.kind)


def _describe_s3(folder: RemoteFolder) -> RcloneRemote:
    settings = {
        "type": "s3",
        "provider": "Other",
        "endpoint": folder.endpoint,
        "region": folder.region,
        "access_key_id": folder.user,
        "secret_access_key": folder.key,
        # The name of the bucket stays out of the host name, so that one host is all that is reached.
        "force_path_style": "true",
        "no_check_bucket": "true",
        "env_auth": "false",
    }
    return _make("remote", folder.source, (read_endpoint(folder.endpoint),), {"remote": settings})


def _describe_webdav(folder: RemoteFolder, rclone: str) -> RcloneRemote:
    settings = {"type": "webdav", "url": folder.endpoint, "vendor": "other"}
    if folder.user:
        settings |= {"user": folder.user, "pass": _obscure(folder.key, rclone) if folder.key else ""}
    elif folder.key:
        settings["bearer_token"] = folder.key
    return _make("remote", folder.source, (read_endpoint(folder.endpoint),), {"remote": settings})


def _describe_own(folder: RemoteFolder) -> RcloneRemote:
    name, colon, path = folder.source.partition(":")
    try:
        sections = json.loads(folder.key)
        texts = {part: {key: str(value) for key, value in one.items()} for part, one in sections.items()}
    except (ValueError, AttributeError):
        raise _refuse(
            "The secret of a mount of kind rclone is not the output of rclone config dump",
            "rclone config dump | tr -d '\\n' | freehold secret set NAME",
        ) from None
    if not colon or name not in texts:
        raise _refuse(
            f"The secret has no remote {name[:100]!r}. It has: {', '.join(sorted(texts)) or 'none'}",
            'source = "drive:Documents", where drive is a name that rclone listremotes shows',
        )
    return _make(name, path, tuple(map(read_endpoint, folder.hosts)), texts)


def _make(
    name: str, path: str, endpoints: Sequence[ServerAddress], sections: Mapping[str, Mapping[str, str]]
) -> RcloneRemote:
    for part, settings in sections.items():
        for word in (part, *settings, *settings.values()):
            if "\n" in word or "\r" in word or "\0" in word:
                raise _refuse(f"A setting of the remote {part!r} has more than one line", "Leave it out")
        if not _NAME.fullmatch(part):
            raise _refuse(f"{part[:100]!r} is not the name of a remote", "Rename it with rclone config")
    return RcloneRemote(f"{name}:{path.strip('/')}", tuple(dict.fromkeys(endpoints)), sections)


def _obscure(password: str, rclone: str) -> str:
    """The form in which rclone wants a password in its configuration. It is no protection."""
    try:
        done = subprocess.run(
            [rclone, "obscure", "-"],
            input=password.encode(),
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "RCLONE_CONFIG": ""},
            timeout=_OBSCURE_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        raise _refuse(f"{rclone} obscure failed", "apt install rclone") from None
    return done.stdout.decode().strip()


def _refuse(message: str, hint: str) -> FreeholdError:
    return FreeholdError("computer.mount-refused", message, hint=hint, kind="invalid")
