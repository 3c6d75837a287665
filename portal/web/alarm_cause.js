/** Where the cause of an alarm is to be seen, and something can be done about it: one click from the alarm. Pure. */

/** The tab of an RP's page that shows what a rule is about, by the kind of the rule. */
const TABS = {
  audience: () => "readers",
  silence: () => "events-tab",
  lease_gap: ({ about }) => (about ? "readers" : "overview"),
};

/**
 * The address. The domain says the page; where that is an RP's, the tab is chosen here.
 * @param {{kind: string, rp?: string | null, about?: string, link?: string}} alarm
 */
export function causeOf(alarm) {
  const { kind, rp, link } = alarm;
  const own = rp ? `/rps/${rp}` : "";
  if (link && link !== own) return link;
  return own ? `${own}#${TABS[kind]?.(alarm) ?? "watching"}` : "/alarms";
}
