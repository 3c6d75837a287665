/** The part of a browser's page that modules without markup need, for tests in Node. */

class Element {
  dataset = {};
  hidden = true;
  textContent = "";
  title = "";
  children = [];

  append(...children) {
    this.children.push(...children);
  }

  replaceChildren(...children) {
    this.children = children;
  }

  addEventListener() {}
  setAttribute() {}

  get words() {
    return this.children.map((child) => child.textContent ?? child).join(" ");
  }
}

/** Elements by id, as base.html has them. */
export const elements = Object.fromEntries(
  ["connection", "connection-said", "connection-ended"].map((id) => [id, new Element()]),
);
const frames = [];
const listeners = []; // of the window

/** Render the next frame: run everything that waits for one. */
export function nextFrame() {
  for (const draw of frames.splice(0)) draw();
}

/** Leave the page. */
export function leave() {
  for (const { name, listener } of listeners) if (name === "pagehide") listener({});
}

/** @param {string} origin of the domain */
export function makePage(origin) {
  const page = /** @type {any} */ (globalThis);
  page.document = {
    documentElement: { dataset: {} },
    getElementById: (id) => elements[id] ?? null,
    querySelector: () => ({ content: "csrf" }),
    createElement: () => new Element(),
    addEventListener() {},
  };
  page.location = { origin };
  page.addEventListener = (name, listener) => listeners.push({ name, listener });
  page.requestAnimationFrame = (draw) => frames.push(draw);
}
