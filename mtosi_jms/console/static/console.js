// Keeps what is on the page up to date, and has the buttons of the head do what they say.
"use strict";

const live = document.getElementById("live");
const pause = document.getElementById("pause");
const away = document.getElementById("away");
const theme = document.getElementById("theme");
const EVERY = 1000;
const FAILED = 5000;
const THEMES = ["auto", "light", "dark"];

let paused = false;
let tag = null;
let timer = null;

function isBusy() {
  const active = document.activeElement;
  return active instanceof HTMLInputElement && live.contains(active);
}

async function refresh() {
  clearTimeout(timer);
  let next = EVERY;
  if (!paused && !document.hidden && !isBusy()) {
    try {
      const headers = { "X-Console": "live", Accept: "text/html" };
      if (tag) headers["If-None-Match"] = tag;
      const answer = await fetch(location.href, { headers, cache: "no-store", redirect: "error" });
      if (answer.status === 401) {
        location.reload(); // the console was started anew: it asks for the token, and comes back to this page
        return;
      }
      // A page that is gone says so by its text, which is shown as well.
      if (answer.status !== 304 && (answer.ok || answer.status === 404)) {
        tag = answer.headers.get("ETag");
        const text = await answer.text();
        if (!paused) Idiomorph.morph(live, text, { morphStyle: "innerHTML", ignoreActiveValue: true });
      }
      away.hidden = answer.ok || answer.status === 304 || answer.status === 404;
    } catch {
      away.hidden = false;
    }
    if (!away.hidden) next = FAILED;
  }
  timer = setTimeout(refresh, next);
}

function chosenTheme() {
  return document.documentElement.dataset.theme ?? "auto";
}

function showTheme() {
  const chosen = chosenTheme();
  theme.textContent = chosen[0].toUpperCase() + chosen.slice(1);
  theme.setAttribute("aria-label", `${theme.textContent} theme`);
}

theme.addEventListener("click", () => {
  const chosen = THEMES[(THEMES.indexOf(chosenTheme()) + 1) % THEMES.length];
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem("mtosi-theme", chosen);
  } catch {
    // Not kept, then.
  }
  showTheme();
});
showTheme();

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser does not allow it";
    }
  });
}

for (const button of document.querySelectorAll("[data-check]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const boxes = [...button.form.querySelectorAll(`input[name="${button.dataset.check}"]`)];
    const all = boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = !all;
  });
}

// Where the pages do not all fit, the present one is in view.
document.querySelector("nav a[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

if (live.hasAttribute("data-live")) {
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume" : "Pause";
    if (!paused) refresh();
  });
  document.addEventListener("console:refresh", refresh);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  timer = setTimeout(refresh, EVERY);
}
