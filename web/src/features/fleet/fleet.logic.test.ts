import { describe, expect, it } from "vitest";
import type { Fleet, FleetComputer, FleetNode } from "../../client/api";
import { computersByNode, headlineOf, labelsOf, leftOutOf, roomOf } from "./fleet.logic";

function node(changes: Partial<FleetNode> = {}): FleetNode {
  return {
    name: "shed",
    address: "10.0.0.6",
    state: "ready",
    trouble: "",
    labels: { region: "home", arch: "x86_64" },
    computers: 1,
    cpus: 8,
    free_cpus: 5.75,
    memory: 8_000_000_000,
    free_memory: 6_000_000_000,
    gpus: 0,
    free_gpus: 0,
    ...changes,
  };
}

function computer(name: string, on: string): FleetComputer {
  return { id: name, name, who: "owner", session: null, node: on, state: "running", cpus: 1, memory: 1, gpus: 0 };
}

function fleet(changes: Partial<Fleet> = {}): Fleet {
  return {
    enabled: true,
    ready: true,
    nodes: [node()],
    computers: [],
    waiting: [],
    computer_count: 0,
    waiting_count: 0,
    ...changes,
  };
}

describe("a fleet", () => {
  it("says in one sentence how it is, the worst first", () => {
    expect(headlineOf(fleet()).tone).toBe("leaf");
    expect(headlineOf(fleet({ waiting_count: 3 })).text).toBe("3 computers wait for room.");
    expect(headlineOf(fleet({ waiting_count: 1, nodes: [node({ state: "away" })] })).text).toBe("1 node is away.");
    expect(headlineOf(fleet({ ready: false })).text).toContain("Ray is starting");
  });

  it("shows how much of a node is in use, and GPUs only where there are some", () => {
    expect(roomOf(node()).map((meter) => meter.text)).toEqual(["2.25 of 8", "2.0 GB of 8.0 GB"]);
    expect(roomOf(node({ gpus: 2, free_gpus: 1 })).at(-1)).toMatchObject({ label: "GPUs", used: 1, total: 2 });
    expect(roomOf(node({ state: "away" }))).toEqual([]);
  });

  it("lists computers below their node", () => {
    const found = computersByNode([computer("a", "shed"), computer("b", "attic"), computer("c", "shed")]);
    expect(found.get("shed")?.map((one) => one.name)).toEqual(["a", "c"]);
    expect(found.get("cellar")).toBeUndefined();
  });

  it("names labels in one order, and says what is left out", () => {
    expect(labelsOf(node())).toBe("arch=x86_64, region=home");
    expect(leftOutOf(500, 500)).toBeNull();
    expect(leftOutOf(500, 501)).toBe("1 more computer not shown.");
  });
});
