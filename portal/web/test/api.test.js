/** A description of an API as the page for people shows it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { describe } from "../api/descriptions.js";
import { inner, members, resolved, restrictions, typeName } from "../api/schemas.js";

const OPENAPI = {
  openapi: "3.1.0",
  info: { title: "Herald", version: "1" },
  tags: [{ name: "rps", "x-displayName": "Rendezvous points", description: "All of them." }, { name: "empty" }],
  paths: {
    "/api/v1/rps/{reference}": {
      get: {
        operationId: "rps_get",
        summary: "Describe",
        tags: ["rps"],
        parameters: [
          { name: "reference", in: "path", required: true, schema: { type: "string", examples: ["/a/b/"] } },
          { name: "q", in: "query", schema: { type: "integer", minimum: 1, maximum: 5 } },
        ],
        responses: {
          200: {
            description: "It.",
            content: { "application/json": { schema: { $ref: "#/components/schemas/Rp" }, example: { id: "x" } } },
          },
          default: { $ref: "#/components/responses/Problem" },
        },
      },
      post: {
        operationId: "rps_publish",
        tags: ["other"],
        requestBody: { content: { "application/json": { example: { say: "it's" } } } },
        responses: { 204: { description: "Done." } },
      },
    },
  },
  components: {
    responses: { Problem: { description: "A problem." } },
    schemas: {
      Lease: { type: "object", required: ["granted_s"], properties: { granted_s: { type: "integer" } } },
      Rp: {
        allOf: [{ $ref: "#/components/schemas/Lease" }],
        properties: { id: { type: "string" }, again: { $ref: "#/components/schemas/Rp" } },
      },
    },
  },
};

test("operations are grouped by subject, in the order of the document", () => {
  const { groups } = describe(OPENAPI, "https://a.example");
  assert.deepEqual(
    groups.map(({ title, about, entries }) => [title, about, entries.map(({ id }) => id)]),
    [
      ["Rendezvous points", "All of them.", ["rps_get"]],
      ["other", "", ["rps_publish"]],
    ],
  );
});

test("an operation has its parameters, bodies and answers, and a command to copy", () => {
  const [{ entries: reading }, { entries: publishing }] = describe(OPENAPI, "https://a.example").groups;
  const [read] = reading;
  assert.deepEqual(
    read.parts.map(({ title, about }) => [title, about]),
    [
      ["Parameters", ""],
      ["Answer 200", "It."],
      ["Any refusal", "A problem."],
    ],
  );
  assert.deepEqual(read.parts[1].bodies?.[0].examples, [{ name: "", value: { id: "x" } }]);
  assert.equal(
    read.command,
    `curl 'https://a.example/api/v1/rps/%2Fa%2Fb%2F' \\\n  -H "Authorization: Bearer $HERALD_TOKEN"`,
  );
  assert.match(publishing[0].command, /^curl -X POST /);
  assert.ok(publishing[0].command.endsWith(`-d '{"say":"it'\\''s"}'`), "a quote ends nothing");
});

test("a schema is told in words", () => {
  assert.equal(typeName({ type: ["string", "null"] }, {}), "text or null");
  assert.equal(typeName({ type: "array", items: { $ref: "#/components/schemas/Lease" } }, OPENAPI), "list of Lease");
  assert.equal(
    typeName({ anyOf: [{ $ref: "#/components/schemas/Lease" }, { type: "null" }] }, OPENAPI),
    "Lease or null",
  );
  assert.equal(typeName({}, {}), "any JSON");
  assert.equal(typeName({ const: "ok" }, {}), '"ok"');
  assert.deepEqual(restrictions({ type: "integer", minimum: 1, maximum: 5, default: 2 }, {}), ["1 to 5", "default 2"]);
  assert.deepEqual(restrictions({ enum: ["a", null] }, {}), ['"a", null']);
  assert.deepEqual(restrictions({ minLength: 1, format: "uri" }, {}), ["at least 1 characters", "uri"]);
});

test("members include those of the parts, and a schema that contains itself ends", () => {
  const rp = { $ref: "#/components/schemas/Rp" };
  assert.deepEqual(Object.keys(members(rp, OPENAPI)), ["granted_s", "id", "again"]);
  assert.equal(members(rp, OPENAPI).granted_s.required, true);
  assert.equal(inner({ type: "array", items: rp }, OPENAPI), rp);
  assert.equal(inner({ type: "string" }, OPENAPI), null);
  const circle = { components: { schemas: { A: { $ref: "#/components/schemas/A" } } } };
  assert.equal(resolved({ $ref: "#/components/schemas/A" }, circle).$ref, "#/components/schemas/A");
  const nested = {
    components: { schemas: { A: { allOf: [{ $ref: "#/components/schemas/A" }], properties: { a: {} } } } },
  };
  assert.deepEqual(Object.keys(members({ $ref: "#/components/schemas/A" }, nested)), ["a"]);
  assert.deepEqual(resolved({ $ref: "#/nowhere/at/all" }, {}), {});
});

test("an AsyncAPI document is shown from the client's side, with answers", () => {
  const document = {
    asyncapi: "3.0.0",
    info: { title: "Herald", version: "1" },
    defaultContentType: "application/json",
    channels: { herald: { address: "/ws", title: "herald.v1", description: "Frames.", messages: {} } },
    operations: {
      publish: {
        action: "receive",
        channel: { $ref: "#/channels/herald" },
        title: "Publish",
        messages: [{ $ref: "#/components/messages/publish" }],
        reply: { messages: [{ $ref: "#/components/messages/ok" }] },
      },
      deliver: { action: "send", channel: { $ref: "#/channels/herald" }, messages: [] },
    },
    components: {
      messages: {
        publish: { payload: { type: "object" }, examples: [{ payload: { op: "publish" } }] },
        ok: { title: "ok", headers: { required: ["x"], properties: { x: { type: "string", description: "X." } } } },
      },
    },
  };
  const [{ title, about, entries }] = describe(document, "").groups;
  assert.deepEqual([title, about], ["herald.v1", "`/ws`. Frames."]);
  assert.deepEqual(
    entries.map(({ id, kind }) => [id, kind]),
    [
      ["publish", "send"],
      ["deliver", "receive"],
    ],
  );
  const [asked, answered] = entries[0].parts;
  assert.deepEqual(asked.bodies?.[0].examples, [{ name: "", value: { op: "publish" } }]);
  assert.equal(answered.title, "Answer: ok");
  assert.deepEqual(
    answered.parameters?.map(({ name, required }) => [name, required]),
    [["x", true]],
  );
});
