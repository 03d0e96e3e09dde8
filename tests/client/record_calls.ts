// Makes every call of the TypeScript client once, and prints its requests as JSON: [class, call, method, path]. The
// argument is a JSON object with the names of the calls of each class.
import { Freehold, Session } from "../../clients/typescript/src/index.ts";

const URL_OF_NOTHING = "http://localhost:1";
const REPLY = {
  id: "x",
  seq: 0,
  session: "x",
  turn: 1,
  events: [],
  records: [],
  cursor: null,
  next: null,
  run: { finished: "x" },
};

let making = "";
const requests: [string, string, string, string][] = [];

globalThis.fetch = async (address, init) => {
  const path = new URL(String(address)).pathname;
  requests.push([...(making.split(".") as [string, string]), init?.method ?? "GET", path]);
  // Only a stream of events can be given up.
  return new Response(init?.signal ? "id: 1\ndata: {}\n\n" : JSON.stringify(REPLY));
};
/** Told when a call waits for a topic of the socket, where its requests end. */
let noteSocket: () => void = () => undefined;
globalThis.WebSocket = class {
  constructor() {
    noteSocket();
  }
} as unknown as typeof WebSocket;

type Call = (...given: unknown[]) => unknown;

async function make(owner: object, name: string): Promise<void> {
  const call = Reflect.get(owner, name) as Call;
  const socket = new Promise<void>((resolve) => {
    noteSocket = resolve;
  });
  const made = call.apply(owner, Array(call.length).fill("x"));
  const first = made instanceof Object && Symbol.asyncIterator in made ? (made as AsyncGenerator).next() : made;
  await Promise.race([first, socket]);
}

const home = new Freehold(URL_OF_NOTHING, { token: "fh_x" });
const session = await home.sessions.get("x");
requests.length = 0;
const owners = new Map([home, session, ...Object.values(home)].map((one: object) => [one.constructor.name, one]));
if (!(owners.get("Session") instanceof Session)) throw new Error("there is no session");
for (const [kind, names] of Object.entries(JSON.parse(process.argv[2] ?? "{}") as Record<string, string[]>))
  for (const name of names) {
    making = `${kind}.${name}`;
    // What a call makes of this reply is not the question.
    await make(owners.get(kind) as object, name).catch(() => undefined);
  }
process.stdout.write(JSON.stringify(requests), () => process.exit());
