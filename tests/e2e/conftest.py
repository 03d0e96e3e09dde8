"""Browsers among other tests on a small machine: what is to be seen may take a while, and a failure is told late."""

from playwright.async_api import expect as expect_later
from playwright.sync_api import expect

PATIENCE = 60_000

# One setting for all modules: it belongs to the process, and what one module sets another would lose.
expect.set_options(timeout=PATIENCE)
expect_later.set_options(timeout=PATIENCE)
