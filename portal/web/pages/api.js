/** The API for people: the description that machines read, drawn; searched by words; each operation has a link. */

import { describe } from "../api/descriptions.js";
import { draw } from "../api/view.js";
import { byId, pageData } from "../elements.js";

const page = pageData();

async function load() {
  const answer = await fetch(page.address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`The domain answered ${answer.status}.`);
  return answer.json();
}

function start(document_) {
  const description = describe(document_, location.origin);
  const query = byId("api-query", HTMLInputElement);
  const show = () => draw(byId("api"), description, document_, query.value.toLowerCase().split(/\s+/).filter(Boolean));
  byId("api").replaceChildren(); // what lit-html draws is added to what is there
  show();
  query.addEventListener("input", show);
  byId("api-groups").replaceChildren(
    ...description.groups.map(({ id, title }) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `#${id}`;
      link.textContent = title;
      item.append(link);
      return item;
    }),
  );
  byId("api-version").textContent = `${description.title} ${description.version}`;
  /** Open the operation that the address names, and bring it into view, also one that the search has left out. */
  const openLinked = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (id && query.value && !document.getElementById(id)) {
      query.value = "";
      show();
    }
    openEntry(id ? document.getElementById(id) : null);
  };
  addEventListener("hashchange", openLinked);
  openLinked();
}

/** @param {HTMLElement | null} linked */
function openEntry(linked) {
  if (!linked) return;
  if (linked instanceof HTMLDetailsElement) linked.open = true;
  linked.scrollIntoView();
}

try {
  start(await load());
} catch (error) {
  byId("api").textContent = `The description could not be shown. ${error.message} Load the page again.`;
}
byId("api").setAttribute("aria-busy", "false");
