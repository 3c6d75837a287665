/**
 * The page's one connection to the domain: every subscription of the page is carried by it, and the header's pill shows
 * how it is. It is opened with the first subscription.
 */

import { Client, Closed, HeraldError } from "../../client/js/herald.js";
import { showConnection, showEnded, showLoggedOut } from "./connection.js";
import { SessionEnded, getJson } from "./requests.js";

const ENDPOINT = `${location.origin.replace(/^http/, "ws")}/console/ws`;
const SESSION_URL = "/console/session";

/** Ends the client: connecting again needs a login. */
export class LoggedOut extends HeraldError {}

/** @type {Client | null} */
let client = null;
const again = new Set(); // what to call to connect anew, when the reader asks for it

/**
 * Check the session before each connection, because a refused handshake gives no reason. Returns no token: the session's
 * cookie authenticates the connection.
 */
async function getToken() {
  try {
    await getJson(SESSION_URL);
    return undefined;
  } catch (error) {
    throw error instanceof SessionEnded ? new LoggedOut(error.message) : error;
  }
}

/** The connection's client (client/js/herald.js): publish and subscribe with it. The pill is shown by itself. @returns {Client} */
export function domainConnection() {
  // The console shows this domain: it waits for it and uses no replica, which the page's policy forbids as well.
  const learnable = () => [];
  client ??= new Client({ url: ENDPOINT, getToken, source: "/console", onState: tell, learnable, bestServer: false });
  return client;
}

/**
 * Register `start`, which is called when the reader reconnects after an end and begins with a new client. Returns a
 * function that unregisters it.
 * @param {() => void} start
 */
export function onAgain(start) {
  again.add(start);
  return () => again.delete(start);
}

/** Show that the connection, or the object of the page, has ended, and the next step. @param {Error} [error] */
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
  if (persisted) reconnect(); // restored from the browser's page cache: the old connection is closed
});
