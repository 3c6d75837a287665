/** Dialogs with more fields than a reason: changing, trimming, inviting a peer. */

import { need } from "../elements.js";
import { ask, field } from "../dialog.js";
import { count } from "../format.js";
import { Refused, getJson, request } from "../requests.js";
import { toast } from "../toast.js";
import { byId, page } from "./page.js";

const KEPT_DEFAULT = 100;
let opening = false; // a dialog, which is first asked for what it shows

/** Change name, title and history; only what the reader changed is sent, and only if nobody else did meanwhile. */
export async function changeAsked() {
  const was = await described();
  if (!was) return;
  const fields = box(
    field("name", {
      label: "Name",
      value: was.name ?? "",
      hint: `Optional. Names in this domain begin with /${page.domain}/.`,
      maxlength: 255,
    }),
    field("title", { label: "Title", value: was.title, maxlength: 255 }),
    field("events", {
      label: "Events kept",
      value: String(was.history.max_events),
      type: "number",
      min: 1,
      required: true,
    }),
    field("age", {
      label: "Seconds after which events are deleted",
      value: String(was.history.max_age_s ?? ""),
      type: "number",
      min: 1,
      hint: "Empty: events are kept regardless of age.",
    }),
  );
  const typed = (name) => need(fields, `[name=${name}]`, HTMLInputElement).value.trim();
  const changes = () => {
    const history = {};
    if (Number(typed("events")) !== was.history.max_events) history.max_events = Number(typed("events"));
    const age = typed("age") ? Number(typed("age")) : null;
    if (age !== was.history.max_age_s) history.max_age_s = age;
    return {
      ...(typed("name") !== (was.name ?? "") && { name: typed("name") || null }),
      ...(typed("title") !== was.title && { title: typed("title") }),
      ...(Object.keys(history).length && { history }),
    };
  };
  const done = await ask({
    title: "Change this rendezvous point",
    says: fields,
    action: "Save",
    perform: () => patchMatching(`"${was.version}"`, changes()),
  });
  if (done !== null) toast("The rendezvous point is changed.");
}

/** Trim the history: all of it, or all but the newest events. */
export async function trimAsked() {
  const held = Number(byId("events-meter", HTMLMeterElement).value);
  const keep = field("keep", {
    label: "Keep the newest events",
    type: "number",
    min: 0,
    max: held,
    required: true,
    value: String(Math.min(KEPT_DEFAULT, Math.floor(held / 2))),
    hint: `0 trims all events; ${count(held)} are held now.`,
  });
  const words = document.createElement("p");
  words.textContent =
    "Trimmed events are deleted permanently in this domain. Readers that have not received them get a gap notification. Other domains keep their events.";
  let removed = 0;
  const done = await ask({
    title: "Trim the history?",
    says: box(words, keep),
    action: "Trim",
    danger: true,
    reason: { label: "Reason", hint: "Recorded in the audit." },
    perform: async (reason) => {
      const newest = Number(keep.querySelector("input").value);
      const { epoch, offset } = await getJson(page.api); // as it is now: events arrive while the dialog is open
      const before = newest === 0 ? "all" : `${epoch}:${Math.max(0, offset - newest)}`;
      ({ removed } = await request("POST", `${page.api}/trim`, { before, reason }));
    },
  });
  if (done !== null) toast(removed === 1 ? "1 event is trimmed." : `${count(removed)} events are trimmed.`);
}

/** Invite a peer to hold a replica. @param {string[]} holders domains that hold one already */
export async function inviteAsked(holders) {
  /** @type {string[] | null} */
  let peers = null;
  try {
    const { items } = await getJson("/api/v1/peers");
    peers = items.filter(({ name, state }) => state === "active" && !holders.includes(name)).map(({ name }) => name);
  } catch (error) {
    if (!(error instanceof Refused && error.status === 403)) {
      toast(error.message, "bad");
      return;
    }
  }
  if (peers?.length === 0) {
    toast("All active peers already hold a replica, or there are none. Add peers with herald peer add.", "bad");
    return;
  }
  const chosen = peers ? select("peer", "Peer", peers) : field("peer", { label: "Peer", required: true });
  const words = document.createElement("p");
  words.textContent =
    "The peer then holds a replica, provided that the policy lets it replicate and that it trusts this domain to host.";
  const done = await ask({
    title: "Invite a peer?",
    says: box(words, chosen),
    action: "Invite",
    perform: () => request("POST", `${page.api}/replicas`, { peer: chosen.querySelector("[name=peer]").value.trim() }),
  });
  if (done !== null) toast("The peer holds a replica.");
}

/** The current RP; undefined after a toast with the reason, and while another dialog is being opened: a button is pressed twice. */
async function described() {
  if (opening) return undefined;
  opening = true;
  try {
    return await getJson(page.api);
  } catch (error) {
    toast(error.message, "bad");
    return undefined;
  } finally {
    opening = false;
  }
}

/**
 * Change the RP unless somebody else did meanwhile.
 *
 * @param {string} tag the entity tag, or the version alone: a change of rules meanwhile is then no hindrance
 * @param {Record<string, unknown>} changes
 */
export async function patchMatching(tag, changes) {
  if (Object.keys(changes).length === 0) return;
  try {
    await request("PATCH", page.api, changes, { headers: { "If-Match": tag } });
  } catch (error) {
    if (error instanceof Refused && error.status === 412) {
      throw new Error(
        "The rendezvous point was changed by somebody else. Cancel, check the current state and try again.",
        {
          cause: error,
        },
      );
    }
    throw error;
  }
}

function select(name, label, values) {
  const made = box();
  made.className = "field";
  const element = document.createElement("select");
  element.name = element.id = name;
  element.append(...values.map((value) => new Option(value)));
  const title = document.createElement("label");
  title.htmlFor = element.id;
  title.textContent = label;
  made.append(title, element);
  return made;
}

function box(...children) {
  const made = document.createElement("div");
  made.className = "dialog-fields";
  made.append(...children);
  return made;
}
