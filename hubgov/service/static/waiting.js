// Keeps the waiting page current: waits for the next version of the request, redraws the card, and opens the
// server once it runs, for its owner. Without this script the page reloads itself.
"use strict";

(function () {
  const box = document.getElementById("waiting");
  const offline = document.getElementById("offline");
  const api = box.dataset.api + "/workloads/" + encodeURIComponent(box.dataset.workload);
  let version = Number(box.dataset.version);

  async function redraw() {
    const answer = await fetch("?fragment=1&lang=" + box.dataset.lang, { credentials: "same-origin" });
    if (answer.ok) {
      box.innerHTML = await answer.text();
    }
  }

  // The hub adds the proxy's route a moment after the server runs; until then another server, or the hub, would
  // answer at its address.
  async function open() {
    for (let tries = 0; tries < 80; tries += 1) {
      const answer = await fetch(box.dataset.server + "api", { credentials: "same-origin" });
      if (answer.ok) {
        break;
      }
      await new Promise((done) => setTimeout(done, 250));
    }
    location.assign(box.dataset.server);
  }

  async function look() {
    const answer = await fetch(api + "?after=" + version + "&wait=10", { credentials: "same-origin" });
    if (answer.status === 401 || answer.status === 403) {
      location.reload();
      return false;
    }
    if (!answer.ok) {
      throw new Error(String(answer.status));
    }
    const workload = await answer.json();
    version = workload.version;
    offline.hidden = true;
    const runs = workload.state === "running" || workload.state === "expiring";
    if (runs && box.dataset.mine === "yes") {
      await open();
      return false;
    }
    await redraw();
    return workload.ended_at === null;
  }

  async function watch() {
    for (;;) {
      try {
        if (!(await look())) {
          return;
        }
      } catch {
        offline.hidden = false;
        await new Promise((done) => setTimeout(done, 10000));
      }
    }
  }

  void watch();
})();
