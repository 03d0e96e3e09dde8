import { describe, expect, it } from "vitest";
import type { Fleet, FleetComputer, FleetNode } from "../../client/api";
import { computersByNode, headlineOf, labelsOf, leftOutOf, movingMachines, othersOf, roomOf } from "./fleet.logic";

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
    machines: [],
    trouble: "",
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

  it("shows machines that come or go, and says why none can come", () => {
    const starting = { name: "small-1", kind: "small", state: "starting", trouble: "" } as const;
    const stuck = { name: "small-2", kind: "small", state: "stopping", trouble: "no answer" } as const;
    const joined = { name: "small-3", kind: "small", state: "joined", trouble: "" } as const;
    const texts = movingMachines(fleet({ machines: [starting, stuck, joined] })).map(({ text }) => text);
    expect(texts).toEqual(["Starting", "Cannot be ended: no answer"]);
    expect(headlineOf(fleet({ trouble: "no money" }))).toEqual({
      text: "No machine can be started: no money",
      tone: "alarm",
    });
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

  it("says that a node has computers when none or only some of them are listed", () => {
    expect(othersOf(0, node({ computers: 48 }))).toBe("48 more computers not shown.");
    expect(othersOf(47, node({ computers: 48 }))).toBe("1 more computer not shown.");
    expect(othersOf(48, node({ computers: 48 }))).toBeNull();
    expect(othersOf(0, node({ computers: 0 }))).toBe("No computers.");
  });
});
