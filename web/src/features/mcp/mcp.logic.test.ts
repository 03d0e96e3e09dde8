import { expect, test } from "vitest";
import type { McpServer, McpTool } from "../../client/api";
import { concernsMcp, offerText, readArguments, stateOf } from "./mcp.logic";

const TOOL: McpTool = { name: "a", description: "", parameters: "{}", digest: "", allowed: true, changed: false };
const SERVER: McpServer = {
  name: "n",
  kind: "inside",
  place: "n",
  on: true,
  enabled: true,
  asks: true,
  signed_in: null,
  tools: [TOOL],
};

test("a tool that its server has changed is neither allowed nor new", () => {
  expect(stateOf(TOOL)).toBe("allowed");
  expect(stateOf({ ...TOOL, allowed: false })).toBe("not allowed");
  expect(stateOf({ ...TOOL, allowed: false, changed: true })).toBe("changed");
});

test("what agents are offered of a server is told", () => {
  expect(offerText(SERVER)).toBe("Agents are offered 1 of 1 tool. You are asked before each call.");
  expect(offerText({ ...SERVER, asks: false })).toContain("not asked");
  expect(offerText({ ...SERVER, on: false })).toContain("Switched off");
  expect(offerText({ ...SERVER, tools: [] })).toContain("not seen");
  expect(offerText({ ...SERVER, tools: [{ ...TOOL, allowed: false }] })).toContain("none of its 1 tool");
});

test("arguments are a JSON object, or nothing", () => {
  expect(readArguments("")).toEqual({});
  expect(readArguments('{"a": 1}')).toEqual({ a: 1 });
  for (const text of ["[1]", "1", "null", "{"]) expect(readArguments(text)).toBeNull();
});

test("only events of servers concern the page", () => {
  expect(concernsMcp({ kind: "mcp.tool_changed" })).toBe(true);
  expect(concernsMcp({ kind: "skill.added" })).toBe(false);
});
