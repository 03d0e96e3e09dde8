import { describe, expect, it } from "vitest";
import type { Credential } from "../../client/api";
import { concernsCredentials, countUses, coverText } from "./credentials.logic";

const CREDENTIAL: Credential = {
  name: "code",
  host: "git.example.org",
  secret: "git",
  has_secret: true,
  header: "Authorization",
  paths: [],
  methods: [],
  writes: "ask",
  tools: ["git"],
  variables: [],
  ends_tls: false,
  uses: 0,
  recent: [],
};

describe("credentials", () => {
  it("says what may be sent", () => {
    expect(coverText(CREDENTIAL)).toBe("All methods. You are asked before a push or another change.");
    expect(coverText({ ...CREDENTIAL, methods: ["GET", "HEAD"], writes: "deny" })).toBe(
      "GET, HEAD. Changes are refused.",
    );
  });
  it("says how often it was used, or how its secret is stored", () => {
    expect(countUses(CREDENTIAL)).toBe("Not used since Freehold started.");
    expect(countUses({ ...CREDENTIAL, uses: 2 })).toBe("Used for 2 requests since Freehold started.");
    expect(countUses({ ...CREDENTIAL, has_secret: false })).toContain("freehold secret set git");
  });
  it("is fetched again after a use", () => {
    expect(concernsCredentials({ kind: "egress.credential_used" })).toBe(true);
    expect(concernsCredentials({ kind: "egress.connection_allowed" })).toBe(false);
    expect(concernsCredentials(null)).toBe(false);
  });
});
