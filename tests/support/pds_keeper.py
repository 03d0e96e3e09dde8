"""A keeper that starts `tests.support.pds_gateway` as its gateway. Everything else is as shipped."""

from freehold.home import Home
from freehold.keeper import __main__, started_process


def run_with_gateway(module: str) -> None:
    gateway_command = started_process.gateway_command

    def other_gateway_command(home: Home) -> list[str]:
        return [word.replace("freehold.gateway", module) for word in gateway_command(home)]

    started_process.gateway_command = other_gateway_command  # before the keeper's modules take it
    __main__.main()


if __name__ == "__main__":
    run_with_gateway("tests.support.pds_gateway")
