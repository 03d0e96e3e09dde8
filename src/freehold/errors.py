"""The one error that speaks to the owner."""

from typing import TypedDict


class ErrorBody(TypedDict):
    code: str
    message: str
    hint: str


class FreeholdError(Exception):
    """What happened, with the value, and a next step that exists.

    Anything that reaches an edge and is not one of these is a bug, and is shown only as an error id.
    """

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" + (f"\n  hint: {self.hint}" if self.hint else "")

    def body(self) -> ErrorBody:
        return {"code": self.code, "message": self.message, "hint": self.hint}
