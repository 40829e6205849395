// The map of a space: cells and entities, as the console sends them once a second. All text goes through textContent.
"use strict";

const page = document.getElementById("map-page");
const canvas = document.getElementById("map");
const pen = canvas.getContext("2d");
const state = document.getElementById("live-state");
const legend = document.getElementById("legend");
const picked = document.getElementById("picked");
const alarms = document.getElementById("alarms");
const cellRows = document.querySelector("#cells tbody");
const entityRows = document.querySelector("#entities tbody");
const space = page.dataset.space;

const COLOURS = 8;
const ROWS = 50;
const PERIOD = 1000;
const REOPEN_AFTER = 500;
const STALE_AFTER = 5000;
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

let frame = { cells: [], types: [], entities: [], alarms: [] };
let dots = new Map();
let arrived = 0;
let view = { x: 0, z: 0, scale: 1 };
let isFitted = false;
let region = null;
let source = null;
let reopening = 0;
let chosen = null;
let isDrawing = false;
let colours = {};
let typeColours = [];

function readColours() {
  const style = getComputedStyle(page);
  const of = (name) => style.getPropertyValue(name).trim();
  colours = {
    ink: of("--ink"),
    quiet: of("--quiet"),
    line: of("--line"),
    accent: of("--accent"),
    ground: of("--raised"),
    types: [],
  };
  for (let nth = 0; nth < COLOURS; nth += 1) colours.types.push(of(`--type-${nth}`));
}

// Types are coloured in the order of their names, so that a colour stays.
function colourTypes(types) {
  const sorted = [...types].sort();
  return types.map((name) => sorted.indexOf(name) % COLOURS);
}

const toScreen = (x, z) => [
  canvas.clientWidth / 2 + (x - view.x) * view.scale,
  canvas.clientHeight / 2 - (z - view.z) * view.scale,
];
const toSpace = (left, top) => [
  view.x + (left - canvas.clientWidth / 2) / view.scale,
  view.z - (top - canvas.clientHeight / 2) / view.scale,
];

function fit() {
  const xs = [];
  const zs = [];
  for (const dot of dots.values()) {
    xs.push(dot.x);
    zs.push(dot.z);
  }
  for (const cell of frame.cells) {
    xs.push(...[cell.west, cell.east].filter((edge) => edge !== null));
    zs.push(...[cell.south, cell.north].filter((edge) => edge !== null));
  }
  if (xs.length === 0) xs.push(0);
  if (zs.length === 0) zs.push(0);
  const least = (values) => values.reduce((a, b) => Math.min(a, b));
  const most = (values) => values.reduce((a, b) => Math.max(a, b));
  const wide = Math.max(most(xs) - least(xs), 40) * 1.15;
  const high = Math.max(most(zs) - least(zs), 40) * 1.15;
  view.x = (least(xs) + most(xs)) / 2;
  view.z = (least(zs) + most(zs)) / 2;
  view.scale = Math.min(canvas.clientWidth / wide, canvas.clientHeight / high);
}

function edgesInView() {
  const [west, north] = toSpace(0, 0);
  const [east, south] = toSpace(canvas.clientWidth, canvas.clientHeight);
  return { west, east, south, north };
}

// The region to ask for: the whole space, unless more entities are there than are sent and only a part is in view.
function wanted() {
  const there = frame.cells.reduce((sum, cell) => sum + (cell.inRegion ?? 0), 0);
  if (region === null && there <= frame.entities.length) return null;
  const edges = edgesInView();
  const [wide, high] = [edges.east - edges.west, edges.north - edges.south];
  const isInside =
    region &&
    edges.west >= region.west &&
    edges.east <= region.east &&
    edges.south >= region.south &&
    edges.north <= region.north;
  const isClose = region && region.east - region.west < wide * 4;
  if (isInside && (isClose || there <= frame.entities.length)) return region;
  const all = [...dots.values()];
  if (
    all.length > 0 &&
    all.every((dot) => dot.x >= edges.west && dot.x <= edges.east && dot.z >= edges.south && dot.z <= edges.north)
  )
    return null;
  const whole = (at) => Math.max(-2e9, Math.min(2e9, Math.round(at / 10) * 10));
  return {
    west: whole(edges.west - wide / 2) - 10,
    east: whole(edges.east + wide / 2) + 10,
    south: whole(edges.south - high / 2) - 10,
    north: whole(edges.north + high / 2) + 10,
  };
}

