"""Style, script and icon of the status page: served by ourselves, so that nothing is asked of anybody else."""

import hashlib

STYLE = """\
:root {
  color-scheme: light dark;
  --page: #f5f6f8; --sheet: #ffffff; --text: #1b2028; --quiet: #545d6b; --line: #d8dde4; --soft: #eef0f4;
  --link: #0b53b0; --focus: #0b53b0; --shadow: 0 1px 2px rgb(20 28 40 / 8%);
  --good: #0a5c2b; --good-back: #dff3e5; --bad: #9a0d18; --bad-back: #fde5e6; --busy: #0a4791; --busy-back: #e0edfc;
  --warn: #6b4700; --warn-back: #fcefcf; --dim: #4a5361; --dim-back: #e7eaef;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12151a; --sheet: #1a1f26; --text: #e7eaef; --quiet: #a8b1be; --line: #333b46; --soft: #232933;
    --link: #8ebcff; --focus: #a9cdff; --shadow: none;
    --good: #8fe3ab; --good-back: #14351f; --bad: #ffb1b4; --bad-back: #47171b; --busy: #a9cdff; --busy-back: #16304f;
    --warn: #f4d384; --warn-back: #3b2d0a; --dim: #c0c8d3; --dim-back: #2c333d;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 4rem; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, "Liberation Sans", sans-serif; }
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: 2px; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 4px; }
h1, h2, h3, p, dl, dd, ul { margin: 0; }
h1 { font-size: 1.45rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin-bottom: .6rem; }
code, .mono { font: .9em ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Consolas, monospace; }
time { white-space: nowrap; }
.quiet { color: var(--quiet); }
#said:empty { position: absolute; }
.skip { position: absolute; left: -100vw; top: .5rem; padding: .4rem .8rem; background: var(--sheet); z-index: 3; }
.skip:focus { left: .5rem; }
header { display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; align-items: center; padding: .6rem 1.5rem;
  background: var(--sheet); border-bottom: 1px solid var(--line); }
.brand { display: flex; align-items: center; gap: .5rem; font-weight: 650; }
.brand img { width: 1.4rem; height: 1.4rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem; padding: 0; list-style: none; }
header nav a { display: block; padding: .25rem .7rem; border-radius: 6px; text-decoration: none; color: var(--text); }
header nav a:hover { background: var(--soft); }
header nav a[aria-current] { background: var(--soft); font-weight: 600; box-shadow: inset 0 -2px var(--link); }
.tools { margin-left: auto; display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; }
main { max-width: 96rem; margin: 0 auto; padding: 1.25rem 1.5rem 3rem; display: grid; gap: 1rem;
  grid-template-columns: minmax(0, 1fr); }
main > *, #live > * { min-width: 0; }
#live { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); }
footer { max-width: 96rem; margin: 0 auto; padding: 0 1.5rem 2rem; color: var(--quiet); font-size: .87rem; }
.top { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; }
.sheet { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; box-shadow: var(--shadow); }
.padded { padding: 1rem 1.2rem; }
.note { padding: .7rem 1.2rem; border-left: 4px solid var(--warn); background: var(--warn-back); color: var(--warn);
  border-radius: 6px; }
.advice { border-left: 4px solid var(--busy); }
.advice ul { padding-left: 1.2rem; }
.badge { display: inline-flex; gap: .35em; align-items: center; padding: .05rem .55rem; border-radius: 999px;
  font-size: .87rem; font-weight: 600; white-space: nowrap; background: var(--dim-back); color: var(--dim); }
.good { background: var(--good-back); color: var(--good); }
.bad { background: var(--bad-back); color: var(--bad); }
.busy { background: var(--busy-back); color: var(--busy); }
.warn { background: var(--warn-back); color: var(--warn); }
td.plain .badge { padding: 0; background: none; }
.chips { display: flex; flex-wrap: wrap; gap: .5rem; padding: 0; list-style: none; }
.chips a { display: inline-flex; gap: .5rem; align-items: center; padding: .3rem .6rem; border: 1px solid var(--line);
  border-radius: 8px; background: var(--sheet); color: var(--text); text-decoration: none; }
.chips a:hover { border-color: var(--link); }
.chips a[aria-current] { border-color: var(--link); box-shadow: inset 0 0 0 1px var(--link); }
.chips strong { font-variant-numeric: tabular-nums; }
form { display: flex; flex-wrap: wrap; gap: .6rem .9rem; align-items: end; }
form > div { display: grid; gap: .15rem; }
form .wide { flex: 1 1 18rem; }
label { font-size: .87rem; color: var(--quiet); }
label.check { display: flex; gap: .4rem; align-items: center; padding-bottom: .45rem; color: var(--text); }
input[type="search"], select { width: 100%; min-width: 10rem; max-width: 100%; padding: .38rem .6rem; font: inherit;
  color: var(--text); background: var(--sheet); border: 1px solid #7b8594; border-radius: 6px; }
button { padding: .38rem .9rem; font: inherit; color: var(--text); background: var(--soft); cursor: pointer;
  border: 1px solid #7b8594; border-radius: 6px; transition: background .15s; }
button:hover { background: var(--line); }
button[aria-pressed="true"] { background: var(--busy-back); color: var(--busy); border-color: var(--busy);
  font-weight: 600; }
.scrolled { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .93rem; }
caption { text-align: left; padding: .7rem 1.2rem; color: var(--quiet); }
th, td { padding: .45rem .6rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 1.2rem; }
thead th { font-size: .83rem; font-weight: 600; color: var(--quiet); white-space: nowrap; background: var(--soft); }
thead th a { color: inherit; }
tbody th { font-weight: 600; overflow-wrap: break-word; }
tbody th.name { min-width: 12rem; overflow-wrap: anywhere; }
th[aria-sort="ascending"] a::after { content: " ↑"; }
th[aria-sort="descending"] a::after { content: " ↓"; }
tbody tr:hover { background: var(--soft); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.words { min-width: 14rem; overflow-wrap: anywhere; }
td.words > span { display: -webkit-box; overflow: hidden; -webkit-box-orient: vertical; -webkit-line-clamp: 3; }
td.words.full { white-space: pre-wrap; }
td ul { padding: 0; list-style: none; }
td code { overflow-wrap: anywhere; }
.pages { display: flex; flex-wrap: wrap; gap: 1rem; align-items: center; }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .7rem 1.5rem; }
dl.facts dt { font-size: .83rem; color: var(--quiet); }
dl.facts dd { overflow-wrap: anywhere; }
dl.facts > .long { grid-column: span 2; }
.tree, .tree ul { list-style: none; padding: 0; }
.tree + p { margin-top: .8rem; }
.tree > li + li { margin-top: .7rem; }
.tree summary { cursor: pointer; padding: .15rem .2rem; }
.tree ul { margin-left: .45rem; border-left: 1px solid var(--line); }
.tree ul > li { position: relative; padding: .22rem 0 .22rem 1.3rem; overflow-wrap: anywhere; }
.tree ul > li::before { content: ""; position: absolute; left: 0; top: 1.05rem; width: .9rem;
  border-top: 1px solid var(--line); }
.tree .kind { color: var(--quiet); }
[hidden] { display: none !important; }
@media (max-width: 40rem) { main, header { padding-left: .8rem; padding-right: .8rem; } .tools { margin-left: 0; } }
@media (prefers-reduced-motion: reduce) { * { transition: none !important; scroll-behavior: auto !important; } }
@media (forced-colors: active) { .badge { border: 1px solid; } }
@media print { header, form, .pages { display: none; } body { background: none; } }
"""

