// Publishes, reads, and reads on from a cursor, with a client whose types openapi-typescript made: ADDRESS TOKEN REFERENCE.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [address, token, reference] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });
const event = (id: string): components["schemas"]["CloudEvent"] => ({
  specversion: "1.0", id, source: "/generated", type: "test", data: { n: 1 },
});
async function publish(id: string): Promise<components["schemas"]["Published"]> {
  const { data, error } = await client.POST("/api/v1/rps/{reference}/events", {
    params: { path: { reference } },
    headers: { "Content-Type": "application/cloudevents+json" },
    body: event(id),
  });
  if (error) throw new Error(error.detail);
  return data;
}
async function read(after: string): Promise<{ ids: string[]; cursor: string }> {
  const { data, error } = await client.GET("/api/v1/rps/{reference}/events", {
    params: { path: { reference }, query: { after } },
  });
  if (error) throw new Error(error.detail);
  return { ids: data.events.map(({ id }) => id), cursor: data.cursor };
}
const { offset, id } = await publish("typescript-1");
const first = await read("earliest");
await publish("typescript-2");
const resumed = await read(first.cursor);
const { error: refused } = await client.POST("/api/v1/rps", { body: { lease_s: 0, name: "a//b" } });
const type: components["schemas"]["Problem"]["type"] | undefined = refused?.type;
const faults = (refused?.errors ?? []).map(({ pointer }) => pointer).sort();
console.log(JSON.stringify({ offset, id, read: first.ids, resumed: resumed.ids, type, faults }));
