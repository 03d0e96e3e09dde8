"""How a machine comes to life: from a template where that is possible, with hardware support where that works."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path

from freehold.computer.microvm.initramfs import cache_folder
from freehold.computer.microvm.requirements import KVM
from freehold.computer.microvm.template import Template, find_template
from freehold.computer.microvm.vm import Blueprint, DidNotBoot, Vm, VmOrder, drawn_blueprint, has_remote_mounts
from freehold.computer.walls.ownership import chown_tree
from freehold.errors import FreeholdError

KVM_TIMEOUT = 15.0
"""Seconds in which a machine with hardware support must have booted. On some hosts /dev/kvm exists and does not work.

A boot takes one second; a host that is just starting everything else may be as slow as this.
"""
BOOT_TIMEOUT = 120.0
STALL_TIMEOUT = 60.0
"""An emulated kernel that a busy host kept waiting can stall for good. After these seconds it is booted once more."""


def start_vm(order: VmOrder, stack: contextlib.ExitStack) -> tuple[Vm, Blueprint]:
    """A machine, and the blueprint to load it again, which is closed by `stack`.

    Raises if a wall cannot be built, and then leaves nothing behind. The mount namespace of the calling thread changes
    permanently: use a thread of its own.
    """
    for folder in (order.spec.workspace, order.spec.home):
        chown_tree(folder, order.uid)
    drawn = stack.enter_context(drawn_blueprint(order))
    try:
        blueprint, template = _choose_accelerator(drawn)
        blueprint.stage()
        vm = None if template is None else _load_template(blueprint, template)
        if vm is not None:
            return vm, blueprint
        if not blueprint.hardware.is_emulated:
            with contextlib.suppress(DidNotBoot):
                return blueprint.boot(KVM_TIMEOUT), blueprint
            _note_kvm_failure(order)
            blueprint.emulate()
        with contextlib.suppress(DidNotBoot):
            return blueprint.boot(STALL_TIMEOUT), blueprint
        return blueprint.boot(BOOT_TIMEOUT), blueprint
    except DidNotBoot as silence:
        raise FreeholdError(
            "computer.no-isolation",
            f"The virtual machine did not boot the kernel {drawn.release}: {silence}",
            hint="freehold doctor --backend microvm tries it again",
        ) from None


def _choose_accelerator(drawn: Blueprint) -> tuple[Blueprint, Template | None]:
    """And a template for it, which is made if there is none. Without a template a KVM that fails is found out later."""
    if os.access(KVM, os.R_OK | os.W_OK) and not _kvm_failure().exists():
        blueprint = drawn.using("kvm")
        try:
            return blueprint, _prepare_template(blueprint, KVM_TIMEOUT)
        except DidNotBoot:
            _note_kvm_failure(drawn.order)
    return drawn, _prepare_template(drawn, BOOT_TIMEOUT)


def _prepare_template(blueprint: Blueprint, timeout: float) -> Template | None:
    """None if the machine must boot: these programs make no template, or it fails, or it would hold the owner's variables,
    or it has remote mounts.

    Raises DidNotBoot.
    """
    spec = blueprint.order.spec
    if not blueprint.hardware.tools.can_save or spec.environment or has_remote_mounts(spec):
        return None
    try:
        return find_template(blueprint, timeout)
    except (FreeholdError, OSError):
        return None


def _load_template(blueprint: Blueprint, template: Template) -> Vm | None:
    """None if it cannot be used. It is removed then, and made again at the next start."""
    with template.opened() as found:
        if found is not None:
            saved, is_right = found
            with contextlib.suppress(FreeholdError, OSError):
                walls = template.read_walls()
                return replace(blueprint.load(saved, is_right.result, forgives=False), walls=walls)
    template.remove()
    return None


def _kvm_failure() -> Path:
    """Exists if no machine boots with hardware support, until this host is booted again."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return cache_folder() / f"kvm-fails-{boot}"


def _note_kvm_failure(order: VmOrder) -> None:
    if not order.cancelled.is_set():
        for old in cache_folder().glob("kvm-fails-*"):
            old.unlink(missing_ok=True)
        _kvm_failure().touch()
