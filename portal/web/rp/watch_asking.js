/** The forms for a watch rule and for an audience. The page provides the kinds of rules with limits and units. */

import { byId, find, need } from "../elements.js";
import { ask, field } from "../dialog.js";
import { durationText, durationField, numberField, typedNumber } from "../durations.js";
import { Refused, getTagged } from "../requests.js";
import { toast } from "../toast.js";
import { patchMatching } from "./changing.js";
import { page } from "./page.js";

/** @import { Audience, WatchRule } from "../types.d.ts" */

const SECONDS = "s";

/** {kind: {about, limits: {name: {low, high, unit, about}}, filters: {name: about}}}, as rps/rules/watches.py defines them. */
const kinds = () => JSON.parse(byId("watch-kinds").textContent);

/** Add a rule, or change `was`. @param {WatchRule} [was] */
export async function ruleAsked(was) {
  const { kinds: known, severities, for_s: forS } = kinds();
  const fields = box();
  const chosen = was ? Object.keys(known).find((kind) => kind in was) : Object.keys(known)[0];
  const kind = select(
    "kind",
    "Condition",
    Object.keys(known).map((name) => [name, spoken(name)]),
    chosen,
  );
  const about = paragraph("hint");
  const limits = box();
  kind.append(about);
  const drawLimits = () => {
    const { value } = need(kind, "select", HTMLSelectElement);
    about.textContent = `Violated when: ${uncapital(known[value].about)}`;
    limits.replaceChildren(...limitFields(known[value], was?.[value] ?? {}));
  };
  kind.addEventListener("change", drawLimits);
  drawLimits();
  fields.append(
    kind,
    limits,
    select(
      "severity",
      "Severity of the alarm",
      severities.map((one) => [one, one]),
      was?.severity,
    ),
    durationField("for_s", {
      label: "Raised after a violation of",
      seconds: was?.for_s ?? forS,
      hint: "The alarm is cleared after the rule has held for the same time.",
    }),
  );
  const typed = () => {
    const name = need(kind, "select", HTMLSelectElement).value;
    return {
      [name]: limitsTyped(limits, known[name]),
      severity: need(fields, "[name=severity]", HTMLSelectElement).value,
      for_s: typedNumber(fields, "for_s"),
    };
  };
  const done = await ask({
    title: was ? "Change this watch rule" : "Add a watch rule",
    says: fields,
    action: was ? "Save" : "Add",
    perform: () => told(fields, () => replace("watch", was, typed())),
  });
  if (done !== null) toast(was ? "The rule is changed." : "The rule is added.");
}

/** End a rule. @param {WatchRule} was */
export async function ruleEnded(was) {
  const done = await ask({
    title: "Remove this watch rule?",
    says: "Violations of this rule are no longer reported. Its alarm, if any, is cleared.",
    action: "Remove",
    danger: true,
    perform: () => replace("watch", was, null),
  });
  if (done !== null) toast("The rule is removed.");
}

/** Add an audience, or change `was`. @param {Audience} [was] */
export async function audienceAsked(was) {
  const fields = box();
  const label = field("label", {
    label: "Name",
    value: was?.label ?? "",
    hint: "A name for people, such as auditors.",
    maxlength: 64,
    required: true,
  });
  const least = numberField("at_least", { label: "At least", value: was?.at_least ?? 1, unit: "readers" });
  const who = select(
    "who",
    "Readers that count",
    [
      ["all", "every reader"],
      ["claims", "readers whose token has claims"],
    ],
    was?.claims || was?.issuer ? "claims" : "all",
  );
  const claims = area(
    "claims",
    "Claims, as in a policy, as JSON",
    JSON.stringify(was?.claims ?? { role: { equals: "auditor" } }),
  );
  const issuer = field("issuer", {
    label: "Issued by",
    value: was?.issuer ?? "",
    hint: `Empty: ${page.domain}.`,
    maxlength: 255,
  });
  const publishing = select(
    "publishing",
    "Otherwise events are",
    [
      ["refuse", "rejected"],
      ["flag", "accepted, and an alarm is raised"],
    ],
    was?.publishing ?? "refuse",
  );
  const drawWho = () => {
    for (const one of [claims, issuer]) one.hidden = need(who, "select", HTMLSelectElement).value === "all";
  };
  who.addEventListener("change", drawWho);
  drawWho();
  fields.append(label, least, who, claims, issuer, publishing);
  /** @param {string} name of an input or a select */
  const text = (name) => /** @type {HTMLInputElement} */ (find(fields, `[name=${name}]`)).value.trim();
  const typed = () => ({
    label: text("label"),
    at_least: typedNumber(fields, "at_least"),
    publishing: text("publishing"),
    ...(text("who") === "claims" && {
      claims: parsed(fields.querySelector("[name=claims]")),
      ...(text("issuer") && { issuer: text("issuer") }),
    }),
  });
  const done = await ask({
    title: was ? "Change this audience" : "Require an audience",
    says: fields,
    action: was ? "Save" : "Add",
    perform: () => told(fields, () => replace("audience", was, typed())),
  });
  if (done !== null) toast(was ? "The audience is changed." : "The audience is required from now on.");
}

