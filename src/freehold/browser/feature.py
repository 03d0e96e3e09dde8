"""The browser as a feature."""

from freehold.features import Feature

FEATURE = Feature(
    name="browser",
    title="Browser for agents",
    section="freehold.browser.section:BrowserSection",
    checks="freehold.browser.checks",
    exceptions=("freehold.browser.exception:BROWSER",),
)
