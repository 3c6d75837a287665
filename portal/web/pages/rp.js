/** One rendezvous point, live from its administrative RP. Each tab is a module of ../rp/. */

import { awayWords } from "../away.js";
import { openRp } from "../live.js";
import { startAccess, showAccess } from "../rp/access.js";
import { showAdministration, startAdministration } from "../rp/administration.js";
import { endEvents, startEvents } from "../rp/events.js";
import { gone, showHeader, startHeader } from "../rp/header.js";
import { markOverview, pastAsked, showOverview, startLoad, startOverview } from "../rp/overview.js";
import { showIntakes, startIntakes } from "../rp/intakes.js";
import { byId, page, setText } from "../rp/page.js";
import { showReaders, startReaders } from "../rp/readers.js";
import { showReplicas, startReplicas } from "../rp/replicas.js";
import { showWatching, startWatching } from "../rp/watching.js";
import { startTabs } from "../tabs.js";

startHeader();
startOverview();
startEvents();
startReaders();
startAccess();
startReplicas();
startWatching();
startIntakes();
startTabs();
if (page.mayWatch) watch();

function watch() {
  const live = openRp(page.rp, {
    onChange: (state, events, { fresh }) => {
      byId("is-away").hidden = true;
      showHeader(state);
      if (!state.rp) {
        live.close(); // its end is no error
        endEvents();
      }
      showOverview(state, events);
      showReaders(state, events);
      showAccess(state, events, fresh);
      showReplicas(state, events);
      showWatching(state, events, fresh);
      showIntakes(events);
      showAdministration(events);
    },
    onState: (state, error) => {
      markOverview(state !== "live");
      byId("is-away").hidden = state !== "away" || Boolean(live.state); // the data shown is out of date, as the pill shows
      setText(byId("is-away"), awayWords(state, error));
      const code = error && "code" in error ? error.code : null;
      if (state === "ended" && (code === "gone" || code === "not-found")) gone();
    },
  });
  void begin();
}

/** Load the past once; live events are added to it in either order. */
async function begin() {
  const past = await pastAsked();
  if (past) startLoad(past.load);
  await startAdministration(past?.events ?? null);
}
