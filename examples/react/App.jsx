/** A page that shows the events of a rendezvous point as they arrive: ?url=...&rp=...&token=... */

import { createRoot } from "react-dom/client";

import { Client } from "../../client/js/herald.js";
import { useHerald } from "./useHerald.js";

const asked = new URLSearchParams(location.search);
// A real page asks its own server for a short-lived token: getToken: async () => (await fetch("/my/herald-token")).text()
const client = new Client({ url: asked.get("url") ?? location.origin, token: asked.get("token") ?? undefined });

function App({ rp }) {
  const { events, state } = useHerald(client, rp);
  return (
    <main>
      <p role="status">{state}</p>
      <ol>
        {events.map(({ event, offset }) => (
          <li key={offset}>{JSON.stringify(event.data)}</li>
        ))}
      </ol>
      <button onClick={() => client.publish(rp, { pressed: true })}>Publish</button>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<App rp={asked.get("rp")} />);
