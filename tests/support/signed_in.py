"""What a signed-in browser sends, for tests that send it without a browser."""

from dataclasses import dataclass

from freehold.identity.sign_ins import RECOVERY_COOKIE, SignIn, SignIns, control_center_url, recovery_url, split_secret


def browser_headers(port: int, key: str) -> dict[str, str]:
    """Of a page of the control center. Its name is a header here: not every resolver knows the names below localhost."""
    origin = control_center_url(port, None)
    return {"authorization": f"Sign-In {key}", "origin": origin, "host": origin.removeprefix("http://")}


@dataclass(frozen=True)
class RecoverySignIn:
    """A browser at the recovery page: its headers, and the start of the address of every page."""

    sign_in: SignIn
    headers: dict[str, str]
    base: str


def sign_in_to_recovery(sign_ins: SignIns, port: int) -> RecoverySignIn:
    sign_in, secret = sign_ins.create(sign_ins.owner, label="test", address="127.0.0.1", method="recovery")
    cookie, key = split_secret(secret)
    origin = recovery_url(port)
    headers = {"cookie": f"{RECOVERY_COOKIE}={cookie}", "origin": origin, "host": origin.removeprefix("http://")}
    return RecoverySignIn(sign_in, headers, f"/~{key}")
