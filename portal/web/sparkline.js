/** A small line of the last samples, drawn into an <svg viewBox="0 0 120 28">. */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 120;
const HEIGHT = 28;
const BASE = 27;

/**
 * @param {SVGSVGElement} svg
 * @param {(number | null)[]} values oldest first; null where nothing is known
 * @param {number} slots how many samples fill the width
 */
export function drawSparkline(svg, values, slots) {
  const line = child(svg, "polyline");
  const area = child(svg, "polygon");
  const step = WIDTH / (slots - 1);
  const top = Math.max(...values.map((value) => value ?? 0), 1e-9);
  const start = WIDTH - step * (values.length - 1);
  const points = [];
  values.forEach((value, index) => {
    if (value === null) return;
    points.push([start + step * index, BASE - (value / top) * (HEIGHT - 4)]);
  });
  if (points.length < 2) {
    line.removeAttribute("points");
    area.removeAttribute("points");
    return;
  }
  const text = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  line.setAttribute("points", text);
  area.setAttribute("points", `${points[0][0].toFixed(1)},${BASE} ${text} ${points.at(-1)[0].toFixed(1)},${BASE}`);
}

function child(svg, name) {
  return svg.querySelector(name) ?? svg.appendChild(document.createElementNS(SVG, name));
}
