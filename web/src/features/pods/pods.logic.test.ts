import { describe, expect, it } from "vitest";
import type { PodAccess } from "../../client/api";
import { accessText, addressOf, factsOf, folderText, isText, mergeEntries, nameOf, trailOf } from "./pods.logic";

describe("pods", () => {
  it("knows the folders on the way", () => {
    expect(trailOf("")).toEqual([]);
    expect(trailOf("a/")).toEqual(["a/"]);
    expect(trailOf("a/b/")).toEqual(["a/", "a/b/"]);
  });

  it("tells what is known of a document, and adds pages without repetition", () => {
    const one = { path: "a", media: "text/plain", etag: null, size: 2048, modified: null };
    expect(factsOf(one)).toBe("text/plain · 2.0 kB");
    expect(factsOf({ ...one, media: null, size: null })).toBe("");
    expect(mergeEntries([one], [one, { ...one, path: "b" }]).map((entry) => entry.path)).toEqual(["a", "b"]);
  });

  it("names an entry by its last part", () => {
    expect(nameOf("a/b.txt")).toBe("b.txt");
    expect(nameOf("a/b/")).toBe("b/");
  });

  it("reads what is text and not too long", () => {
    const one = { path: "a", media: "text/plain", etag: null, size: 2048, modified: null };
    expect(isText(one)).toBe(true);
    expect(isText({ ...one, media: "application/ld+json" })).toBe(true);
    expect(isText({ ...one, media: "image/svg+xml" })).toBe(false);
    expect(isText({ ...one, media: null })).toBe(false);
    expect(isText({ ...one, size: 2_000_000 })).toBe(false);
  });

  it("encodes each part of an address", () => {
    expect(addressOf("a b/ü?.txt")).toBe("/v1/slots/pods/data/a%20b/%C3%BC%3F.txt");
  });

  it("says who did what", () => {
    const access = { number: 1, at: "", who: "session:s", agent: "claude", act: "read", path: "a.txt" } as PodAccess;
    expect(accessText(access)).toBe("claude read a.txt");
    expect(accessText({ ...access, act: "refused", path: "" })).toBe("claude was refused /");
    expect(accessText({ ...access, agent: null, who: "token:backup", act: "list" })).toBe("token backup listed a.txt");
  });

  it("calls the root everything", () => {
    expect(folderText("")).toBe("everything");
    expect(folderText("notes/")).toBe("notes/");
  });
});
