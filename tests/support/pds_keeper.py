"""A keeper that starts `tests.support.pds_gateway` as its gateway. Everything else is as shipped."""

from freehold.home import Home
from freehold.keeper import __main__, started_process


def main() -> None:
    gateway_command = started_process.gateway_command

    def pds_gateway_command(home: Home) -> list[str]:
        return [word.replace("freehold.gateway", "tests.support.pds_gateway") for word in gateway_command(home)]

    started_process.gateway_command = pds_gateway_command  # before the keeper's modules take it
    __main__.main()


if __name__ == "__main__":
    main()
