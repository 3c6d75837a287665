/** One endpoint of a push subscription. Events of its RP say that something changed; the rest is asked for. */

import { EndpointView } from "../deliveries/view.js";
import { pageData } from "../elements.js";
import { openRp } from "../live.js";

const page = pageData();
const view = new EndpointView({
  api: page.api,
  subscriptionUrl: page.api,
  mayChange: "change" in page,
  mayLink: "links" in page,
});

if ("watch" in page) {
  openRp(page.rp, {
    onChange: (state, events) => {
      if (events.some(concerns)) view.refresh();
    },
    onState: (state) => {
      if (state === "away") view.old("The connection to the domain is interrupted. The data shown is out of date.");
      else if (state === "live") view.refresh();
    },
  });
}

function concerns({ data }) {
  return data.subscription === page.subscription || data.subscription?.id === page.subscription;
}
