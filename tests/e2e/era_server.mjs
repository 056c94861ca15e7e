// A server of both eras by the TypeScript SDK, v2: node era_server.mjs MODULES stdio|http
// Over HTTP its first line is its URL. Its tool `who` asks the user, in the way of the client's era.
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, way] = process.argv.slice(2);
const load = async (name) => await import(pathToFileURL(`${modules}/@modelcontextprotocol/server/dist/${name}`));
const { McpServer, createMcpHandler, fromJsonSchema, inputRequired } = await load("index.mjs");
const { serveStdio } = await load("stdio.mjs");

const question = {
  message: "who?", requestedSchema: { type: "object", properties: { said: { type: "string" } } },
};
const make = () => {
  const server = new McpServer({ name: "typescript", version: "1" }, { capabilities: { logging: {} } });
  const inputSchema = fromJsonSchema({ type: "object" });
  server.registerTool("echo", { inputSchema }, async (given) => ({
    content: [{ type: "text", text: JSON.stringify(given) }],
  }));
  server.registerTool("who", { inputSchema }, async (given, context) => {
    const answers = context.mcpReq.inputResponses;
    if (!answers?.who) return inputRequired({ inputRequests: { who: inputRequired.elicit(question) } });
    return { content: [{ type: "text", text: JSON.stringify(answers.who) }] };
  });
  server.registerResource("x", "era://x", {}, async (uri) => ({ contents: [{ uri: uri.href, text: "read" }] }));
  return server;
};

if (way === "stdio") serveStdio(make);
else {
  const handler = createMcpHandler(make);
  const http = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = ["GET", "HEAD"].includes(request.method) ? undefined : Buffer.concat(parts);
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const url = `http://${request.headers.host}${request.url}`;
    const init = { method: request.method, headers: request.headers, body, signal: gone.signal };
    const answer = await handler.fetch(new Request(url, init));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    try {
      for await (const part of answer.body ?? []) response.write(part);
    } catch { /* the client is gone */ }
    response.end();
  });
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}
