/** Actions of administrators on the membership: join, found, leave. A confirmation, then the request. */

import { ask, field } from "../dialog.js";
import { request } from "../requests.js";
import { toast } from "../toast.js";

const OVERLAY = "/api/v1/overlay";

/** Ask for a sponsor, and join its overlay. Resolves to whether the domain joined. */
export async function join() {
  const says = document.createElement("div");
  const words = document.createElement("p");
  words.textContent =
    "The sponsor must be an active peer of this domain. Its approval of the peering is its consent; it grants a limited number of sponsorships a day.";
  const sponsor = field("sponsor", {
    label: "Sponsor",
    required: true,
    maxlength: 255,
    hint: "Name or address of an active peer.",
    autocomplete: "off",
  });
  says.className = "stack";
  says.append(words, sponsor);
  const done = await ask({
    title: "Join an overlay",
    says,
    action: "Join",
    perform: () => request("POST", `${OVERLAY}/join`, { sponsor: sponsor.querySelector("input")?.value.trim() }),
  });
  if (done !== null) toast("This domain has joined. Links follow within seconds.");
  return done !== null;
}

/** Found an overlay. Resolves to whether it was founded. */
export async function found() {
  const done = await ask({
    title: "Found an overlay?",
    says: "This domain becomes the first of a federation: it needs no sponsor, and its peers may join with it as sponsor.",
    action: "Found",
    perform: () => request("POST", `${OVERLAY}/found`, undefined),
  });
  if (done !== null) toast("The overlay is founded. Peers can join now.");
  return done !== null;
}

/** Leave the overlay. Resolves to whether the domain left. */
export async function leave() {
  const done = await ask({
    title: "Leave the overlay?",
    says: "All overlay links end, and other domains remove this one when its record expires. Peers and rendezvous points stay as they are.",
    action: "Leave",
    danger: true,
    perform: () => request("POST", `${OVERLAY}/leave`, undefined),
  });
  if (done !== null) toast("This domain has left the overlay.");
  return done !== null;
}
