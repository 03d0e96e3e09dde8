import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LiveSocket, waitBefore, type Wire } from "./socket";

class Other implements Wire {
  said: Record<string, unknown>[] = [];
  closed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  send(text: string) {
    this.said.push(JSON.parse(text) as Record<string, unknown>);
  }
  close() {
    this.closed = true;
  }
  tells(word: object) {
    this.onmessage?.({ data: JSON.stringify(word) });
  }
}

let wires: Other[];
let signedIn: () => Promise<boolean>;
let socket: LiveSocket;

beforeEach(() => {
  vi.useFakeTimers();
  wires = [];
  signedIn = async () => true;
  socket = new LiveSocket({
    open: () => {
      const wire = new Other();
      wires.push(wire);
      return wire;
    },
    signedIn: () => signedIn(),
    random: () => 0.5,
  });
});
afterEach(() => {
  socket.close();
  vi.useRealTimers();
});

test("a durable topic is resumed from the last number seen, and nothing comes twice", async () => {
  const seen: number[] = [];
  socket.start();
  socket.subscribe("timeline", { event: (_, seq) => seen.push(seq) }, { durable: true });
  wires[0]!.onopen?.();
  expect(wires[0]!.said).toEqual([{ type: "subscribe", topic: "timeline" }]);
  wires[0]!.tells({ type: "subscribed", topic: "timeline", seq: 4 });
  wires[0]!.tells({ type: "event", topic: "timeline", seq: 5, data: {} });
  wires[0]!.onclose?.({ code: 1006 });
  expect(socket.state).toBe("reconnecting");
  await vi.advanceTimersByTimeAsync(300);
  wires[1]!.onopen?.();
  expect(wires[1]!.said).toEqual([{ type: "subscribe", topic: "timeline", after: 5 }]);
  wires[1]!.tells({ type: "event", topic: "timeline", seq: 5, data: {} });
  wires[1]!.tells({ type: "event", topic: "timeline", seq: 6, data: {} });
  expect(seen).toEqual([5, 6]);
  expect(socket.state).toBe("live");
});

test("a topic that counts anew with each gateway is listed anew after a break, and only then", async () => {
  const resync = vi.fn();
  socket.start();
  socket.subscribe("files", { resync });
  wires[0]!.onopen?.();
  wires[0]!.tells({ type: "subscribed", topic: "files", seq: 9 });
  expect(resync).not.toHaveBeenCalled();
  wires[0]!.onclose?.({ code: 1006 });
  await vi.advanceTimersByTimeAsync(300);
  wires[1]!.onopen?.();
  expect(wires[1]!.said).toEqual([{ type: "subscribe", topic: "files" }]);
  wires[1]!.tells({ type: "subscribed", topic: "files", seq: 0 });
  expect(resync).toHaveBeenCalledOnce();
});

test("being signed out ends it, whether told or refused at the door", async () => {
  socket.start();
  wires[0]!.onopen?.();
  wires[0]!.onclose?.({ code: 4401 });
  expect(socket.state).toBe("signed-out");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(wires).toHaveLength(1);

  const other = new LiveSocket({ open: () => (wires.push(new Other()), wires.at(-1)!), signedIn: async () => false });
  other.start();
  wires.at(-1)!.onclose?.({ code: 1006 });
  await vi.advanceTimersByTimeAsync(0);
  expect(other.state).toBe("signed-out");
});

test("a gateway that is away is tried again and again, and at once when asked", async () => {
  signedIn = async () => {
    throw new Error("nobody answers");
  };
  socket.start();
  for (let attempt = 0; attempt < 5; attempt++) {
    wires.at(-1)!.onclose?.({ code: 1006 });
    await vi.advanceTimersByTimeAsync(10_000);
  }
  expect(wires).toHaveLength(6);
  expect(socket.state).toBe("reconnecting");
  wires.at(-1)!.onclose?.({ code: 1006 });
  await vi.advanceTimersByTimeAsync(0);
  socket.hurry();
  expect(wires).toHaveLength(7);
});

test("a connection that no longer answers is given up", async () => {
  socket.start();
  wires[0]!.onopen?.();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(wires[0]!.said.at(-1)).toEqual({ type: "ping" });
  wires[0]!.tells({ type: "pong" });
  await vi.advanceTimersByTimeAsync(20_000);
  expect(socket.state).toBe("live");
  await vi.advanceTimersByTimeAsync(10_001);
  expect(wires[0]!.closed).toBe(true);
  expect(socket.state).toBe("reconnecting");
});

test("two that listen to one topic share it, and the last to leave takes it down", () => {
  socket.start();
  wires[0]!.onopen?.();
  const first = socket.subscribe("egress", {});
  const second = socket.subscribe("egress", {});
  first();
  second();
  expect(wires[0]!.said.map((word) => word["type"])).toEqual(["subscribe", "unsubscribe"]);
});

test("the waits grow and stay bounded", () => {
  expect(waitBefore(0, 0.5)).toBe(250);
  expect(waitBefore(3, 0.5)).toBe(2000);
  expect(waitBefore(40, 0.5)).toBe(5000);
});
