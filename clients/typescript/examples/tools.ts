// The tools of MCP servers: read, allowed, called. examples/client/tools.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = "", text = "hello"] = process.argv.slice(2);
const home = new Freehold(url, { token });

for (const listed of await home.mcp.list()) {
  const server = await home.mcp.tryServer(listed.name);
  for (const tool of server.tools) {
    console.log(server.name, tool.name, tool.description);
    await home.mcp.decide(server.name, tool.name, tool.digest);
    console.log((await home.mcp.call(server.name, tool.name, { text })).text);
    await home.mcp.decide(server.name, tool.name, null);
  }
}
