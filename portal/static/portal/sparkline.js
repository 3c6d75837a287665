/** A small line of the last samples, drawn into an <svg viewBox="0 0 120 28">. */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 120;
const HEIGHT = 28;
const BASE = 27;

/**
 * @param {SVGSVGElement} svg
 * @param {number[]} values oldest first
 * @param {number} slots how many samples fill the width
 */
export function drawSparkline(svg, values, slots) {
  const line = child(svg, "polyline");
  const area = child(svg, "polygon");
  if (values.length < 2) {
    line.removeAttribute("points");
    area.removeAttribute("points");
    return;
  }
  const top = Math.max(...values, 1e-9);
  const step = WIDTH / (slots - 1);
  const start = WIDTH - step * (values.length - 1);
  const points = values.map((value, index) => {
    const x = start + step * index;
    const y = BASE - (value / top) * (HEIGHT - 4);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  line.setAttribute("points", points.join(" "));
  area.setAttribute("points", `${start.toFixed(1)},${BASE} ${points.join(" ")} ${WIDTH},${BASE}`);
}

function child(svg, name) {
  return svg.querySelector(name) ?? svg.appendChild(document.createElementNS(SVG, name));
}