/** End an audience. @param {Audience} was */
export async function audienceEnded(was) {
  const done = await ask({
    title: `Remove the audience ${was.label}?`,
    says: "Events are then accepted whether or not this audience is present.",
    action: "Remove",
    danger: true,
    perform: () => replace("audience", was, null),
  });
  if (done !== null) toast("The audience is removed.");
}

/** Put `one` in the place of `was` in the RP's list (without `was` at its end; null removes it), as the list is now. */
async function replace(list, was, one) {
  const { document, etag } = await getTagged(page.api);
  const now = document[list];
  const at = was ? now.findIndex((each) => JSON.stringify(each) === JSON.stringify(was)) : now.length;
  if (at < 0) throw new Error("It was changed by somebody else. Cancel and check the current state.");
  await patchMatching(etag, { [list]: now.toSpliced(at, was ? 1 : 0, ...(one ? [one] : [])) });
}

/** Do `perform`; what the domain refuses is marked at the field that its sentence names. */
async function told(fields, perform) {
  for (const one of fields.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  try {
    await perform();
  } catch (error) {
    const named =
      error instanceof Refused &&
      [...fields.querySelectorAll("input, textarea, select")].find(
        (one) => one.name && one.checkVisibility() && new RegExp(`\\b${one.name}\\b`).test(error.message),
      );
    if (named) {
      named.setAttribute("aria-invalid", "true");
      named.focus();
    }
    throw error;
  }
}

function limitFields({ limits, filters }, was) {
  return [
    ...Object.entries(limits).map(([name, { low, high, unit, about }]) =>
      unit === SECONDS
        ? durationField(name, {
            label: capital(about),
            seconds: was[name],
            hint: `${durationText(low)} to ${durationText(high)}${optional(limits)}`,
          })
        : numberField(name, {
            label: capital(about),
            value: was[name] ?? "",
            unit,
            hint: `${low.toLocaleString()} to ${high.toLocaleString()}${optional(limits)}`,
          }),
    ),
    ...Object.entries(filters).map(([name, about]) =>
      field(name, { label: capital(about), value: was[name] ?? "", hint: "Empty: any." }),
    ),
  ];
}

function optional(limits) {
  return Object.keys(limits).length > 1 ? "; empty: no limit" : "";
}

function limitsTyped(fields, { limits, filters }) {
  const made = {};
  for (const name of Object.keys(limits)) {
    const value = typedNumber(fields, name);
    if (value !== undefined) made[name] = value;
  }
  for (const name of Object.keys(filters)) {
    const value = fields.querySelector(`[name="${name}"]`).value.trim();
    if (value) made[name] = value;
  }
  return made;
}

function parsed(textarea) {
  try {
    return JSON.parse(textarea.value);
  } catch (error) {
    textarea.setAttribute("aria-invalid", "true");
    textarea.focus();
    throw new Error(`The claims are not JSON: ${error.message}`, { cause: error });
  }
}

// ---- small parts ----

let fieldsMade = 0;

function labelled(name, label, element) {
  const all = box();
  all.className = "field";
  const title = document.createElement("label");
  element.name = name;
  element.id = title.htmlFor = `watch-${++fieldsMade}`;
  title.textContent = label;
  all.append(title, element);
  return all;
}

function select(name, label, options, value) {
  const element = document.createElement("select");
  element.append(...options.map(([one, text]) => new Option(text, one, false, one === value)));
  return labelled(name, label, element);
}

function area(name, label, value) {
  const element = document.createElement("textarea");
  element.value = value;
  element.rows = 3;
  element.spellcheck = false;
  return labelled(name, label, element);
}

function box() {
  const made = document.createElement("div");
  made.className = "dialog-fields";
  return made;
}

function paragraph(className) {
  const made = document.createElement("p");
  made.className = className;
  return made;
}

function spoken(name) {
  return capital(name.replaceAll("_", " "));
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function uncapital(text) {
  return text[0].toLowerCase() + text.slice(1);
}
