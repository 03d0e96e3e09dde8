import { expect, test } from "vitest";
import { buttonLabel, otherOrigin, returnPath, tokenFromFragment } from "./signIn.logic";

test("a token is taken from the fragment only when it looks like a token", () => {
  expect(tokenFromFragment("#abcDEF0123456789_-abcd")).toBe("abcDEF0123456789_-abcd");
  expect(tokenFromFragment("")).toBeNull();
  expect(tokenFromFragment("#short")).toBeNull();
  expect(tokenFromFragment("#<img src=x onerror=alert(1)>")).toBeNull();
});

test("the button names the owner when the handle is known", () => {
  expect(
    buttonLabel({ atproto: { handle: "alice.test", origin: "http://freehold.localhost:3000" }, link: false }),
  ).toBe("Sign in as @alice.test");
  expect(buttonLabel({ atproto: { handle: null, origin: "http://freehold.localhost:3000" }, link: false })).toBe(
    "Sign in with Bluesky",
  );
});

test("a sign-in starts on the origin where its answer returns", () => {
  const offer = { atproto: { handle: null, origin: "http://freehold.localhost:3000" }, link: false };
  expect(otherOrigin(offer, "http://localhost:3000", "/")).toBe("http://freehold.localhost:3000/sign-in");
  expect(otherOrigin(offer, "http://localhost:3000", "/device#BCDF-GHJK")).toBe(
    "http://freehold.localhost:3000/device#BCDF-GHJK",
  );
  expect(otherOrigin(offer, "http://freehold.localhost:3000", "/")).toBeNull();
  expect(otherOrigin({ atproto: null, link: true }, "http://localhost:3000", "/")).toBeNull();
});

test("the return path is a page of ours and carries nothing but a program's code", () => {
  expect(returnPath({ pathname: "/device", hash: "#BCDF-GHJK" })).toBe("/device#BCDF-GHJK");
  expect(returnPath({ pathname: "/files", hash: "" })).toBe("/files");
  expect(returnPath({ pathname: "/device", hash: "#abcDEF0123456789_-abcd" })).toBe("/device");
  for (const pathname of ["/", "/sign-in", "//example.org", "/\\example.org", "/a/../b"]) {
    expect(returnPath({ pathname, hash: "" })).toBe("/");
  }
});