function open() {
  close();
  const query = region ? `?west=${region.west}&east=${region.east}&south=${region.south}&north=${region.north}` : "";
  source = new EventSource(`/map/${space}/events${query}`);
  source.onmessage = (message) => take(JSON.parse(message.data));
  source.onerror = (event) => say(failure(event.target), false);
}

function failure(stream) {
  if (stream.readyState !== EventSource.CLOSED) return "Not connected to the console. Trying again.";
  return "Refused by the console: too much is watched, or you are no longer logged in. Load the page again.";
}

function close() {
  if (source) source.close();
  source = null;
}

function moved() {
  isFitted = true;
  draw();
  clearTimeout(reopening);
  reopening = setTimeout(() => {
    const next = wanted();
    if (JSON.stringify(next) !== JSON.stringify(region)) {
      region = next;
      open();
    }
  }, REOPEN_AFTER);
}

function say(text, isCurrent) {
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("stale", !isCurrent);
}

function take(next) {
  if (next.problem) {
    say(`Not current: ${next.problem}.`, false);
    return;
  }
  const now = performance.now();
  const before = dots;
  frame = next;
  typeColours = colourTypes(frame.types);
  dots = new Map();
  for (const [id, type, x, z, hasClient] of frame.entities) {
    const was = before.get(id);
    const from = was ? at(was, now) : [x, z];
    // An entity that is far from where it was did not walk there.
    const jumped = Math.hypot(from[0] - x, from[1] - z) > 60;
    dots.set(id, {
      id,
      type,
      x,
      z,
      hasClient: hasClient === 1,
      fromX: jumped ? x : from[0],
      fromZ: jumped ? z : from[1],
    });
  }
  arrived = now;
  if (!isFitted && canvas.clientWidth > 0) {
    fit();
    isFitted = true;
  }
  const silent = frame.cells.filter((cell) => cell.inRegion === null).map((cell) => cell.owner);
  if (silent.length > 0) say(`Live, without the entities of owner ${silent.join(", ")}, which does not answer.`, false);
  else if (frame.cells.length === 0) say("Live. This space has no cells.", true);
  else say("Live", true);
  showAlarms();
  showLegend();
  showCells();
  showEntities();
  showPicked();
  draw();
}

function at(dot, now) {
  if (stillness.matches) return [dot.x, dot.z];
  const share = Math.min(1, (now - arrived) / PERIOD);
  return [dot.fromX + (dot.x - dot.fromX) * share, dot.fromZ + (dot.z - dot.fromZ) * share];
}

function draw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame((now) => {
    isDrawing = false;
    paint(now);
    if (!stillness.matches && !document.hidden && performance.now() - arrived < PERIOD + 200) draw();
  });
}

function paint(now) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  for (const cell of frame.cells) paintCell(cell, width, height);
  for (const dot of dots.values()) paintDot(dot, now, width, height);
  for (const cell of frame.cells) paintLabel(cell, width, height);
  paintScale(height);
}

function box(cell, width, height) {
  const [left, top] = toScreen(cell.west ?? 0, cell.north ?? 0);
  const [right, bottom] = toScreen(cell.east ?? 0, cell.south ?? 0);
  return {
    left: cell.west === null ? 0 : left,
    right: cell.east === null ? width : right,
    top: cell.north === null ? 0 : top,
    bottom: cell.south === null ? height : bottom,
  };
}

function paintCell(cell, width, height) {
  const { left, right, top, bottom } = box(cell, width, height);
  pen.globalAlpha = Math.min(0.04 + cell.load * 0.3, 0.34);
  pen.fillStyle = colours.accent;
  pen.fillRect(left, top, right - left, bottom - top);
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.quiet;
  pen.lineWidth = 1;
  pen.setLineDash(cell.isRetiring ? [4, 4] : []);
  pen.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
  pen.setLineDash([]);
}