SCRIPT = """\
"use strict";
(() => {
  const SECONDS = 10;
  const live = () => document.getElementById("live");
  const say = (text) => { document.getElementById("said").textContent = text; };

  // Ages go on. The clock is that of the agent, whatever this computer thinks the time is.
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

  // A filter while one types, for the rows of this page; Enter asks the agent, which searches all.
  const input = document.querySelector("input[data-filters]");
  const filter = () => {
    const asked = input.defaultValue.trim() === input.value.trim();
    const terms = asked ? [] : input.value.toLowerCase().split(/\\s+/).filter(Boolean);
    const rows = live().querySelectorAll("tbody tr");
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !terms.every((term) => text.includes(term));
      shown += row.hidden ? 0 : 1;
    }
    say(terms.length ? `${shown} of the ${rows.length} rows of this page fit. Enter searches all.` : "");
  };
  if (input) {
    input.addEventListener("input", filter);
    filter();
  }

  // Refreshing, if wished: what is open, focused or typed stays so.
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
      const closed = [...live().querySelectorAll("details[id]:not([open])")].map((each) => each.id);
      live().replaceWith(document.adoptNode(fresh));
      loaded = performance.now();
      for (const id of closed) document.getElementById(id)?.removeAttribute("open");
      if (path) [...live().querySelectorAll("a, summary, [tabindex]")].find(
        (each) => `#${CSS.escape(each.id)}` === path || each.getAttribute("href") === path)?.focus();
      showAges();
      if (input) filter();
      if (!input || input.defaultValue === input.value) say("");
    } catch {
      say("The agent does not answer; what is shown may be old.");
    }
  };
  const switchTo = (on) => {
    toggle.setAttribute("aria-pressed", String(on));
    clearInterval(timer);
    if (on) timer = setInterval(refresh, SECONDS * 1000);
    try { sessionStorage.setItem("refresh", on ? "on" : ""); } catch { /* then it is not kept */ }
  };
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const on = toggle.getAttribute("aria-pressed") !== "true";
    switchTo(on);
    if (on) refresh();
  });
  let kept = "";
  try { kept = sessionStorage.getItem("refresh"); } catch { /* as if it were off */ }
  if (kept === "on") switchTo(true);
  setInterval(showAges, 5000);
})();
"""

ICON = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#0a5c2b"/>
<path d="M7 9h8M7 16h8M7 23h8" stroke="#8fe3ab" stroke-width="3" stroke-linecap="round"/>
<path d="m18 16 3.5 4L27 10" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>
</svg>
"""


def _path(name: str, suffix: str, content: str) -> str:
    """With a digest, so that it may be kept for good and is new when it is another one."""
    return f"/{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}.{suffix}"


STYLE_PATH, SCRIPT_PATH, ICON_PATH = (
    _path("style", "css", STYLE),
    _path("script", "js", SCRIPT),
    _path("icon", "svg", ICON),
)

ASSETS = {
    STYLE_PATH: (STYLE, "text/css"),
    SCRIPT_PATH: (SCRIPT, "text/javascript"),
    ICON_PATH: (ICON, "image/svg+xml"),
}
"""Path -> content and its type."""
