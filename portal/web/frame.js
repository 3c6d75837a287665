/** Drawing at most once per frame of the screen, and not at all while nobody sees the page. */

/**
 * Returns a function that asks for `draw` to be called with the next frame; asked again before it, it is called once.
 * A hidden tab has no frames: the call comes when it is seen again.
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
