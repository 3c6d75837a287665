/**
 * Node: publish an event, and read a durable subscription, which continues where the program stopped.
 *
 *     node examples/node/follow.mjs RENDEZVOUS-POINT [SUBSCRIPTION-ID]
 *
 * Needs Node 22, or Node 20 with --experimental-websocket. Environment: HERALD_URL, HERALD_TOKEN.
 */

import { Client, Gap } from "../../client/js/herald.js";

const [rp, known] = process.argv.slice(2);
const client = new Client({ url: process.env.HERALD_URL ?? "http://127.0.0.1:8000", token: process.env.HERALD_TOKEN });

const id = known ?? (await client.createSubscription(rp, { from: "earliest" })).id;
console.log("subscription", id);

const { offset } = await client.publish(rp, { greeting: "from Node" });
console.log("published at offset", offset);

process.once("SIGINT", () => client.close());
for await (const item of client.attach(id)) {
  if (item instanceof Gap) {
    console.error(`${item.missing} events are not in the history any more`);
    continue;
  }
  console.log(item.offset, JSON.stringify(item.event.data));
  await item.ack(); // everything up to here is processed
}
