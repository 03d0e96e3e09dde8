import { expect, test } from "vitest";
import { resourceUse } from "./storage.logic";

test("usage is shown with its limit, and unknown usage is left out", () => {
  const limits = { memory: 4e9, processes: 1024, disk: 2e10, inodes: 0 };
  expect(resourceUse({ memory: 1e9, processes: 2048, disk: null, inodes: 5 }, limits)).toEqual([
    { limit: "memory", title: "Memory (RAM)", used: "1.0 GB", allowed: "4.0 GB", share: 0.25 },
    { limit: "processes", title: "Processes", used: "2,048", allowed: "1,024", share: 1 },
  ]);
  expect(resourceUse(null, limits)).toEqual([]);
});
