import { expect, test } from "vitest";
import type { MeshClient, SentWork } from "../../client/api";
import {
  accountText,
  clientLines,
  codeOfHash,
  GRANTS,
  grantsText,
  isOpen,
  ownAccountText,
  pairingLink,
  stateText,
  toggled,
} from "./neighbours.logic";

test("a client is described by what it tells and uses", () => {
  const client = {
    version: "1.2",
    image: "abc",
    contracts: { beads: 1, pods: 2 },
    capabilities: ["slots", "work"],
    load: 0.25,
    grants: ["beads", "work"],
    heard: "2026-06-01T07:00:00Z",
  } as unknown as MeshClient;
  const [first, ...others] = clientLines(client);
  expect(first).toMatch(/^Freehold 1\.2, load 0\.3, last heard /);
  expect(others).toEqual([
    "Image abc",
    "Works there: slots, work. Contracts: beads 1, pods 2",
    "Uses here: beads, work",
  ]);
  const bare = clientLines({ ...client, image: null, contracts: {}, capabilities: [], grants: [] });
  expect(bare.slice(1)).toEqual(["No image of its own", "Works there: nothing. Contracts: none", "Uses here: nothing"]);
});

const WORK: SentWork = {
  id: "a",
  neighbour: "laptop",
  title: "A poem",
  state: "working",
  error: null,
  created: "2026-01-01T00:00:00Z",
  finished: null,
  entry: null,
  folder: null,
};

test("an account that is not proven is never shown as if it were", () => {
  expect(accountText(null, "none")).toBe("No account");
  expect(accountText("did:web:a.example", "claimed")).toBe("did:web:a.example (not checked yet)");
  expect(accountText("did:web:a.example", "refuted")).toContain("not confirmed");
});

test("the own account is said to name the key only when it does", () => {
  const all = (["proven", "claimed", "refuted", "none"] as const).map(ownAccountText);
  expect(all.filter((text) => text === "Your account names this key.")).toHaveLength(1);
});

test("what may be used is told in words", () => {
  expect(grantsText([])).toBe("nothing");
  expect(grantsText(["beads", "work"])).toBe("beads, work");
  expect(new Set(GRANTS.map((grant) => grant.name)).size).toBe(GRANTS.length);
});

test("the state of work says what went wrong", () => {
  expect(stateText(WORK)).toBe("At work");
  expect(stateText({ ...WORK, state: "failed", error: "No budget" })).toBe("Failed. No budget");
  expect([isOpen(WORK), isOpen({ ...WORK, state: "lost" })]).toEqual([true, false]);
});

test("a choice is added and taken back", () => {
  expect(toggled(["a"], "b")).toEqual(["a", "b"]);
  expect(toggled(["a", "b"], "a")).toEqual(["b"]);
});

test("a link carries a code to another control center and nowhere else", () => {
  expect(pairingLink(" https://b.example/x?y ", "freehold-pair:abc")).toBe(
    "https://b.example/neighbours#freehold-pair:abc",
  );
  for (const wrong of ["", "b.example", "javascript:alert(1)", "file:///etc"])
    expect(pairingLink(wrong, "c")).toBeNull();
  expect(codeOfHash("#freehold-pair:abc")).toBe("freehold-pair:abc");
  expect(codeOfHash("#other")).toBe("");
});
