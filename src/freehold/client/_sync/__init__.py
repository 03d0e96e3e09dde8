"""Made from `_async/` by `python -m tools.generate`: change it there."""
