/** Drawing at most once per frame of the screen, and not at all while nobody sees the page. */

/**
 * Returns a function that schedules `draw` for the next frame, once however often it is called. A hidden tab has no
 * frames: `draw` runs when the tab is shown again.
 * @param {() => void} draw
 */
export function eachFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
