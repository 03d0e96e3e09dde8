"""The software bill of materials: what an owner runs, as CycloneDX, made from the lock files alone."""

import base64
import json

from tools.locks import LockedPackage, list_lock_files


def software_bill_of_materials() -> str:
    from freehold import __version__

    found: dict[str, LockedPackage] = {}
    for lock in list_lock_files():
        if lock.runs:
            for package in lock.packages():
                found.setdefault(package.purl, package)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "freehold", "version": __version__}},
        "components": [_component(package) for _, package in sorted(found.items())],
    }
    return json.dumps(bill, indent=1) + "\n"


def _component(package: LockedPackage) -> dict[str, object]:
    group, _, name = package.name.rpartition("/")
    component: dict[str, object] = {"type": "library", "bom-ref": package.purl}
    if group:
        component["group"] = group
    component |= {"name": name, "version": package.version, "purl": package.purl}
    if package.ecosystem == "npm":
        # A PyPI lock has one hash a file of the release, and which file is installed depends on the machine.
        kind, _, digest = package.hashes[0].partition("-")
        content = base64.b64decode(digest).hex()
        component["hashes"] = [{"alg": kind.upper().replace("SHA", "SHA-"), "content": content}]
    if package.licence:
        is_expression = not package.licence.upper().startswith("SEE LICEN")
        component["licenses"] = [
            {"expression": package.licence} if is_expression else {"license": {"name": package.licence}}
        ]
    return component
