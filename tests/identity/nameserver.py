"""A DNS server on loopback with the records of a test."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


@contextmanager
def nameserver(texts: Mapping[str, list[str]]) -> Iterator[tuple[str, int]]:
    """Answers TXT queries from `texts` (by name, without the last dot); all other names do not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def answer_all() -> None:
            while True:
                question, client = server.recvfrom(4096)
                if question == b"stop":
                    return
                query = dns.message.from_wire(question)
                response = dns.message.make_response(query)
                response.flags |= dns.flags.RA
                name = query.question[0].name
                found = texts.get(name.to_text(omit_final_dot=True))
                if found is None:
                    response.set_rcode(dns.rcode.NXDOMAIN)
                else:
                    response.answer.append(
                        dns.rrset.from_text_list(name, 60, "IN", "TXT", [f'"{text}"' for text in found])
                    )
                server.sendto(response.to_wire(), client)

        thread = threading.Thread(target=answer_all, name="nameserver")
        thread.start()
        address: tuple[str, int] = server.getsockname()
        try:
            yield address
        finally:
            server.sendto(b"stop", address)
            thread.join()
