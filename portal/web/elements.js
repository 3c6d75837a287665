/**
 * Elements of the page by id or selector, of the kind that a script needs. One of another kind is a fault of the template and is
 * thrown where it is looked for, not where a property turns out to be missing.
 */

/**
 * The element with this id; null if there is none and no kind is given.
 * @template {Element} [E=HTMLElement]
 * @param {string} id
 * @param {new () => E} [kind] such as HTMLInputElement
 * @returns {E}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (kind && !(found instanceof kind)) throw new TypeError(`#${id} is not an ${kind.name}`);
  return /** @type {any} */ (found);
}

/**
 * The first element of `root` that the selector names; null if there is none.
 * @template {Element} [E=HTMLElement]
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => E} [kind]
 * @returns {E | null}
 */
export function find(root, selector, kind) {
  const found = root.querySelector(selector);
  if (kind && found && !(found instanceof kind)) throw new TypeError(`${selector} is not an ${kind.name}`);
  return /** @type {any} */ (found);
}

/**
 * The first element of `root` that the selector names. Throws where there is none: a fault of the template.
 * @template {Element} [E=HTMLElement]
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => E} [kind]
 * @returns {E}
 */
export function need(root, selector, kind) {
  const found = find(root, selector, kind);
  if (!found) throw new TypeError(`${selector} is missing`);
  return found;
}

/** What the template states for the page's script: the attributes of its main element. @returns {Record<string, string>} */
export function pageData() {
  return /** @type {any} */ (byId("main").dataset);
}

/**
 * All elements of `root` that the selector names.
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {HTMLElement[]}
 */
export function findAll(root, selector) {
  return [.../** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(selector))];
}
