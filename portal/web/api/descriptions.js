/**
 * An OpenAPI or AsyncAPI document as one model, which view.js draws; pure.
 *
 * @typedef {{name: string, place: string, required: boolean, about: string, schema: any}} Parameter
 * @typedef {{name: string, value: unknown}} Example
 * @typedef {{type: string, schema: any, examples: Example[]}} Body
 * @typedef {{title: string, about: string, parameters?: Parameter[], bodies?: Body[]}} Part
 * @typedef {{id: string, kind: string, address: string, title: string, about: string, parts: Part[], command: string}} Entry
 * @typedef {{id: string, title: string, about: string, entries: Entry[]}} Group
 * @typedef {{title: string, version: string, about: string, groups: Group[]}} Description
 */

import { resolved } from "./schemas.js";

const METHODS = ["get", "post", "put", "patch", "delete"];

/** @returns {Description} */
export function describe(document, origin) {
  const { title, version, description = "" } = document.info;
  const groups = document.openapi ? openapiGroups(document, origin) : asyncapiGroups(document);
  return { title, version, about: description, groups };
}

// ---- OpenAPI ----

function openapiGroups(document, origin) {
  /** @type {Map<string, Group>} */
  const groups = new Map();
  for (const { name, description = "", "x-displayName": title = name } of document.tags ?? []) {
    groups.set(name, { id: `of-${name}`, title, about: description, entries: [] });
  }
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of METHODS.filter((name) => item[name])) {
      const operation = item[method];
      const tag = operation.tags?.[0] ?? "other";
      if (!groups.has(tag)) groups.set(tag, { id: `of-${tag}`, title: tag, about: "", entries: [] });
      groups.get(tag)?.entries.push(openapiEntry(document, origin, path, method, operation));
    }
  }
  return [...groups.values()].filter(({ entries }) => entries.length);
}

/** @returns {Entry} */
function openapiEntry(document, origin, path, method, operation) {
  const parameters = (operation.parameters ?? []).map((given) => {
    const { name, in: place, required = false, description = "", schema } = resolved(given, document);
    return { name, place, required, about: description, schema };
  });
  /** @type {Part[]} */
  const parts = parameters.length ? [{ title: "Parameters", about: "", parameters }] : [];
  const request = operation.requestBody && resolved(operation.requestBody, document);
  if (request) parts.push({ title: "Request body", about: request.description ?? "", bodies: bodies(request.content) });
  for (const [status, given] of Object.entries(operation.responses)) {
    const answer = resolved(given, document);
    const title = status === "default" ? "Any refusal" : `Answer ${status}`;
    parts.push({ title, about: answer.description ?? "", bodies: bodies(answer.content) });
  }
  return {
    id: operation.operationId,
    kind: method,
    address: path,
    title: operation.summary ?? "",
    about: operation.description ?? "",
    parts,
    command: curl(origin, path, method, parameters, request, document),
  };
}

/** @returns {Body[]} */
function bodies(content = {}) {
  return Object.entries(content).map(([type, { schema = {}, example, examples = {} }]) => {
    const named = Object.entries(examples).map(([name, { summary = name, value }]) => ({ name: summary, value }));
    return { type, schema, examples: example === undefined ? named : [{ name: "", value: example }, ...named] };
  });
}

function curl(origin, path, method, parameters, request, document) {
  const filled = parameters
    .filter(({ place }) => place === "path")
    .reduce((at, { name, schema }) => {
      const example = resolved(schema, document).examples?.[0];
      return at.replace(`{${name}}`, example === undefined ? name.toUpperCase() : encodeURIComponent(example));
    }, path);
  const lines = [`curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}'${origin}${filled}'`];
  lines.push(`-H "Authorization: Bearer $HERALD_TOKEN"`);
  const [first] = bodies(request?.content);
  if (first) {
    const value = first.examples[0]?.value ?? {};
    const text = typeof value === "string" ? value : JSON.stringify(value);
    lines.push(`-H 'Content-Type: ${first.type}'`, `-d '${text.replaceAll("'", "'\\''")}'`);
  }
  return lines.join(" \\\n  ");
}

// ---- AsyncAPI ----

function asyncapiGroups(document) {
  const groups = Object.entries(document.channels).map(([name, channel]) => ({
    id: `of-${name}`,
    title: channel.title ?? name,
    about: [channel.address ? `\`${channel.address}\`.` : "", channel.description ?? ""].join(" ").trim(),
    entries: /** @type {Entry[]} */ ([]),
  }));
  for (const [name, operation] of Object.entries(document.operations)) {
    const group = groups.find(({ id }) => operation.channel.$ref === `#/channels/${id.slice(3)}`);
    group?.entries.push(asyncapiEntry(document, name, operation));
  }
  return groups.filter(({ entries }) => entries.length);
}

/** @returns {Entry} */
function asyncapiEntry(document, name, operation) {
  const channel = resolved(operation.channel, document);
  const asked = operation.messages.map((message) => messagePart(document, message, ""));
  const answers = (operation.reply?.messages ?? []).map((message) => messagePart(document, message, "Answer: "));
  return {
    id: name,
    kind: operation.action === "receive" ? "send" : "receive", // stated from the domain's side, shown from the client's
    address: channel.address ?? "",
    title: operation.title ?? name,
    about: operation.description ?? "",
    parts: [...asked, ...answers],
    command: "",
  };
}

/** @returns {Part} */
function messagePart(document, reference, before) {
  const message = resolved(reference, document);
  const name = reference.$ref.slice(reference.$ref.lastIndexOf("/") + 1);
  const examples = (message.examples ?? []).map(({ payload, name: title = "" }) => ({ name: title, value: payload }));
  const headers = resolved(message.headers, document).properties ?? {};
  const required = resolved(message.headers, document).required ?? [];
  const parameters = Object.entries(headers).map(([header, schema]) => ({
    name: header,
    place: "header",
    required: required.includes(header),
    about: schema.description ?? "",
    schema,
  }));
  return {
    title: `${before}${message.title ?? name}`,
    about: message.description ?? "",
    ...(parameters.length ? { parameters } : {}),
    bodies: [{ type: message.contentType ?? document.defaultContentType, schema: message.payload, examples }],
  };
}
