import { LiveSocket, retryDelay, type Wire } from "freehold-client/socket";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

class FakeWire implements Wire {
  sent: Record<string, unknown>[] = [];
  closed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  send(text: string) {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  close() {
    this.closed = true;
  }
  sends(message: object) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

let wires: FakeWire[];
let signedIn: () => Promise<boolean>;
let socket: LiveSocket;

beforeEach(() => {
  vi.useFakeTimers();
  wires = [];
  signedIn = async () => true;
  socket = new LiveSocket({
    open: () => {
      const wire = new FakeWire();
      wires.push(wire);
      return wire;
    },
    isSignedIn: () => signedIn(),
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
  expect(wires[0]!.sent).toEqual([{ type: "subscribe", topic: "timeline" }]);
  wires[0]!.sends({ type: "subscribed", topic: "timeline", seq: 4 });
  wires[0]!.sends({ type: "event", topic: "timeline", seq: 5, data: {} });
  wires[0]!.onclose?.({ code: 1006 });
  expect(socket.state).toBe("reconnecting");
  await vi.advanceTimersByTimeAsync(300);
  wires[1]!.onopen?.();
  expect(wires[1]!.sent).toEqual([{ type: "subscribe", topic: "timeline", after: 5 }]);
  wires[1]!.sends({ type: "event", topic: "timeline", seq: 5, data: {} });
  wires[1]!.sends({ type: "event", topic: "timeline", seq: 6, data: {} });
  expect(seen).toEqual([5, 6]);
  expect(socket.state).toBe("live");
});

test("a topic that is not durable gets a resync after a break, and only then", async () => {
  const resync = vi.fn();
  socket.start();
  socket.subscribe("files", { resync });
  wires[0]!.onopen?.();
  wires[0]!.sends({ type: "subscribed", topic: "files", seq: 9 });
  expect(resync).not.toHaveBeenCalled();
  wires[0]!.onclose?.({ code: 1006 });
  await vi.advanceTimersByTimeAsync(300);
  wires[1]!.onopen?.();
  expect(wires[1]!.sent).toEqual([{ type: "subscribe", topic: "files" }]);
  wires[1]!.sends({ type: "subscribed", topic: "files", seq: 0 });
  expect(resync).toHaveBeenCalledOnce();
});

test("a sign-out ends the socket, whether it was closed or refused", async () => {
  socket.start();
  wires[0]!.onopen?.();
  wires[0]!.onclose?.({ code: 4401 });
  expect(socket.state).toBe("signed-out");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(wires).toHaveLength(1);

  const other = new LiveSocket({
    open: () => {
      wires.push(new FakeWire());
      return wires.at(-1)!;
    },
    isSignedIn: async () => false,
  });
  other.start();
  wires.at(-1)!.onclose?.({ code: 1006 });
  await vi.advanceTimersByTimeAsync(0);
  expect(other.state).toBe("signed-out");
});

test("a gateway that is down is tried again and again, and at once on request", async () => {
  signedIn = async () => {
    throw new Error("no answer");
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
  socket.retryNow();
  expect(wires).toHaveLength(7);
});

test("a connection that no longer answers is closed and opened again", async () => {
  socket.start();
  wires[0]!.onopen?.();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(wires[0]!.sent.at(-1)).toEqual({ type: "ping" });
  wires[0]!.sends({ type: "pong" });
  await vi.advanceTimersByTimeAsync(20_000);
  expect(socket.state).toBe("live");
  await vi.advanceTimersByTimeAsync(10_001);
  expect(wires[0]!.closed).toBe(true);
  expect(socket.state).toBe("reconnecting");
});

test("two listeners share one subscription, and the last one to leave ends it", () => {
  socket.start();
  wires[0]!.onopen?.();
  const first = socket.subscribe("egress", {});
  const second = socket.subscribe("egress", {});
  first();
  second();
  expect(wires[0]!.sent.map((message) => message["type"])).toEqual(["subscribe", "unsubscribe"]);
});

test("the delays grow and stay bounded", () => {
  expect(retryDelay(0, 0.5)).toBe(250);
  expect(retryDelay(3, 0.5)).toBe(2000);
  expect(retryDelay(40, 0.5)).toBe(5000);
});
