/**
 * The page of one endpoint for whoever has a link to it. The link's token is in the fragment of the address: it is taken out of
 * the address at once, and exchanged for a session when the button is pressed.
 */

import { EndpointView } from "../deliveries/view.js";
import { showLoggedOut } from "../connection.js";
import { byId, need, pageData } from "../elements.js";
import { Refused, SessionEnded, getJson, request } from "../requests.js";

const page = pageData();
const subscriptionUrl = `${page.api}/subscription`;
const link = location.hash.slice(1);
if (link) history.replaceState(null, "", location.pathname);

/** Show one of the page's parts. @param {"link" | "no-link" | "own"} part */
function show(part) {
  for (const one of ["link", "no-link", "own"]) byId(one).hidden = one !== part;
}

async function open(event) {
  event.preventDefault();
  const button = need(byId("link"), "button");
  const problem = byId("link-problem");
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  problem.hidden = true;
  try {
    await request("POST", page.open, new URLSearchParams({ link }));
    begin();
  } catch (error) {
    problem.textContent =
      error instanceof SessionEnded ? "This link is unknown, used or expired. Ask for a new one." : error.message;
    problem.hidden = false;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

function begin() {
  show("own");
  new EndpointView({ api: page.api, subscriptionUrl, mayChange: true, onEnd: ended });
}

/** @param {Error} error */
function ended(error) {
  if (error instanceof SessionEnded) showLoggedOut();
}

async function resume() {
  try {
    await getJson(subscriptionUrl);
    begin();
  } catch (error) {
    if (error instanceof SessionEnded) show("no-link");
    else if (error instanceof Refused) show("no-link");
    else begin(); // it shows what is wrong, and tries again
  }
}

byId("link-form").addEventListener("submit", (event) => void open(event));
if (link) show("link");
else void resume();
