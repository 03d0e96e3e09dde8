"""What a computer looks like inside, whatever isolates it: which files of the host it sees, and which are made for it."""

from collections.abc import Mapping

from freehold.computer.contract.conventions import AGENT_HOME, AGENT_UID
from freehold.computer.contract.spec import MIB, Limits

RUN_SIZE = 16 * MIB

# Only what programs need from the host's /etc and what holds nothing private. Never /etc/profile and similar files:
# owners export keys there.
SHARED_ETC = (
    "ssl/certs",
    "ssl/openssl.cnf",
    "pki/tls/certs",
    "pki/ca-trust/extracted",
    "crypto-policies/back-ends",
    "ca-certificates.conf",
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "os-release",
    "debian_version",
    "fonts",
    "mime.types",
    "protocols",
    "services",
)
TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")

# bubblewrap itself makes /proc/sys, /proc/sysrq-trigger, /proc/irq and /proc/bus read-only.
MASKED_FILES = (
    "cmdline",
    "config.gz",
    "interrupts",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "modules",
    "sched_debug",
    "slabinfo",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
)
MASKED_FOLDERS = ("acpi", "asound", "driver", "dynamic_debug", "firmware", "fs", "scsi")


def tmp_size(limits: Limits) -> int:
    """At most a quarter of the memory: temporary files use memory that no killed process would free."""
    return max(4096, min(limits.tmp, limits.memory // 4))


def describe_etc(hostname: str, uid: int = AGENT_UID) -> Mapping[str, str]:
    """The files of /etc that are made for the computer. `uid` is that of the agent inside."""
    return {
        "/etc/passwd": (
            "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
            f"agent:x:{uid}:{uid}:agent:{AGENT_HOME}:/bin/bash\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
        "/etc/group": f"root:x:0:\nagent:x:{uid}:\nnogroup:x:65534:\n",
        "/etc/hosts": f"127.0.0.1 localhost {hostname}\n::1 localhost ip6-localhost\n",
        "/etc/hostname": f"{hostname}\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
        # Without a name server the C library asks 127.0.0.1, where none listens.
        "/etc/resolv.conf": "",
    }
