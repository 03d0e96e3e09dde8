"""Sign-in with AT Protocol (OAuth): the owner proves their DID at their own server.

Slow to import (HTTP, JOSE, DNS): import it when a sign-in starts, not at start-up.
"""
