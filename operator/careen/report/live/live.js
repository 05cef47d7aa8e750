// The live page of `careen serve`. It asks its own server for rollout.json and draws it.
// All text from the cluster is set as textContent: nothing here parses markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const PAGE = 100; // rows of the table of nodes that are shown at first
const ASK_MS = 2000;
const SLOW_MS = 15000; // while the page is hidden
const FRAME = {width: 1000, height: 300, foot: 34, left: 4, right: 4, top: 22};
const GROUP_OF = {
  Idle: "idle", Done: "done", Waiting: "waiting", "Held back": "held", Stuck: "failed", Claiming: "work", Draining: "work", Rebooting: "reboot",
  Verifying: "reboot", Settling: "settle", Failed: "failed", Maintenance: "kept", "To maintenance or back": "kept",
};
const state = {etag: "", doc: null, shown: PAGE, ahead: 0, drawMs: 0, node: "", nodeEtag: ""};

const at = (id) => document.getElementById(id);

function made(tag, options = {}, ...children) {
  const element = options.svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name !== "svg" && value !== null && value !== undefined && value !== "") element.setAttribute(name, value);
  }
  element.append(...children.filter((each) => each !== null && each !== undefined));
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// careen's own sentences mark commands with backticks.
function sentence(text) {
  const parts = text.split("`");
  return parts.map((part, place) => (place % 2 && place < parts.length - 1 ? made("code", {}, part) : part));
}

