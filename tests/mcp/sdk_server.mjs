// Servers of the protocol's own SDK: over stdio, or over streamable HTTP with `http KEY`.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const root = process.env.SDK;
const { McpServer, ResourceTemplate } = await import(`${root}/@modelcontextprotocol/sdk/dist/esm/server/mcp.js`);
const { ListRootsResultSchema } = await import(`${root}/@modelcontextprotocol/sdk/dist/esm/types.js`);
const { z } = await import(`${root}/zod/index.js`);

function makeServer() {
  const server = new McpServer({ name: "notes", version: "1.0.0" });
  server.registerTool(
    "add",
    { description: "Adds two numbers.", inputSchema: { a: z.number(), b: z.number() } },
    async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
  );
  server.registerTool("whoami", { description: "Says where it runs." }, async () => ({
    content: [{ type: "text", text: JSON.stringify({ uid: process.getuid(), cwd: process.cwd() }) }],
  }));
  if (process.argv[2] === "http") {
    server.registerTool("ask", { description: "Asks the client for its folders." }, async ({ sendRequest }) => {
      const got = await sendRequest({ method: "roots/list" }, ListRootsResultSchema).catch((error) => error);
      return { content: [{ type: "text", text: `${got.code}` }] };
    });
  }
  server.registerResource(
    "diary",
    "notes://diary",
    { title: "The diary", description: "Of this week.", mimeType: "text/plain" },
    async (uri) => ({ contents: [{ uri: uri.href, text: "Monday: tea\u202e." }] }),
  );
  server.registerResource("day", new ResourceTemplate("notes://day/{day}", { list: undefined }), {}, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "image/png", blob: "AAAA" }],
  }));
  server.registerPrompt(
    "summarize",
    { description: "Asks for a summary.", argsSchema: { length: z.string() } },
    ({ length }) => ({ messages: [{ role: "user", content: { type: "text", text: `Summarize in ${length} words.` } }] }),
  );
  return server;
}

if (process.argv[2] === "http") {
  const { StreamableHTTPServerTransport } = await import(
    `${root}/@modelcontextprotocol/sdk/dist/esm/server/streamableHttp.js`
  );
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    if (process.argv[3] && request.headers.authorization !== `Bearer ${process.argv[3]}`) {
      response.writeHead(401).end();
      return;
    }
    if (request.url === "/moved") {
      response.writeHead(307, { location: "/mcp" }).end();
      return;
    }
    const known = sessions.get(request.headers["mcp-session-id"]);
    if (known !== undefined) {
      await known.handleRequest(request, response);
      return;
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await makeServer().connect(transport);
    await transport.handleRequest(request, response);
  });
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
} else {
  const { StdioServerTransport } = await import(`${root}/@modelcontextprotocol/sdk/dist/esm/server/stdio.js`);
  await makeServer().connect(new StdioServerTransport());
}