function paintLabel(cell, width, height) {
  const { left, right, top, bottom } = box(cell, width, height);
  const inner = {
    left: Math.max(left, 0),
    right: Math.min(right, width),
    top: Math.max(top, 0),
    bottom: Math.min(bottom, height),
  };
  const lines = [`owner ${cell.owner}`, `load ${cell.load.toFixed(3)}`, `${cell.entities} entities`];
  pen.font = "600 12px system-ui, sans-serif";
  const wide = lines.reduce((most, line) => Math.max(most, pen.measureText(line).width), 0) + 12;
  if (inner.right - inner.left < wide + 8 || inner.bottom - inner.top < 62) return;
  pen.globalAlpha = 0.85;
  pen.fillStyle = colours.ground;
  pen.fillRect(inner.left + 6, inner.top + 6, wide, 50);
  pen.globalAlpha = 1;
  pen.fillStyle = colours.ink;
  pen.textBaseline = "top";
  lines.forEach((line, nth) => {
    pen.font = nth === 0 ? "600 12px system-ui, sans-serif" : "12px system-ui, sans-serif";
    pen.fillText(line, inner.left + 12, inner.top + 10 + nth * 15);
  });
}

function paintDot(dot, now, width, height) {
  const [left, top] = toScreen(...at(dot, now));
  if (left < -8 || top < -8 || left > width + 8 || top > height + 8) return;
  pen.fillStyle = colours.types[typeColours[dot.type]];
  pen.beginPath();
  if (dot.hasClient) {
    pen.arc(left, top, 4.5, 0, 2 * Math.PI);
    pen.fill();
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.stroke();
  } else {
    pen.rect(left - 2.5, top - 2.5, 5, 5);
    pen.fill();
  }
  if (dot.id === chosen) {
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.arc(left, top, 10, 0, 2 * Math.PI);
    pen.stroke();
  }
}

function paintScale(height) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];
  const metres = steps.find((step) => step * view.scale >= 60) ?? steps[steps.length - 1];
  const wide = metres * view.scale;
  pen.strokeStyle = colours.ink;
  pen.fillStyle = colours.ink;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(12, height - 18);
  pen.lineTo(12, height - 12);
  pen.lineTo(12 + wide, height - 12);
  pen.lineTo(12 + wide, height - 18);
  pen.stroke();
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "bottom";
  pen.fillText(`${metres} m`, 18, height - 14);
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function showAlarms() {
  if (alarms.contains(document.activeElement)) return;
  const list = element("ul", null, { class: "lines alarms" });
  for (const what of frame.alarms.slice(0, Number(alarms.dataset.limit))) {
    const item = element("li", null);
    item.append(element("b", what));
    list.append(item);
  }
  const all = element("li", null);
  all.append(element("a", `${frame.alarms.length} alarms in all`, { href: "/processes" }));
  list.append(all);
  alarms.replaceChildren(...(frame.alarms.length > 0 ? [list] : []));
}

function showLegend() {
  const counts = frame.types.map(() => 0);
  for (const dot of dots.values()) counts[dot.type] += 1;
  const there = frame.cells.reduce((sum, cell) => sum + (cell.inRegion ?? 0), 0);
  const names = frame.types.map((name, type) => [name, type]).sort();
  const items = names.map(([name, type]) => {
    const item = element("li", null);
    item.append(
      element("span", null, { class: `swatch type-${typeColours[type]}`, "aria-hidden": "true" }),
      `${name}: ${counts[type]}`,
    );
    return item;
  });
  const isSampled = there > dots.size;
  const about = isSampled
    ? `${dots.size} of ${there} entities are shown: zoom in to see the rest.`
    : `${there} entities.`;
  items.push(element("li", `${about} Round with a rim: it has a client.`, { class: "quiet" }));
  legend.replaceChildren(...items);
}

const edge = (at) => (at === null ? "–" : at.toFixed(1));

function showCells() {
  const rows = frame.cells.map((cell) => {
    const row = element("tr", null);
    const moved = cell.movedSecondsAgo === null ? "–" : `${cell.movedSecondsAgo} s ago`;
    const texts = [
      edge(cell.west),
      edge(cell.east),
      edge(cell.south),
      edge(cell.north),
      cell.load.toFixed(3),
      cell.entities,
      cell.clients,
      cell.isRetiring ? "is being retired" : moved,
    ];
    row.append(
      element("th", cell.owner, { scope: "row" }),
      ...texts.map((text) => element("td", text, { class: "number" })),
    );
    return row;
  });
  cellRows.replaceChildren(...rows);
}

