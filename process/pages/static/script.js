"use strict";
(() => {
  const SECONDS = 10;
  const live = () => document.getElementById("live");
  const report = (text) => { document.getElementById("message").textContent = text; };

  // Update ages by the clock of the agent, independent of the browser's.
  let loaded = performance.now();
  const now = () => Number(live().dataset.now) + (performance.now() - loaded) / 1000;
  const two = (a, unit, b, smaller) => b ? `${a}${unit}${b}${smaller}` : `${a}${unit}`;
  const age = (seconds) => {
    const s = Math.max(0, Math.floor(seconds)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    if (s < 120) return `${s}s`;
    if (m < 10) return two(m, "m", s % 60, "s");
    if (m < 180) return `${m}m`;
    if (h < 8) return two(h, "h", m % 60, "m");
    if (h < 48) return `${h}h`;
    return d < 8 ? two(d, "d", h % 24, "h") : `${d}d`;
  };
  const showAges = () => {
    for (const time of document.querySelectorAll("time[data-at]")) {
      const text = age(now() - Number(time.dataset.at));
      if (time.textContent !== text) time.textContent = text;
    }
  };

  // Filter the rows of this page while the user types; Enter sends the query to the agent, which searches all.
  const input = document.querySelector("input[data-filters]");
  const filter = () => {
    const submitted = input.defaultValue.trim() === input.value.trim();
    const terms = submitted ? [] : input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = live().querySelectorAll("tbody tr");
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !terms.every((term) => text.includes(term));
      shown += row.hidden ? 0 : 1;
    }
    report(terms.length ? `${shown} of the ${rows.length} rows of this page match. Enter searches all.` : "");
  };
  if (input) {
    input.addEventListener("input", filter);
    filter();
  }

  // Refresh periodically if enabled; keep open details, focus and input.
  const toggle = document.getElementById("refresh");
  let timer = 0;
  const refresh = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      if (!fresh) throw new Error("no page");
      const focused = live().contains(document.activeElement) ? document.activeElement : null;
      const path = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.getAttribute("href"));
      const toggled = [...live().querySelectorAll("details[id]")].map(({ id, open }) => ({ id, open }));
      live().replaceWith(document.adoptNode(fresh));
      loaded = performance.now();
      for (const { id, open } of toggled) document.getElementById(id)?.toggleAttribute("open", open);
      if (path) [...live().querySelectorAll("a, summary, [tabindex]")].find(
        (each) => `#${CSS.escape(each.id)}` === path || each.getAttribute("href") === path)?.focus();
      showAges();
      if (input) filter();
      if (!input || input.defaultValue === input.value) report("");
    } catch {
      report("The agent does not answer; this page may be outdated.");
    }
  };
  const switchTo = (on) => {
    toggle.setAttribute("aria-pressed", String(on));
    clearInterval(timer);
    if (on) timer = setInterval(refresh, SECONDS * 1000);
    try { sessionStorage.setItem("refresh", on ? "on" : ""); } catch { /* the choice is not kept */ }
  };
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const on = toggle.getAttribute("aria-pressed") !== "true";
    switchTo(on);
    if (on) refresh();
  });
  let kept = "";
  try { kept = sessionStorage.getItem("refresh"); } catch { /* off by default */ }
  if (kept === "on") switchTo(true);
  setInterval(showAges, 5000);
})();