// Keeps the elements of rows that stay, so that focus and a screen reader's place survive a refresh.
function keyed(parent, items, keyOf, make, update) {
  const old = new Map([...parent.children].map((element) => [element.dataset.key, element]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let element = old.get(key);
    if (element) old.delete(key);
    else {
      element = make(item);
      element.dataset.key = key;
    }
    update(element, item);
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  for (const element of old.values()) element.remove();
}

function row(parent, items, keyOf, cells, classes = []) {
  keyed(parent, items, keyOf, () => made("tr"), (element, item) => {
    cells(item).forEach((value, place) => {
      const cell = element.children[place] || element.appendChild(
        made(place ? "td" : "th", {class: classes[place], scope: place ? null : "row"}));
      if (value && value.node !== undefined) {
        const link = cell.firstElementChild || cell.appendChild(made("a"));
        setText(link, value.node);
        link.setAttribute("href", hashOf(value.node));
      } else setText(cell, String(value ?? ""));
    });
  });
}

const hashOf = (name) => `#node=${encodeURIComponent(name)}`;
const nodeLink = (name) => made("a", {href: hashOf(name), class: "chip"}, name);

function span(seconds) {
  let left = Math.max(0, Math.floor(seconds));
  const parts = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const amount = Math.floor(left / size);
    left -= amount * size;
    if (amount || parts.length) parts.push(amount ? `${amount}${unit}` : "");
    if (parts.length === 2) break;
  }
  return parts.join("") || "0s";
}

// The server's clock, because this computer's may be wrong.
const now = () => Date.now() / 1000 + state.ahead;
const ageOf = (since) => (since ? span(now() - since) : "-");
const clock = (instant) => {
  if (!instant) return "-";
  const date = new Date(instant * 1000);
  const time = date.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit", hourCycle: "h23"});
  return Math.abs(instant - now()) < 43200 ? time : `${date.toLocaleDateString([], {weekday: "short", day: "numeric",
    month: "short"})} ${time}`;
};
const counted = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;

// ---- the top ----

function drawTop(doc) {
  const {progress, headline} = doc;
  setText(at("verdict"), headline.sentence);
  at("verdict").className = `verdict ${headline.tone}`;
  const finish = progress.finish ? `Finish about ${clock(progress.finish)}.` : "";
  at("detail").replaceChildren(...sentence([headline.detail, finish].filter(Boolean).join(" ")));
  const figures = [["rebooted", progress.done], ["at work", progress.working], ["queued", progress.queued],
    ["held back", progress.heldBack], ["stuck", progress.stuck], ["failed", progress.failed],
    ["kept down", progress.kept], ["nodes in all", progress.total]]
    .filter(([name, count]) => count || !["held back", "stuck", "failed", "kept down"].includes(name));
  keyed(at("figures"), figures, ([name]) => name, ([name]) => made("li", {}, made("b"), name),
    (element, [, count]) => setText(element.firstElementChild, count.toLocaleString()));
  const all = progress.done + progress.working + progress.queued + progress.heldBack + progress.stuck + progress.failed;
  at("progress").max = Math.max(1, all);
  at("progress").value = progress.done;
  document.title = `${progress.done}/${all} rebooted · careen`;
}

// ---- the chart ----

function stair(times, x, counts, y) {
  const points = [];
  let before = y(0, 0);
  times.forEach((time, place) => {
    const after = y(counts[place], place);
    points.push(`${x(time)},${before}`, `${x(time)},${after}`);
    before = after;
  });
  return [points, before];
}

function stripes(zones, key, x, total, last, css) {
  const instants = [...new Set(zones.flatMap((zone) => zone[key]))].sort((one, other) => one - other);
  if (!instants.length) return [];
  const foot = FRAME.height - FRAME.foot;
  const level = (count) => Math.round(10 * (foot - (foot - FRAME.top) * count / total)) / 10;
  let below = instants.map(() => 0);
  return zones.map((zone, place) => {
    let done = 0;
    const above = instants.map((instant, index) => {
      while (done < zone[key].length && zone[key][done] <= instant) done += 1;
      return below[index] + done;
    });
    const [upper, top] = stair(instants, x, above, level);
    const [lower, bottom] = stair(instants, x, below, level);
    below = above;
    const end = x(last);
    const points = [...upper, `${end},${top}`, `${end},${bottom}`, ...lower.reverse()].join(" ");
    return made("polygon", {svg: true, points, class: `${css} c${place % 8}`});
  });
}

function drawChart(doc) {
  const {chart} = doc;
  const zones = chart.zones;
  keyed(at("chart-legend"), zones, (zone) => zone.name,
    (zone) => made("li", {}, made("i", {class: `c${zones.indexOf(zone) % 8}`}), made("span")),
    (element, zone) => setText(element.lastElementChild,
      `${zone.name}: ${zone.done.length} of ${counted(zone.total, "node")}`));
  row(at("zones"), zones, (zone) => zone.name, (zone) => [zone.name, zone.total, zone.done.length,
    zone.plan.length ? zone.plan.filter((each) => each <= now()).length : "-", zone.working, zone.waiting],
  ["", "n", "n", "n", "n", "n"]);
  setText(at("chart-note"), chart.note);
  const width = Math.max(60, chart.to - chart.from);
  const x = (instant) => Math.round(10 * (FRAME.left
    + (FRAME.width - FRAME.left - FRAME.right) * Math.min(1, Math.max(0, (instant - chart.from) / width)))) / 10;
  const total = Math.max(1, zones.reduce((sum, zone) => sum + zone.total, 0));
  const foot = FRAME.height - FRAME.foot;
  const here = Math.min(now(), chart.to);
  const done = zones.reduce((sum, zone) => sum + zone.done.length, 0);
  const planned = zones.reduce((sum, zone) => sum + zone.plan.filter((each) => each <= here).length, 0);
  const hasPlan = zones.some((zone) => zone.plan.length);
  const label = `${done} of ${counted(total, "node")} rebooted${hasPlan ? `; the plan has ${planned} by now` : ""}`;
  const svg = made("svg", {svg: true, viewBox: `0 0 ${FRAME.width} ${FRAME.height}`, class: "chart", role: "img",
    "aria-label": label});
  for (const tick of ticks(chart.from, chart.from + width)) {
    svg.append(made("line", {svg: true, x1: x(tick), x2: x(tick), y1: FRAME.top, y2: foot, class: "grid"}),
      made("text", {svg: true, x: x(tick) + 4, y: FRAME.height - 10, class: "tick"}, clock(tick)));
  }
  svg.append(...stripes(zones, "plan", x, total, chart.from + width, "planned"),
    ...stripes(zones, "done", x, total, here, "real"),
    made("line", {svg: true, x1: x(here), x2: x(here), y1: FRAME.top, y2: foot, class: "now"}));
  if (doc.progress.finish && doc.progress.finish <= chart.from + width) {
    const end = x(doc.progress.finish);
    svg.append(made("line", {svg: true, x1: end, x2: end, y1: FRAME.top, y2: foot, class: "finish"}));
  }
  svg.append(made("text", {svg: true, x: 6, y: 15}, `rebooted nodes (of ${total.toLocaleString()})`));
  at("chart").replaceChildren(svg);
}

function ticks(from, to) {
  const steps = [60, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 604800];
  const most = window.innerWidth < 640 ? 3 : 7;
  const step = steps.find((each) => (to - from) / each <= most) || Math.ceil((to - from) / most);
  const offset = new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let tick = Math.ceil((from - offset) / step) * step + offset; tick < to - step / 3; tick += step) {
    found.push(tick);
  }
  return found;
}

