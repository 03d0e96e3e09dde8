"""A keeper that starts `tests.support.provider_gateway` as its gateway. Everything else is as shipped."""

from tests.support.pds_keeper import run_with_gateway

if __name__ == "__main__":
    run_with_gateway("tests.support.provider_gateway")
