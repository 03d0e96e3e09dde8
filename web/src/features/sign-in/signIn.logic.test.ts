import { expect, test } from "vitest";
import { buttonLabel, tokenFromFragment } from "./signIn.logic";

test("a token is taken from the fragment only when it has a token's shape", () => {
  expect(tokenFromFragment("#abcDEF0123456789_-abcd")).toBe("abcDEF0123456789_-abcd");
  expect(tokenFromFragment("")).toBeNull();
  expect(tokenFromFragment("#short")).toBeNull();
  expect(tokenFromFragment("#<img src=x onerror=alert(1)>")).toBeNull();
});

test("the button names the owner when the handle is known", () => {
  expect(buttonLabel({ atproto: { handle: "alice.test" }, link: false })).toBe("Sign in as @alice.test");
  expect(buttonLabel({ atproto: { handle: null }, link: false })).toBe("Sign in with Bluesky");
});
