/** A domain in miniature on a real socket: enough of herald.v1 for the client's tests, and faults on demand. */

import { createHash } from "node:crypto";
import { createServer } from "node:http";

const WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export class Domain {
  constructor() {
    this.logs = new Map(); // rp -> {epoch, events}
    this.hops = []; // that connections state, in order
    this.alternatives = undefined; // that the answer to subscribe names
    this.answersAfterMs = 0; // to a measurement
    this.tokens = []; // of every connection, in order
    this.connections = new Set();
    this.refusing = false; // every token
    this.without = new Set(); // rendezvous points that it does not serve
    this.deliveredAt = new Map(); // durable subscription -> URL of the domain that delivers it, if that is another
    this.attached = new Map(); // durable subscription -> what ends its reading
    this.begun = [];
    this.acknowledged = []; // cursors
    this.answering = true; // false: publishes are stored and not answered
    this.port = 0;
  }

  async start() {
    const server = createServer(async (request, response) => {
      if (request.url === "/livez") await new Promise((resolve) => setTimeout(resolve, this.answersAfterMs));
      response.writeHead(this.refusing ? 401 : 200, { "Content-Type": "application/problem+json" });
      response.end(JSON.stringify({ type: "urn:herald:problem:unauthenticated", detail: "The signature is wrong." }));
    });
    this.server = server;
    server.on("upgrade", (request, socket) => this.#accept(request, socket));
    await new Promise((resolve) => server.listen(this.port, "127.0.0.1", () => resolve(null)));
    this.port = /** @type {import("node:net").AddressInfo} */ (server.address()).port;
    return this;
  }

  /** Cut every connection, as a killed process would, and stop listening. */
  async stop() {
    for (const socket of this.connections) socket.destroy();
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve) ?? resolve(null));
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  log(rp) {
    if (!this.logs.has(rp)) this.logs.set(rp, { epoch: "e", events: [], readers: new Set() });
    return this.logs.get(rp);
  }

  append(rp, event) {
    const log = this.log(rp);
    const known = log.events.findIndex(({ source, id }) => source === event.source && id === event.id);
    if (known >= 0) return known + 1;
    log.events.push(event);
    for (const reader of log.readers) reader(log.events.length);
    return log.events.length;
  }

  /** Send a frame to everybody. */
  say(frame) {
    for (const socket of this.connections) socket.write(encode(0x1, Buffer.from(JSON.stringify(frame))));
  }

  /** Another domain delivers a durable subscription from now on. */
  deliversNoMore(subscription, url) {
    this.deliveredAt.set(subscription, url);
    this.attached.get(subscription)?.();
    this.attached.delete(subscription);
  }

  closeAll(code, reason) {
    for (const socket of this.connections) {
      const payload = Buffer.alloc(2 + reason.length);
      payload.writeUInt16BE(code);
      payload.write(reason, 2);
      socket.end(encode(0x8, payload));
    }
  }

  #accept(request, socket) {
    if (this.refusing) {
      socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    this.connections.add(socket);
    const { searchParams } = new URL(request.url, "http://x");
    this.tokens.push(searchParams.get("access_token"));
    this.hops.push(searchParams.get("hops"));
    const accept = createHash("sha1")
      .update(request.headers["sec-websocket-key"] + WEBSOCKET_GUID)
      .digest("base64");
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: herald.v1\r\n\r\n`,
    );
    const readers = new Map();
    let pending = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      for (let frame = decode(pending); frame; frame = decode(pending)) {
        pending = pending.subarray(frame.bytes);
        if (frame.opcode === 0x8) socket.end(encode(0x8, frame.payload));
        else {
          this.#frame(
            JSON.parse(new TextDecoder().decode(frame.payload)),
            (answer) => socket.write(encode(0x1, Buffer.from(JSON.stringify(answer)))),
            readers,
          );
        }
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.connections.delete(socket);
      for (const [rp, reader] of readers) this.log(rp).readers.delete(reader);
    });
  }

  #frame({ op, id, rp: named, subscription, from, cursor, event, events }, send, readers) {
    const rp = named ?? subscription; // a durable subscription reads the rendezvous point of its name
    const moved = () => {
      const to = [this.deliveredAt.get(subscription)];
      send({ op: "error", id, type: "urn:herald:problem:moved", detail: `It is delivered at ${to}`, to });
    };
    if (this.deliveredAt.has(subscription)) {
      moved();
    } else if (this.without.has(rp)) {
      send({ op: "error", id, type: "urn:herald:problem:not-found", detail: "There is none." });
    } else if (op === "subscribe" && from?.startsWith("time:")) {
      this.begun.push(from); // as a domain before starts by time refuses it
      send({ op: "error", id, type: "urn:herald:problem:invalid-cursor", detail: "This is not a cursor." });
    } else if (op === "subscribe") {
      const log = this.log(rp);
      const place = from ?? this.acknowledged.at(-1) ?? "earliest";
      const held = place === "now" ? log.events.length : place === "earliest" ? 0 : Number(place.split(":")[1]);
      send({ op: "ok", id, rp, epoch: log.epoch, offset: held, recovered: true, alternatives: this.alternatives });
      const tell = (offset) =>
        send({
          op: "event",
          rp,
          epoch: log.epoch,
          offset,
          cursor: `${log.epoch}:${offset}`,
          event: log.events[offset - 1],
        });
      for (let offset = held + 1; offset <= log.events.length; offset++) tell(offset);
      readers.set(rp, tell);
      log.readers.add(tell);
      if (subscription) this.attached.set(subscription, () => log.readers.delete(tell) && moved());
    } else if (op === "ack") {
      this.acknowledged.push(cursor);
      send({ op: "ok", id, subscription, cursor });
    } else if (op === "unsubscribe") {
      this.log(rp).readers.delete(readers.get(rp));
      send({ op: "ok", id });
    } else if (op === "publish") {
      const offsets = (events ?? [event]).map((one) => this.append(rp, one));
      if (this.answering) send({ op: "ok", id, epoch: this.log(rp).epoch, offset: offsets.at(-1) });
    } else {
      send({ op: "ok", id });
    }
  }
}

function encode(opcode, payload) {
  const long = payload.length > 125;
  const head = Buffer.alloc(long ? 4 : 2);
  head[0] = 0x80 | opcode;
  head[1] = long ? 126 : payload.length;
  if (long) head.writeUInt16BE(payload.length, 2);
  return Buffer.concat([head, payload]);
}

function decode(buffer) {
  if (buffer.length < 6) return null;
  let length = buffer[1] & 0x7f;
  let at = 2;
  if (length === 126) {
    length = buffer.readUInt16BE(2);
    at = 4;
  }
  if (buffer.length < at + 4 + length) return null;
  const mask = buffer.subarray(at, at + 4);
  const payload = Buffer.from(buffer.subarray(at + 4, at + 4 + length)).map((byte, index) => byte ^ mask[index % 4]);
  return { opcode: buffer[0] & 0x0f, payload, bytes: at + 4 + length };
}
