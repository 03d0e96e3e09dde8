// An editor with the protocol's own TypeScript SDK. Starts the command of its arguments, takes the turns of TURNS in one
// session, allows each permission request once, and prints what it was told as JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const { client, ndJsonStream } = await import(`${process.env.SDK}/@agentclientprotocol/sdk/dist/v1/stable/acp.js`);
const [program, ...words] = process.argv.slice(2);
const agent = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
const asked = [];
const updates = [];
const editor = client()
  .onRequest("session/request_permission", ({ params }) => {
    asked.push(params);
    return { outcome: { outcome: "selected", optionId: params.options.find((one) => one.kind === "allow_once").optionId } };
  })
  .onNotification("session/update", ({ params }) => {
    updates.push(params.update);
  });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const told = await editor.connectWith(stream, async (context) => {
  const { agentInfo } = await context.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await context.request("session/new", { cwd: process.env.FOLDER, mcpServers: [] });
  const reasons = [];
  for (const text of JSON.parse(process.env.TURNS)) {
    const answer = await context.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    reasons.push(answer.stopReason);
  }
  return { agentInfo, sessionId, reasons };
});
console.log(JSON.stringify({ ...told, asked, updates }));
agent.stdin.end();
