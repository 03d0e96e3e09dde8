"""Sign-in with AT Protocol: who the owner is, proven by the owner's own server.

Heavy to import (HTTP, JOSE, DNS): import it where a sign-in begins, not at start-up.
"""
