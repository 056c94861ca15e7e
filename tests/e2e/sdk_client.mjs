// The TypeScript SDK's client, of the 2025 era, driven by the tests: node sdk_client.mjs MODULES stdio|http JSON
// It prints what it saw as one JSON object.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, way, text] = process.argv.slice(2);
const settings = JSON.parse(text);
const sdk = createRequire(pathToFileURL(`${modules}/x.js`));
const load = async (name) => await import(pathToFileURL(sdk.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const types = await load("types.js");

const client = new Client(
  { name: "typescript", version: "1" },
  { capabilities: { elicitation: {}, roots: { listChanged: true }, sampling: {} } },
);
client.setRequestHandler(types.ElicitRequestSchema, async (request) => ({
  action: "accept", content: { said: request.params.message },
}));
client.setRequestHandler(types.ListRootsRequestSchema, async () => ({ roots: [{ uri: "file:///typescript" }] }));
const changed = new Promise((resolve) =>
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => resolve(true)));
const transport = way === "stdio"
  ? new StdioClientTransport(settings)
  : new StreamableHTTPClientTransport(new URL(settings.url), { requestInit: { headers: settings.headers } });
await client.connect(transport);
const seen = {};
seen.server = client.getServerVersion().name;
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.echo = (await client.callTool({ name: "old_echo", arguments: { x: 1 } })).structuredContent;
seen.steps = [];
// The SDK drops progress that it reads together with the answer, so the server answers only once all steps were seen.
await client.callTool({ name: "old_progress", arguments: { until: `${way} saw all` } }, undefined, {
  onprogress: ({ progress }) => {
    seen.steps.push(progress);
    if (progress === 3) client.callTool({ name: "old_release", arguments: { key: `${way} saw all` } });
  },
});
const asked = { message: "who?", requestedSchema: { type: "object", properties: { said: { type: "string" } } } };
for (const server of ["old", "new"]) {
  const answer = await client.callTool({ name: `${server}_ask`, arguments: { method: "elicitation/create", params: asked } });
  seen[`${server}_asked`] = JSON.parse(answer.content[0].text).result;
}
seen.resource = (await client.readResource({ uri: "multi-mcp://old/era://x" })).contents[0].text;
seen.prompt = (await client.getPrompt({ name: "new_greet", arguments: { who: "you" } })).messages[0].content.text;
seen.completion = (await client.complete({
  ref: { type: "ref/prompt", name: "old_greet" }, argument: { name: "who", value: "y" },
})).completion.values;
const held = new AbortController();
const giving_up = client.callTool({ name: "old_hold", arguments: {} }, undefined, { signal: held.signal });
setTimeout(() => held.abort("enough"), 200);
seen.cancelled = await giving_up.then(() => false, () => true);
await client.callTool({ name: "old_grow", arguments: {} });
seen.changed = await changed;
console.log(JSON.stringify(seen));
await client.close();