function showEntities() {
  if (!entityRows.closest("details").open || entityRows.contains(document.activeElement)) return;
  const { west, east, south, north } = edgesInView();
  const inView = [...dots.values()].filter((dot) => dot.x >= west && dot.x <= east && dot.z >= south && dot.z <= north);
  const near = (dot) => Math.hypot(dot.x - view.x, dot.z - view.z);
  const rows = inView
    .sort((a, b) => near(a) - near(b))
    .slice(0, ROWS)
    .map((dot) => {
      const row = element("tr", null);
      const name = element("th", null, { scope: "row" });
      name.append(element("a", dot.id, { href: `/entity/${dot.id}` }));
      const texts = [frame.types[dot.type], dot.x.toFixed(1), dot.z.toFixed(1), dot.hasClient ? "yes" : "no"];
      row.append(name, ...texts.map((text) => element("td", text)));
      return row;
    });
  entityRows.replaceChildren(...rows);
}

function showPicked() {
  const dot = chosen === null ? null : dots.get(chosen);
  if (!dot) {
    if (chosen !== null) picked.textContent = `Entity ${chosen} is not in what is shown.`;
    return;
  }
  if (picked.dataset.entity !== dot.id) {
    picked.dataset.entity = dot.id;
    picked.replaceChildren(
      element("a", `${frame.types[dot.type]} ${dot.id}`, { href: `/entity/${dot.id}` }),
      element("span", ""),
    );
  }
  picked.lastChild.textContent = ` at ${dot.x.toFixed(1)}, ${dot.z.toFixed(1)}${dot.hasClient ? ", with a client" : ""}`;
}

function pick(left, top) {
  const now = performance.now();
  let best = null;
  let distance = 14;
  for (const dot of dots.values()) {
    const [x, y] = toScreen(...at(dot, now));
    const away = Math.hypot(x - left, y - top);
    if (away < distance) [best, distance] = [dot, away];
  }
  chosen = best ? best.id : null;
  picked.dataset.entity = "";
  picked.textContent = best ? "" : "Choose an entity to see what it is.";
  showPicked();
  draw();
}

function zoom(factor, left = canvas.clientWidth / 2, top = canvas.clientHeight / 2) {
  const [x, z] = toSpace(left, top);
  view.scale = Math.min(200, Math.max(0.001, view.scale * factor));
  view.x = x - (left - canvas.clientWidth / 2) / view.scale;
  view.z = z + (top - canvas.clientHeight / 2) / view.scale;
  moved();
}

function pan(right, up) {
  view.x += right / view.scale;
  view.z += up / view.scale;
  moved();
}

function fitAgain() {
  fit();
  moved();
}

const pointers = new Map();
let dragged = 0;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  if (pointers.size === 0) dragged = 0;
  pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
});
canvas.addEventListener("pointermove", (event) => {
  const was = pointers.get(event.pointerId);
  if (!was) return;
  const is = [event.offsetX, event.offsetY];
  const others = [...pointers.entries()].filter(([id]) => id !== event.pointerId);
  pointers.set(event.pointerId, is);
  dragged += Math.hypot(is[0] - was[0], is[1] - was[1]);
  if (others.length === 0) pan(was[0] - is[0], is[1] - was[1]);
  else {
    const other = others[0][1];
    const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]);
    if (apart(was) > 0) zoom(apart(is) / apart(was), (is[0] + other[0]) / 2, (is[1] + other[1]) / 2);
  }
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => {
    if (pointers.delete(event.pointerId) && name === "pointerup" && dragged < 5) pick(event.offsetX, event.offsetY);
  });
}
canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
  },
  { passive: false },
);
canvas.addEventListener("keydown", (event) => {
  const step = event.shiftKey ? 200 : 50;
  const keys = {
    ArrowLeft: () => pan(-step, 0),
    ArrowRight: () => pan(step, 0),
    ArrowUp: () => pan(0, step),
    ArrowDown: () => pan(0, -step),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    0: fitAgain,
    Enter: () => pick(canvas.clientWidth / 2, canvas.clientHeight / 2),
  };
  const act = keys[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
});
document.getElementById("closer").addEventListener("click", () => zoom(1.5));
document.getElementById("farther").addEventListener("click", () => zoom(1 / 1.5));
document.getElementById("fit").addEventListener("click", fitAgain);
document.getElementById("entities").closest("details").addEventListener("toggle", showEntities);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) close();
  else open();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  draw();
});
new ResizeObserver(draw).observe(canvas);

setInterval(() => {
  const age = performance.now() - arrived;
  if (source?.readyState === EventSource.OPEN && arrived > 0 && age > STALE_AFTER) {
    say(`Not current: nothing new for ${Math.round(age / 1000)} s.`, false);
  }
}, PERIOD);

readColours();
open();
