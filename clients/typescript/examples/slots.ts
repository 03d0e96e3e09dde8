// A work item, a memory, a document and an event. examples/client/slots.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

const item = await home.beads.create("Mend the roof", { priority: 1, labels: ["house"] });
await home.beads.claim(item.id);
const closed = await home.beads.close(item.id, "It no longer leaks");
console.log(closed.status, closed.priority, ...closed.labels);

const memory = await home.memory.store("The tiles are blue");
const found = await home.memory.list({ text: "tiles" });
console.log(...found.memories.map((one) => one.text));
await home.memory.forget(memory.id);

await home.pods.write("notes/the roof.txt", "12 m² of slate");
const document = await home.pods.read("notes/the roof.txt");
console.log(new TextDecoder().decode(document.content));
await home.pods.delete("notes/the roof.txt");

const page = await home.events.read(0, { newest: true, limit: 1 });
await home.events.publish("com.example.roof", { tiles: 12 });
for await (const event of home.events.stream(page.cursor, { types: ["com.example.*"] })) {
  console.log(event.type, event.data["tiles"]);
  break;
}
