// A server of the protocol's own SDK that wants a sign-in, with the SDK's own authorization server beside it.
// Tokens end after the seconds of the first argument. Prints its port.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";

const root = process.env.SDK;
const sdk = `${root}/@modelcontextprotocol/sdk/dist/esm`;
const express = createRequire(`${root}/x.js`)("express");
const { McpServer } = await import(`${sdk}/server/mcp.js`);
const { StreamableHTTPServerTransport } = await import(`${sdk}/server/streamableHttp.js`);
const { mcpAuthRouter, getOAuthProtectedResourceMetadataUrl } = await import(`${sdk}/server/auth/router.js`);
const { requireBearerAuth } = await import(`${sdk}/server/auth/middleware/bearerAuth.js`);
const { DemoInMemoryAuthProvider } = await import(`${sdk}/examples/server/demoInMemoryOAuthProvider.js`);

class Provider extends DemoInMemoryAuthProvider {
  async exchangeAuthorizationCode(client, code) {
    const given = await super.exchangeAuthorizationCode(client, code);
    return { ...given, expires_in: Number(process.argv[2]), refresh_token: "renew-me" };
  }
  async exchangeRefreshToken(client, token) {
    if (token !== "renew-me") throw new Error("unknown");
    const access = `renewed-${Date.now()}`;
    this.tokens.set(access, { token: access, clientId: client.client_id, scopes: [], expiresAt: Date.now() + 3600000 });
    return { access_token: access, token_type: "bearer", expires_in: 3600 };
  }
}

const app = express();
const listening = app.listen(0, "127.0.0.1", () => {
  const port = listening.address().port;
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  const provider = new Provider();
  const resourceServerUrl = url;
  app.use(mcpAuthRouter({ provider, issuerUrl: new URL(`http://127.0.0.1:${port}`), resourceServerUrl }));
  const metadata = getOAuthProtectedResourceMetadataUrl(url);
  app.post("/mcp", requireBearerAuth({ verifier: provider, resourceMetadataUrl: metadata }), async (request, response) => {
    const server = new McpServer({ name: "signed", version: "1.0.0" });
    server.registerTool("token", { description: "Says with which token it was called." }, async (extra) => ({
      content: [{ type: "text", text: String(extra.authInfo?.token) }],
    }));
    server.registerTool("digest", { description: "Says the hash of that token." }, async (extra) => ({
      content: [{ type: "text", text: createHash("sha256").update(String(extra.authInfo?.token)).digest("hex") }],
    }));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => transport.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  });
  console.log(port);
});
