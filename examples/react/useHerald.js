/** A React hook: the last events of a rendezvous point, live, and the state of the connection. */

import { useEffect, useState } from "react";

/**
 * @param {import("../../client/js/herald.js").Client} client one for the whole page, made outside of components
 * @param {string} rp
 * @param {number} [most] events that are kept
 */
export function useHerald(client, rp, most = 50) {
  const [events, setEvents] = useState([]);
  const [state, setState] = useState("connecting");
  useEffect(() => {
    setEvents([]);
    const subscription = client.subscribe(rp, {
      from: "last",
      onEvent: (event, { offset }) => setEvents((before) => [{ event, offset }, ...before].slice(0, most)),
      onState: setState,
    });
    return () => subscription.close();
  }, [client, rp, most]);
  return { events, state };
}
