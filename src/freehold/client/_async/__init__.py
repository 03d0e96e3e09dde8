"""Written once, with `async`; `_sync/` is made from it by `python -m tools.generate`."""
