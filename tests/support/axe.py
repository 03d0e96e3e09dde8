"""axe-core, which looks for barriers in a page."""

from tests.support.freehold import ROOT

AXE = (ROOT / "web/node_modules/axe-core/axe.min.js").read_text()
LOOK = """async (only) => {
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const rules = axe._audit.rules.filter((rule) => rule.enabled
    && !rule.tags.some((tag) => axe._audit.tagExclude.includes(tag))
    && (only !== 'colours' || rule.tags.includes('cat.color')));
  const runOnly = {type: 'rule', values: rules.map((rule) => rule.id)};
  const found = await axe.run(document, {runOnly, resultTypes: ['violations'], iframes: false});
  return found.violations
    .map((one) => [one.id, one.nodes.map((node) => [node.target.join(' '), node.failureSummary])]);
}"""
"""What any rule of axe finds, however light; with 'colours' only by the rules on colours, all that another theme can change.

It waits for a frame: a terminal uses new colours from its next frame on.
"""
