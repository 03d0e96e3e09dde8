"""Escape attempts through sockets. The computer has only its own loopback; egress is tested elsewhere."""

from freehold.computer.escapes.escape import EscapeAttempt

NETWORK = (
    EscapeAttempt(
        "host-sockets",
        "connects to a socket of the host: a keeper's, docker's, an ssh agent's, D-Bus's",
        r"""
paths = [bait["socket"], "/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
         "/run/dbus/system_bus_socket", "/run/user/1000/bus", "/run/systemd/private", "/run/systemd/notify", "/tmp/.X11-unix/X0",
         "/run/user/1000/wayland-0", "/run/freehold/keeper.sock", "/dev/log", "/run/systemd/journal/socket", "/var/run/nscd/socket"]
paths += [os.environ[name] for name in ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST") if name in os.environ]
for path in paths:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        attempt(path, client.connect, path)
for root in ("/run", "/tmp", "/var", "/workspace", "/home/agent", "/dev"):
    for folder, _, names in os.walk(root):
        for name in names:
            if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode):
                escaped(f"a socket is at {folder}/{name}")
""",
    ),
    EscapeAttempt(
        "abstract-sockets",
        "connects to an abstract socket of the host",
        r"""
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
    with socket.socket(socket.AF_UNIX, kind) as client:
        attempt(f"abstract socket, kind {kind}", client.connect, "\0" + bait["abstract"])
for line in open("/proc/net/unix"):
    if bait["abstract"] in line:
        escaped(line)
""",
    ),
    EscapeAttempt(
        "host-loopback",
        "connects to a port on the host's loopback",
        r"""
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1"),
                        (socket.AF_INET6, "::ffff:127.0.0.1")):
    with socket.socket(family) as client:
        client.settimeout(5)
        attempt(address, client.connect, (address, bait["port"]))
""",
    ),
    EscapeAttempt(
        "network",
        "reaches a network other than its own loopback",
        r"""
for address in ("1.1.1.1", "169.254.169.254", "10.0.0.1", "172.17.0.1", "192.168.1.1", "100.64.0.1", "224.0.0.1", "255.255.255.255"):
    for kind, port in ((socket.SOCK_STREAM, 80), (socket.SOCK_DGRAM, 53)):
        with socket.socket(socket.AF_INET, kind) as client:
            client.settimeout(5)
            attempt(f"{address}:{port}", client.connect, (address, port))
for address in ("2606:4700:4700::1111", "fd00:ec2::254", "fe80::1"):
    with socket.socket(socket.AF_INET6) as client:
        client.settimeout(5)
        attempt(address, client.connect, (address, 80))
def resolve():
    try:
        socket.getaddrinfo("example.com", 80)
    except socket.gaierror as error:
        raise OSError(errno.EHOSTUNREACH, str(error)) from error
attempt("a name", resolve)
names = [name for _, name in socket.if_nameindex()]
if names != ["lo"]:
    escaped(f"interfaces {names}")
if len(open("/proc/net/route").readlines()) > 1:
    escaped("there is a route")
""",
    ),
    EscapeAttempt(
        "socket-families",
        "opens a socket of a family that leads to the host or deep into the kernel",
        r"""
names = {3: "ax25", 4: "ipx", 5: "appletalk", 9: "x25", 15: "key", 17: "packet", 21: "rds", 23: "irda", 24: "pppox", 29: "can",
         30: "tipc", 31: "bluetooth", 33: "rxrpc", 35: "phonet", 36: "ieee802154", 37: "caif", 38: "alg", 39: "nfc", 40: "vsock",
         41: "kcm", 42: "qipcrtr", 43: "smc", 44: "xdp", 45: "mctp"}
for family, name in names.items():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        attempt(name, socket.socket, family, kind, 0)
    attempt(f"{name} above 32 bits", syscall, 41 if X86 else 198, 0x100000000 | family, 1, 0)
for family in (socket.AF_INET, socket.AF_INET6):
    for protocol in (1, 6, 17, 58, 255):
        attempt(f"raw, protocol {protocol}", socket.socket, family, socket.SOCK_RAW, protocol)
""",
    ),
    EscapeAttempt(
        "netlink",
        "changes the kernel's configuration with netlink",
        r"""
for protocol in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 18, 19, 20, 21, 22):
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
        attempt(f"netlink protocol {protocol}", socket.socket, socket.AF_NETLINK, kind, protocol)
# Listing interfaces is allowed (Node and the C library need it). It must show loopback only and change nothing.
def ask(kind, flags, payload):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as route:
        route.settimeout(5)
        route.send(struct.pack("=IHHII", 16 + len(payload), kind, flags, 1, 0) + payload)
        answer = route.recv(65536)
        length, kind, _, _, _ = struct.unpack_from("=IHHII", answer)
        if kind == 2:
            code = -struct.unpack_from("=i", answer, 16)[0]
            if code:
                raise OSError(code, os.strerror(code))
attempt("a link down", ask, 16, 5, struct.pack("=BxHiII", 0, 0, 1, 0, 1))
attempt("a new link", ask, 16, 0x605, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + struct.pack("=HH8s", 12, 3, b"dummy9") )
attempt("a new address", ask, 20, 0x605, struct.pack("=BBBBi", 2, 8, 0, 0, 1) + struct.pack("=HH4s", 8, 2, bytes([10, 0, 0, 1])))
attempt("a new route", ask, 24, 0x605, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0))
""",
    ),
    EscapeAttempt(
        "host-memory",
        "attaches shared memory or queues of the host",
        r"""
libc.shmat.restype = ctypes.c_void_p
def attach():
    identifier = libc.shmget(bait["memory_key"], 0, 0)
    if identifier < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    print(ctypes.string_at(libc.shmat(identifier, None, 0), 32))
attempt("the host's shared memory", attach)
for name in ("shm", "msg", "sem"):
    if len(open(f"/proc/sysvipc/{name}").readlines()) > 1:
        escaped(f"/proc/sysvipc/{name} is not empty")
""",
    ),
    EscapeAttempt(
        "host-ports",
        "listens where sessions show their tokens to the host",
        r"""
for port in (3128, 3129, 3130):
    for address in ("127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::"):
        for option in (0, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as taken:
                if option:
                    taken.setsockopt(socket.SOL_SOCKET, option, 1)
                def listen():
                    taken.bind((address, port))
                    taken.listen()
                attempt(f"{address} {port}", listen)
""",
    ),
)