// ---- at work, and causes ----

function drawWork(doc) {
  at("work-none").hidden = doc.working.length > 0;
  at("work-table").hidden = !doc.working.length;
  row(at("work"), doc.working, (each) => each.node, (each) => [{node: each.node}, each.phase, ageOf(each.since),
    each.expected ? clock(each.expected) : "-", each.says], ["", "t", "t", "t", ""]);
}

function drawCauses(doc) {
  at("causes-none").hidden = doc.causes.length > 0;
  keyed(at("causes"), doc.causes, (cause) => cause.key, () => {
    const list = made("details", {}, made("summary", {}, "The nodes"), made("div"));
    return made("div", {class: "cause"}, made("p", {}, made("b"), made("span", {class: "dim"})), made("p"), list);
  }, (element, cause) => {
    const [head, remedy, list] = element.children;
    setText(head.firstElementChild, `${counted(cause.count, "node")}: ${cause.title}`);
    const facts = [cause.since ? `for ${ageOf(cause.since)}` : "", cause.seen ? `as an agent saw it ${ageOf(cause.seen)} ago`
      : "", cause.ends ? `ends by itself ${clock(cause.ends)}` : "", cause.alone < cause.count
      ? `${cause.alone} held by nothing else` : ""];
    setText(head.lastElementChild, ` ${facts.filter(Boolean).join("; ")}`);
    remedy.replaceChildren(...sentence(cause.remedy));
    const names = cause.nodes.slice(0, 50).map((index) => doc.nodes.name[index]);
    if (list.dataset.names !== names.join(" ")) {
      list.dataset.names = names.join(" ");
      list.lastElementChild.replaceChildren(...names.map(nodeLink),
        cause.nodes.length > 50 ? `and ${cause.nodes.length - 50} more: choose “Held by” below` : "");
    }
  });
}

function drawUnblocks(doc) {
  at("unblocks").hidden = !doc.unblocks.length;
  keyed(at("unblocks-list"), doc.unblocks, (each) => each, () => made("li"), (element, each) => setText(element, each));
  setText(at("unblocks-note"), `Simulated, each on top of those before it, by the plan of ${clock(doc.plannedAt)}.`);
}

// ---- the map ----

function layout(doc, width) {
  const side = window.innerWidth < 640 ? 12 : 14;
  const columns = Math.max(10, Math.floor(width / side));
  const byZone = doc.zones.map(() => []);
  doc.nodes.zone.forEach((zone, index) => byZone[zone].push(index));
  return byZone.map((indexes) => ({
    side, columns, rows: Math.max(1, Math.ceil(indexes.length / columns)),
    indexes: indexes.sort((one, other) => doc.nodes.phase[one] - doc.nodes.phase[other]
      || (doc.nodes.name[one] < doc.nodes.name[other] ? -1 : 1)),
  }));
}

