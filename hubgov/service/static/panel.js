// Keeps a page of the panel current: when something of its topics changed it fetches itself and takes over the rows
// that differ. What is being typed is never touched. Without this script the page is as of when it was loaded.
"use strict";

(function () {
  const panel = document.getElementById("panel");
  const live = document.getElementById("live");
  const pill = document.getElementById("paused");
  const lost = document.getElementById("lost");
  const topics = panel.dataset.topics.split(" ").filter(Boolean);
  const LEAST_MS = 2000;
  const REDRAW_MS = 60000;
  let waiting = false;
  let last = Date.now();
  let least = LEAST_MS;

  function typing() {
    for (const field of live.querySelectorAll("input:not([type=hidden]), textarea, select")) {
      const initial = field.tagName === "SELECT"
        ? [...field.options].every((option) => option.selected === option.defaultSelected)
        : field.type === "checkbox" || field.type === "radio"
          ? field.checked === field.defaultChecked
          : field.value === field.defaultValue;
      if (!initial || (document.activeElement === field && field.type !== "checkbox")) {
        return true;
      }
    }
    return false;
  }

  // What changes with time alone is no reason to put another row in the place of one.
  function told(element) {
    const copy = element.cloneNode(true);
    for (const part of copy.querySelectorAll("[data-ignore], input[name=_xsrf]")) {
      part.remove();
    }
    for (const part of copy.querySelectorAll("details[open]")) {
      part.removeAttribute("open");
    }
    return copy.innerHTML + copy.className;
  }

  function takeOver(fresh) {
    const open = new Set([...live.querySelectorAll("[id] details[open]")].map((d) => d.closest("[id]").id));
    const focused = document.activeElement;
    const holder = focused && live.contains(focused) ? focused.closest("[id]") : null;
    const old = new Map([...live.querySelectorAll("[data-row], tr[id]")].map((row) => [row.id, row]));
    const rows = [...fresh.querySelectorAll("[data-row], tr[id]")];
    const same = rows.length === old.size && rows.every((row, i) => row.id === [...old.keys()][i]);
    if (same && rows.length) {
      for (const row of rows) {
        const before = old.get(row.id);
        if (told(before) !== told(row)) {
          before.replaceWith(row);
        } else {
          const parts = row.querySelectorAll("[data-ignore]");
          before.querySelectorAll("[data-ignore]").forEach((part, i) => part.replaceWith(parts[i]));
        }
      }
      const stamps = fresh.querySelectorAll("caption [data-ignore]");
      live.querySelectorAll("caption [data-ignore]").forEach((part, i) => part.replaceWith(stamps[i]));
    } else {
      live.replaceChildren(...fresh.childNodes);
    }
    for (const id of open) {
      document.getElementById(id)?.querySelector("details")?.setAttribute("open", "");
    }
    if (holder && !document.contains(focused)) {
      document.getElementById(holder.id)?.focus();
    }
  }

  async function refresh() {
    if (typing()) {
      pill.hidden = false;
      return;
    }
    pill.hidden = true;
    waiting = false;
    last = Date.now();
    const began = performance.now();
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
      if (!answer.ok) {
        throw new Error(String(answer.status));
      }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      if (fresh && !typing()) {
        takeOver(fresh);
      }
      const counts = page.querySelector("header .pages");
      if (counts) {
        document.querySelector("header .pages").replaceWith(counts);
      }
      lost.hidden = true;
    } catch {
      lost.hidden = false;
    }
    // The longer an answer takes, the more rarely it is asked for: readers never take the whole service.
    least = Math.max(LEAST_MS, 20 * (performance.now() - began));
  }

  function soon() {
    if (waiting) {
      return;
    }
    waiting = true;
    if (!document.hidden) {
      setTimeout(() => void refresh(), Math.max(0, least - (Date.now() - last)));
    }
  }

  function watch() {
    const events = new EventSource(panel.dataset.events);
    for (const topic of topics) {
      events.addEventListener(topic, soon);
    }
    // The first one too: what changed since the page was made is told by nothing else.
    events.addEventListener("reset", soon);
    events.onerror = () => {
      lost.hidden = events.readyState !== EventSource.CLOSED;
      if (events.readyState === EventSource.CLOSED) {
        setTimeout(watch, 10000);
      }
    };
  }

  if (live && topics.length) {
    watch();
    setInterval(() => {
      if (!document.hidden && Date.now() - last > REDRAW_MS) {
        soon();
      }
    }, 5000);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && waiting) {
        void refresh();
      }
    });
    live.addEventListener("focusout", () => {
      if (!pill.hidden) {
        setTimeout(() => void refresh(), 0);
      }
    });
  }

  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.("input, textarea, select");
    if (field || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      if (search) {
        event.preventDefault();
        search.focus();
      }
    } else if (event.key === "j" || event.key === "k") {
      const rows = [...document.querySelectorAll("#panel tbody tr[tabindex]")];
      const at = rows.indexOf(document.activeElement?.closest("tr"));
      const next = rows[event.key === "j" ? at + 1 : at - 1] ?? (at < 0 ? rows[0] : null);
      next?.focus();
    } else if (event.key === "?") {
      const help = document.getElementById("keys");
      help.hidden = !help.hidden;
    }
  });
})();
