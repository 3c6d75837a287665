/** Links from an alarm: to the page that shows its cause, to its rule, and to what to do. Pure. */

/** The tab of an RP's page that shows what a rule is about, by the kind of the rule. */
const TABS = {
  audience: () => "readers",
  silence: () => "events-tab",
  lease_gap: ({ about }) => (about ? "readers" : "overview"),
};

/**
 * The address. The domain names the page; the tab of an RP's page is chosen here.
 * @param {{kind: string, rp?: string | null, about?: string, link?: string}} alarm
 */
export function causeOf(alarm) {
  const { kind, rp, link } = alarm;
  const own = rp ? `/rps/${rp}` : "";
  if (link && link !== own) return link;
  return own ? `${own}#${TABS[kind]?.(alarm) ?? "watching"}` : "/alarms";
}

/** The section of the documents that says what to do. @param {string} kind of the alarm */
export function runbookOf(kind) {
  return `/docs/alarms#${kind}`;
}

/**
 * Where the rule of an alarm is stated; empty for what is watched without a rule.
 * @param {{rule: string, rp?: string | null}} alarm @param {Record<string, {rp: string | null}>} watches rules in force, by id
 */
export function ruleOf({ rule }, watches) {
  const found = Object.hasOwn(watches, rule) ? watches[rule] : null;
  if (!found) return "";
  return found.rp ? `/rps/${found.rp}#watching` : `/alarms#rule-${rule}`;
}
