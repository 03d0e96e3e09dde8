import { expect, test } from "vitest";
import { browserOf } from "./signIns.logic";

test("a browser is named as its owner knows it", () => {
  expect(browserOf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/149.0 Safari/537.36")).toBe("Chrome on Linux");
  expect(browserOf("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Version/19.0 Safari/604.1")).toBe("Safari on iOS");
  expect(browserOf("curl/8")).toBe("curl/8");
  expect(browserOf("")).toBe("A browser");
});
