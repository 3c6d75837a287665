/**
 * Tabs by the pattern of the ARIA guide: arrow keys, Home and End move among them, one is in the order of Tab.
 *
 *     <div class="tabs" role="tablist" aria-label="Languages">
 *       <button type="button" role="tab" aria-controls="panel-curl" aria-selected="true">curl</button> …
 *     </div>
 *     <div id="panel-curl" role="tabpanel"> … </div>
 *
 * Which tab is open is kept in the address (#panel-curl), so that it can be linked and survives a reload. A panel is told by
 * an event "shown" when its tab is opened.
 */
import { byId } from "./elements.js";

/** Start every tablist of the page, or those in `root`. */
export function startTabs(root = document) {
  for (const list of root.querySelectorAll("[role=tablist]")) start(list);
}

function start(list) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const panel = (tab) => byId(tab.getAttribute("aria-controls") ?? "");
  const open = (chosen) => {
    for (const tab of tabs) {
      const selected = tab === chosen;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      panel(tab).hidden = !selected;
    }
    panel(chosen).dispatchEvent(new Event("shown"));
  };
  tabs.forEach((tab) => {
    tab.id ||= `tab-${tab.getAttribute("aria-controls")}`;
    panel(tab).setAttribute("aria-labelledby", tab.id);
  });
  list.addEventListener("click", ({ target }) => {
    const tab = target.closest("[role=tab]");
    if (!tab) return;
    open(tab);
    history.replaceState(history.state, "", `#${tab.getAttribute("aria-controls")}`);
  });
  list.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    open(tab);
    tab.focus();
  });
  const linked = () => tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash);
  addEventListener("hashchange", () => linked() && open(linked()));
  open(linked() ?? tabs.find((tab) => tab.getAttribute("aria-selected") === "true") ?? tabs[0]);
}
