"""A keeper that starts `tests.support.pds_gateway` as its gateway. Everything else is as shipped."""

import functools
from typing import Any

from freehold.keeper import __main__
from freehold.keeper.boot import Boot


def main() -> None:
    make_gateway = Boot._make_gateway

    @functools.wraps(make_gateway)
    def make_pds_gateway(*arguments: Any) -> Any:
        program = make_gateway(*arguments)
        program.argv[program.argv.index("freehold.gateway")] = "tests.support.pds_gateway"
        return program

    Boot._make_gateway = make_pds_gateway  # type: ignore[method-assign, assignment]
    __main__.main()


if __name__ == "__main__":
    main()
