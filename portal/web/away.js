/** What a live page says before it has anything to show, while the domain does not answer: what happens, and what helps. Pure. */

const DOMAIN_AWAY = "The domain does not answer.";
const HELP =
  "If that lasts, look whether it runs: manage.py doctor, on its machine, says what is wrong and what to do.";

/** @param {string} state of live.js @param {Error | null | undefined} error why it is not live */
export function awayWords(state, error) {
  const why = error?.message ?? DOMAIN_AWAY;
  return state === "away" ? `${why} It is asked again by itself. ${HELP}` : why;
}
