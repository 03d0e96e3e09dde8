import { describe, expect, it } from "vitest";
import type { PodAccess } from "../../client/api";
import { accessText, addressOf, folderText, nameOf, parentOf } from "./pods.logic";

describe("pods", () => {
  it("finds the folder above", () => {
    expect(parentOf("")).toBeNull();
    expect(parentOf("a/")).toBe("");
    expect(parentOf("a/b/")).toBe("a/");
  });

  it("names an entry by its last part", () => {
    expect(nameOf("a/b.txt")).toBe("b.txt");
    expect(nameOf("a/b/")).toBe("b/");
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
