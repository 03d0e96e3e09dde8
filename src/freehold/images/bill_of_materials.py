"""The bill of materials of an image, in CycloneDX: every package of its lock with its hash."""

import json
from urllib.parse import quote

from freehold.images.lock import ImageLock, LockedPackage


def make_bill_of_materials(lock: ImageLock, freehold_version: str) -> str:
    """The same lock gives the same text."""
    packages = sorted(lock.packages, key=lambda one: (one.kind, one.name, one.version, one.file))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "name": "freehold-image",
                "version": lock.digest[:12],
                "properties": [
                    {"name": "freehold:version", "value": freehold_version},
                    {"name": "freehold:lock", "value": lock.digest},
                ],
            }
        },
        "components": [_component(lock, package) for package in packages],
    }
    return json.dumps(document, indent=1) + "\n"


def _component(lock: ImageLock, package: LockedPackage) -> dict[str, object]:
    component: dict[str, object] = {"type": "library", "name": package.name}
    if package.version:
        component |= {"version": package.version, "purl": _package_url(lock, package)}
    else:
        component["type"] = "file"
    return component | {"hashes": [{"alg": "SHA-256", "content": package.sha256}]}


def _package_url(lock: ImageLock, package: LockedPackage) -> str:
    name, version = quote(package.name, safe="/"), quote(package.version, safe="")
    match package.kind:
        case "deb":
            return f"pkg:deb/debian/{name}@{version}?distro={lock.suite}"
        case "wheel":
            return f"pkg:pypi/{name}@{version}"
        case _:
            return f"pkg:npm/{name}@{version}"
