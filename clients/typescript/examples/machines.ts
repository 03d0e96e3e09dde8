// Other Freeholds, and other machines of yours. examples/client/machines.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

const mesh = await home.mesh.status();
console.log(mesh.mode, mesh.name);
const invitation = await home.mesh.createCode(["work"], { name: "friend" });
console.log(invitation.code.split(":")[0], invitation.npub === mesh.npub ? "is yours" : "is not yours");
for (const neighbour of await home.mesh.neighbours()) console.log(neighbour.name, ...neighbour.grants);
const fleet = await home.fleet.get();
console.log("fleet", fleet.computer_count, fleet.waiting_count);
for (const node of fleet.nodes) console.log(node.name, node.state, node.free_cpus);
