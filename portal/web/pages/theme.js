/** Before anything is drawn: the look that the reader chose, if it is not the system's, and the zone of times. Loaded as a classic script. */
try {
  const look = localStorage.getItem("herald-look");
  if (look === "light" || look === "dark") document.documentElement.dataset.theme = look;
  if (localStorage.getItem("herald-times") === "utc") document.documentElement.dataset.times = "utc";
} catch {
  // A browser that keeps nothing for us has the system's look.
}
