/** Notice of a live page that has no data yet while the domain does not respond: the problem and the remedy. Pure. */

const DOMAIN_AWAY = "The domain does not respond.";
const HELP = "If this persists, run manage.py doctor on the domain's machine: it reports what is wrong and what to do.";

/** @param {string} state of live.js @param {Error | null | undefined} error why it is not live */
export function awayWords(state, error) {
  const why = error?.message ?? DOMAIN_AWAY;
  return state === "away" ? `${why} Retrying automatically. ${HELP}` : why;
}
