"""axe-core, which looks for barriers in a page."""

from tests.support.freehold import ROOT

AXE = (ROOT / "web/node_modules/axe-core/axe.min.js").read_text()
LOOK = """() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))).then(() => axe.run(document, {resultTypes: ['violations'], iframes: false})).then((found) => found.violations
  .filter((one) => one.impact === 'serious' || one.impact === 'critical')
  .map((one) => [one.id, one.nodes.map((node) => [node.target.join(' '), node.failureSummary])]))"""
"""What is serious or critical. It waits for a frame: a terminal uses new colours from its next frame on."""
