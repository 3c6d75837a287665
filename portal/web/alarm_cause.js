/** Link from an alarm to the page that shows its cause and the remedy. Pure. */

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
