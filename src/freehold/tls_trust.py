"""Which servers are believed when they show a certificate.

Reading the authorities of a system takes tens of milliseconds and a megabyte. Therefore the clients of a process share
them, and a client that speaks plain HTTP has none.
"""

import ssl
from functools import cache


@cache
def trust_system() -> ssl.SSLContext:
    """Those whose certificate an authority of this system has signed.

    One for the whole process, so nobody may change it. (httpx offers HTTP/1.1 in it, as all of our clients speak.)
    """
    return ssl.create_default_context()


def trust_for(url: str) -> ssl.SSLContext:
    """For a client of one server. At an address without TLS it believes nobody, should it be led to https after all."""
    return trust_system() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
