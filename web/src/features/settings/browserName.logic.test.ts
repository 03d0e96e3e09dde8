import { expect, test } from "vitest";
import { browserName } from "./browserName.logic";

test("a browser has a readable name", () => {
  expect(
    browserName("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/149.0 Safari/537.36"),
  ).toBe("Chrome on Linux");
  expect(
    browserName("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Version/19.0 Safari/604.1"),
  ).toBe("Safari on iOS");
  expect(browserName("curl/8")).toBe("curl/8");
  expect(browserName("")).toBe("Unknown browser");
});
