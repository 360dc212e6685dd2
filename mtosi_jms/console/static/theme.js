// Before the page is drawn, or it would flash: the theme that the reader has chosen.
"use strict";
try {
  const chosen = localStorage.getItem("mtosi-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // No storage: the system's theme.
}
