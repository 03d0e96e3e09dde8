#!/usr/bin/python3 -IS
"""Becomes the browser that BROWSER_PROGRAM names, without netlink.

Chromium drops all connections when an interface of the machine comes or goes, as those of containers and network
namespaces of other tests do. Without netlink it does not notice them: so it runs inside of a computer, too.
"""

import ctypes
import os
import platform
import socket
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER_MODE = 22, 38, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
"""Where both are in what the kernel shows a filter."""
SOCKET = {"x86_64": 41, "aarch64": 198}
ALLOW, NOT_SUPPORTED = 0x7FFF0000, 0x00050000 | 97


def refuse_netlink() -> None:
    steps = [
        (LOAD, 0, 0, NUMBER),
        (JUMP_EQUAL, 0, 3, SOCKET[platform.machine()]),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_EQUAL, 0, 1, socket.AF_NETLINK),
        (RETURN, 0, 0, NOT_SUPPORTED),
        (RETURN, 0, 0, ALLOW),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    text = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(text)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    for words in ((PR_SET_NO_NEW_PRIVS, 1, None, 0, 0), (PR_SET_SECCOMP, FILTER_MODE, program, 0, 0)):
        if prctl(*words):
            raise OSError(ctypes.get_errno(), "the browser gets no filter")


if __name__ == "__main__":
    refuse_netlink()
    os.execv(os.environ["BROWSER_PROGRAM"], [os.environ["BROWSER_PROGRAM"], *sys.argv[1:]])
