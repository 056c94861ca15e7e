// The TypeScript SDK's client, v2, in one era: node era_client.mjs MODULES legacy|2026-07-28 stdio|http JSON [...CALLS]
// It answers questions, makes the calls and prints their outcomes as one JSON object.
import { pathToFileURL } from "node:url";

const [modules, mode, way, text, ...calls] = process.argv.slice(2);
const settings = JSON.parse(text);
const load = async (name) => await import(pathToFileURL(`${modules}/@modelcontextprotocol/client/dist/${name}`));
const { Client, StreamableHTTPClientTransport } = await load("index.mjs");
const { StdioClientTransport } = await load("stdio.mjs");

const client = new Client({ name: "typescript", version: "2" }, {
  capabilities: { elicitation: {}, sampling: {}, roots: {} },
  versionNegotiation: { mode: mode === "legacy" ? "legacy" : { pin: mode } },
});
client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { said: "me" } }));
client.setRequestHandler("sampling/createMessage", async () => ({
  role: "assistant", content: { type: "text", text: "sampled" }, model: "none",
}));
client.setRequestHandler("roots/list", async () => ({ roots: [{ uri: "file:///here" }] }));
await client.connect(way === "stdio"
  ? new StdioClientTransport(settings)
  : new StreamableHTTPClientTransport(new URL(settings.url), { requestInit: { headers: settings.headers } }));
const seen = { tools: (await client.listTools()).tools.map((tool) => tool.name).sort() };
for (const call of calls) {
  try {
    const answer = await client.callTool({ name: call, arguments: { message: "?", prompt: "?" } });
    seen[call] = answer.content.map((part) => part.text);
  } catch (error) {
    seen[call] = String(error.code);
  }
}
console.log(JSON.stringify(seen));
await client.close();
