// Publishes one event with a client whose types openapi-typescript made: ADDRESS TOKEN REFERENCE. Prints the answer.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [address, token, reference] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });
const event: components["schemas"]["CloudEvent"] = {
  specversion: "1.0", id: "typescript", source: "/generated", type: "test", data: { n: 1 },
};
const { data, error } = await client.POST("/api/v1/rps/{reference}/events", {
  params: { path: { reference } },
  headers: { "Content-Type": "application/cloudevents+json" },
  body: event,
});
if (error) throw new Error(error.detail);
const offset: number = data.offset;
console.log(JSON.stringify({ offset, id: data.id }));
