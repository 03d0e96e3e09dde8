// A client of the protocol's own SDK over streamable HTTP: lists the tools, does the calls of its argument, prints JSON.
const root = process.env.SDK;
const { Client } = await import(`${root}/@modelcontextprotocol/sdk/dist/esm/client/index.js`);
const { StreamableHTTPClientTransport } = await import(
  `${root}/@modelcontextprotocol/sdk/dist/esm/client/streamableHttp.js`
);

const [url, token, calls] = process.argv.slice(2);
const headers = { authorization: `Bearer ${token}` };
const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const listed = await client.listTools();
const answers = [];
for (const [name, given] of JSON.parse(calls)) {
  const answer = await client.callTool({ name, arguments: given });
  const pictures = answer.content.filter((part) => part.type === "image");
  answers.push({ text: answer.content[0].text, failed: answer.isError === true, pictures });
}
console.log(JSON.stringify({ tools: listed.tools.map((tool) => tool.name), answers }));
await client.close();
