/**
 * The page's one connection to the domain: every subscription of the page is carried by it, and the header's pill shows
 * how it is. It is opened with the first subscription.
 */

import { Client, Closed, HeraldError } from "../../client/js/herald.js";
import { showConnection, showEnded, showLoggedOut } from "./connection.js";
import { SessionEnded, postForJson } from "./requests.js";

const TOKEN_URL = "/console/token";

/** Ends the client: a new token cannot be had without logging in. */
export class LoggedOut extends HeraldError {}

let client = null;
const again = new Set(); // what to call to connect anew, when the reader asks for it

async function getToken() {
  try {
    return (await postForJson(TOKEN_URL)).token;
  } catch (error) {
    throw error instanceof SessionEnded ? new LoggedOut(error.message) : error;
  }
}

/** The connection's client (client/js/herald.js): publish and subscribe with it. The pill is shown by itself. */
export function line() {
  // The console is about this domain: it waits for it, and goes on at no replica, which the page's policy forbids as well.
  const learnable = () => [];
  client ??= new Client({ url: location.origin, getToken, source: "/console", onState: tell, learnable });
  return client;
}

/**
 * Have `start` called when the reader asks to connect again after an end; it begins with a new client.
 * Returns a function that forgets it.
 * @param {() => void} start
 */
export function onAgain(start) {
  again.add(start);
  return () => again.delete(start);
}

/** The connection has ended, or what the page is about: say so, and what to do. @param {Error} [error] */
export function tellEnd(error) {
  if (error instanceof LoggedOut || error instanceof SessionEnded) showLoggedOut();
  else showEnded(error instanceof Closed || error ? error.message : "The connection has ended.", reconnect);
}

/** @param {import("../../client/js/herald.d.ts").ConnectionState} state @param {import("../../client/js/herald.d.ts").StateDetail} detail */
function tell(state, { retryInMs, reason, error }) {
  if (state === "ended" && !error) return; // we closed it ourselves
  if (state === "ended") tellEnd(error);
  else showConnection(state, { retryInMs, reason });
}

function reconnect() {
  client?.close();
  client = null;
  showConnection("connecting");
  for (const start of [...again]) start();
}

addEventListener("pagehide", () => client?.close());
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) reconnect(); // back from the browser's memory: the connection of then is gone
});
