// Read one HTTP request, {"headers", "body"} in JSON on standard input, with the SDK of CloudEvents, and print its event.
import { text } from "node:stream/consumers";
import { HTTP } from "cloudevents";

const event = HTTP.toEvent(JSON.parse(await text(process.stdin)));
event.validate();
console.log(JSON.stringify({ source: event.source, type: event.type, data: event.data }));
