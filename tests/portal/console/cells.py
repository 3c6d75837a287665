"""Whether what stands in the cells of a page's tables can be read: a script for page.evaluate."""

NARROW = """
() => {
  const ruler = document.createElement("span");
  ruler.textContent = "00000000";
  ruler.style.cssText = "position: absolute; visibility: hidden; white-space: nowrap";
  const found = [];
  for (const cell of document.querySelectorAll("table th, table td")) {
    const text = cell.innerText.trim();
    if (!text || !cell.checkVisibility({ visibilityProperty: true }) || cell.closest(".visually-hidden, svg, [aria-hidden=true]")) continue;
    const { width } = cell.getBoundingClientRect();
    if (getComputedStyle(cell.closest("table").querySelector("thead") ?? cell).position === "absolute" && cell.closest("thead")) continue;
    cell.append(ruler);
    const eight = ruler.getBoundingClientRect().width;
    ruler.remove();
    if (width < eight) found.push(`${cell.closest("section, [id]")?.id ?? ""} ${cell.dataset.name ?? cell.tagName}: ${Math.round(width)} of ${Math.round(eight)} px for ${JSON.stringify(text.slice(0, 40))}`);
    const tall = cell.querySelector(".rp-link, .who, .alarm-detail, .plain-button, strong") ?? null;
    if (tall && tall.innerText.length <= 80 && tall.getBoundingClientRect().height > 8 * parseFloat(getComputedStyle(tall).lineHeight || 20)) found.push(`${cell.dataset.name ?? "first"}: ${JSON.stringify(text.slice(0, 40))} takes more than eight lines`);
  }
  const page = document.scrollingElement;
  if (page.scrollWidth > page.clientWidth + 1) found.push(`the page is ${page.scrollWidth - page.clientWidth} px wider than the screen`);
  return found;
}
"""
"""Cells that are seen, have text, and are narrower than eight digits of their own font."""