function drawMap(doc) {
  const map = at("map");
  const style = getComputedStyle(document.documentElement);
  const colours = doc.phases.map((phase) => style.getPropertyValue(`--${GROUP_OF[phase] || "waiting"}`).trim());
  const counts = doc.phases.map(() => 0);
  doc.nodes.phase.forEach((phase) => { counts[phase] += 1; });
  keyed(at("map-legend"), doc.phases.map((name, index) => ({name, count: counts[index]})).filter(({count}) => count),
    ({name}) => name, ({name}) => made("li", {}, made("i", {class: `p-${GROUP_OF[name] || "waiting"}`}), made("span")),
    (element, {name, count}) => setText(element.lastElementChild, `${name}: ${count.toLocaleString()}`));
  const blocks = layout(doc, map.clientWidth || 600);
  keyed(map, doc.zones.map((name, index) => ({name, index})), ({name}) => name,
    () => made("div", {}, made("h3"), made("canvas", {"aria-hidden": "true"})), (element, {name, index}) => {
      const [title, canvas] = element.children;
      const {side, columns, rows, indexes} = blocks[index];
      setText(title, `${name} (${indexes.length.toLocaleString()})`);
      const scale = window.devicePixelRatio || 1;
      const wide = Math.min(columns, Math.max(1, indexes.length)) * side;
      canvas.width = wide * scale;
      canvas.height = rows * side * scale;
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${rows * side}px`;
      const pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      indexes.forEach((node, place) => {
        pen.fillStyle = colours[doc.nodes.phase[node]];
        pen.fillRect((place % columns) * side, Math.floor(place / columns) * side, side - 2, side - 2);
      });
      const under = (event) => indexes[Math.floor(event.offsetY / side) * columns + Math.floor(event.offsetX / side)];
      canvas.onmousemove = (event) => {
        const node = under(event);
        canvas.title = node === undefined ? "" : `${doc.nodes.name[node]}: ${doc.phases[doc.nodes.phase[node]]}`;
      };
      canvas.onclick = (event) => {
        const node = under(event);
        if (node !== undefined) location.hash = hashOf(doc.nodes.name[node]);
      };
    });
}

// ---- the table of nodes ----

function choices(select, names) {
  const wanted = ["", ...names];
  const have = [...select.options].map((option) => option.value);
  if (wanted.length === have.length && wanted.every((each, place) => each === have[place])) return;
  const chosen = select.value;
  select.replaceChildren(...wanted.map((name) => new Option(name || "all", name)));
  select.value = wanted.includes(chosen) ? chosen : "";
}

function drawNodes(doc) {
  choices(at("phase"), doc.phases);
  choices(at("zone"), doc.zones);
  choices(at("cause"), doc.causes.map((cause) => cause.title));
  const search = at("search").value.trim().toLowerCase();
  const [phase, zone, title] = [at("phase").value, at("zone").value, at("cause").value];
  const cause = doc.causes.find((each) => each.title === title);
  const held = cause ? new Set(cause.nodes) : null;
  const {nodes} = doc;
  const found = [];
  for (let index = 0; index < nodes.name.length; index += 1) {
    if ((!search || nodes.name[index].toLowerCase().includes(search))
      && (!phase || doc.phases[nodes.phase[index]] === phase)
      && (!zone || doc.zones[nodes.zone[index]] === zone) && (!held || held.has(index))) found.push(index);
  }
  found.sort((one, other) => nodes.phase[one] - nodes.phase[other] || one - other);
  const rows = found.slice(0, state.shown);
  setText(at("found"), `${counted(found.length, "node")}${rows.length < found.length ? `; the first ${rows.length}
    are shown` : ""}.`.replace(/\s+/g, " "));
  at("more").hidden = rows.length >= found.length;
  row(at("rows"), rows, (index) => nodes.name[index], (index) => [{node: nodes.name[index]},
    doc.zones[nodes.zone[index]], doc.phases[nodes.phase[index]] + (nodes.ready[index] ? "" : ", NotReady"),
    ageOf(nodes.since[index]), (nodes.causes[index] || []).map((each) => doc.causes[each].title).join("; ")],
  ["", "minor", "t", "t", ""]);
}

// ---- one node ----

function drawNode(doc) {
  setText(at("node-title"), `Node ${doc.name}`);
  const facts = made("dl", {}, ...doc.facts.flatMap(([name, value]) => [made("dt", {}, name), made("dd", {}, value)]));
  const parts = [made("p", {}, ...sentence(doc.summary)), facts];
  if (doc.waysOut.length) {
    parts.push(made("h3", {}, "What you can do"),
      made("ul", {}, ...doc.waysOut.map((each) => made("li", {}, ...sentence(each)))));
  }
  for (const {title, header, rows, none} of doc.tables) {
    parts.push(made("h3", {}, title));
    parts.push(rows.length ? made("div", {class: "wide", tabindex: "0", role: "region", "aria-label": title},
      made("table", {}, made("thead", {}, made("tr", {}, ...header.map((each) => made("th", {scope: "col"}, each)))),
        made("tbody", {}, ...rows.map((cells) => made("tr", {}, ...cells.map((each) => made("td", {}, each)))))))
      : made("p", {class: "dim"}, none));
  }
  at("node-body").replaceChildren(...parts);
}

async function followHash() {
  const name = location.hash.startsWith("#node=") ? decodeURIComponent(location.hash.slice(6)) : "";
  const isNew = name !== state.node;
  state.node = name;
  at("node").hidden = !name;
  if (!name) return;
  if (isNew) {
    setText(at("node-title"), `Node ${name}`);
    at("node-body").replaceChildren(made("p", {class: "dim"}, "Reading the node."));
    at("node-title").focus();
    state.nodeEtag = "";
  }
  try {
    const answer = await fetch(`nodes/${encodeURIComponent(name)}.json`,
      {cache: "no-store", headers: state.nodeEtag ? {"If-None-Match": state.nodeEtag} : {}});
    if (answer.status === 304 || state.node !== name) return;
    const body = await answer.json();
    if (answer.ok) {
      state.nodeEtag = answer.headers.get("ETag") || "";
      drawNode(body);
    } else at("node-body").replaceChildren(made("p", {class: "trouble"}, body.error));
  } catch {
    // the next look at the roll-out tells that the server does not answer
  }
}

// ---- refreshing ----

function draw() {
  const {doc} = state;
  if (!doc) return;
  const began = performance.now();
  drawTop(doc);
  drawChart(doc);
  drawWork(doc);
  drawCauses(doc);
  drawUnblocks(doc);
  drawMap(doc);
  drawNodes(doc);
  setText(at("foot"), doc.foot);
  state.drawMs = performance.now() - began;
  document.documentElement.dataset.drawMs = state.drawMs.toFixed(1);
}

function tellTrouble(text) {
  at("trouble").hidden = !text;
  setText(at("trouble"), text);
}

async function refresh() {
  try {
    const answer = await fetch("rollout.json",
      {cache: "no-store", headers: state.etag ? {"If-None-Match": state.etag} : {}});
    const said = Date.parse(answer.headers.get("Date") || "");
    if (said) state.ahead = Math.abs(said - Date.now()) > 2000 ? (said - Date.now()) / 1000 : 0;
    if (answer.status === 200) {
      state.etag = answer.headers.get("ETag") || "";
      state.doc = await answer.json();
      draw();
    } else if (answer.status !== 304 && answer.status !== 503) tellTrouble(`careen serve answered ${answer.status}.`);
    if (state.doc || answer.status === 503) {
      const {error} = answer.status === 503 ? await answer.json() : {error: ""};
      const old = state.doc && now() - state.doc.readAt > Math.max(30, 4 * state.doc.refreshSeconds);
      tellTrouble(error || (state.doc && state.doc.trouble) || (old
        ? `The cluster was read ${ageOf(state.doc.readAt)} ago; what this page shows is as old.` : ""));
    }
  } catch {
    tellTrouble(`careen serve does not answer. Is the command, or the port-forward, still running?${state.doc
      ? ` What this page shows is ${ageOf(state.doc.readAt)} old.` : ""}`);
  }
}

async function loop() {
  await refresh();
  await followHash();
  setTimeout(loop, document.hidden ? SLOW_MS : ASK_MS);
}

const again = () => { state.shown = PAGE; if (state.doc) drawNodes(state.doc); };
["search", "phase", "zone", "cause"].forEach((id) => at(id).addEventListener("input", again));
at("filter").addEventListener("submit", (event) => event.preventDefault());
at("more").addEventListener("click", () => { state.shown += PAGE; if (state.doc) drawNodes(state.doc); });
window.addEventListener("hashchange", followHash);
window.addEventListener("resize", () => { if (state.doc) { drawChart(state.doc); drawMap(state.doc); } });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
setInterval(() => {
  if (state.doc && !document.hidden) { drawWork(state.doc); drawCauses(state.doc); }
}, 5000);
loop();
