// What the pages do beyond htmx: the theme, rest while nobody looks, and words when the service is gone.
"use strict";

const THEMES = ["system", "light", "dark"];
const system = window.matchMedia("(prefers-color-scheme: dark)");

function theme() {
  try {
    const stored = localStorage.getItem("theme");
    return THEMES.includes(stored) ? stored : "system";
  } catch {
    return "system"; // storage is forbidden: the choice lasts as long as the page
  }
}

function applyTheme(chosen) {
  const root = document.documentElement;
  if (chosen === "system") delete root.dataset.theme;
  else root.dataset.theme = chosen;
  // Swagger UI reads this class.
  root.classList.toggle("dark-mode", chosen === "dark" || (chosen === "system" && system.matches));
  const button = document.getElementById("theme");
  if (button) button.textContent = `Theme: ${chosen}`;
}

// At once, before anything is painted.
let chosen = theme();
applyTheme(chosen);
system.addEventListener("change", () => applyTheme(chosen));

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  button.hidden = false;
  applyTheme(chosen);
  button.addEventListener("click", () => {
    chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
    applyTheme(chosen);
    try {
      localStorage.setItem("theme", chosen);
    } catch {
      // As above.
    }
  });
  localTimes();
});

// Times are sent in UTC and shown in the reader's own zone.
function localTimes() {
  for (const time of document.querySelectorAll("time[data-local]")) {
    time.textContent = new Date(time.dateTime).toLocaleTimeString();
  }
}

// Nothing is asked for while the tab is hidden; when it is seen again, at once.
document.addEventListener("htmx:config:request", (event) => {
  if (document.hidden) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const part of document.querySelectorAll('[hx-trigger*="seen"]')) part.dispatchEvent(new Event("seen"));
});

document.addEventListener("htmx:after:swap", () => {
  localTimes();
  offline("");
  const announcement = document.getElementById("announcement");
  const said = document.querySelector("[data-announce]")?.textContent ?? "";
  // The first words are on the page already: only a change is told.
  if (announcement && announcement.dataset.last && announcement.dataset.last !== said) {
    announcement.textContent = said;
  }
  if (announcement) announcement.dataset.last = said;
});
document.addEventListener("htmx:response:error", (event) => {
  offline(`The service answers with status ${event.detail.ctx.response.status}. `);
});
document.addEventListener("htmx:error", () => offline("The service does not answer. "));

function offline(words) {
  const notice = document.getElementById("offline");
  if (!notice) return;
  document.body.classList.toggle("is-offline", words !== "");
  notice.hidden = words === "";
  if (!words) return;
  const last = document.querySelector("time[data-local]")?.textContent ?? "";
  const text = `${words}These numbers are from ${last}; trying again each second.`;
  if (notice.textContent !== text) notice.textContent = text;
}
