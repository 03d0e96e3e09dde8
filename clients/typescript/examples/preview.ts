// The servers that run inside, each at an address for your browser. examples/client/preview.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

for (const port of await home.preview.ports()) {
  const opened = await home.preview.open(port.port, { path: "/" });
  console.log(port.port, port.process, opened.address.startsWith(opened.origin) ? "is yours to open" : "");
}
for (const site of await home.preview.sites())
  console.log(site.name, site.running ? "runs" : "starts when it is opened");
