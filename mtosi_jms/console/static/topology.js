// Draws the map of the network, with its alarms. What is known of an element is in the page below, which the server makes.
// On a canvas, not by WebGL: the desktops of control rooms often have no graphics card. While the map moves, the last
// picture of it is moved; it is drawn anew when it rests.

const POLL = 2000;
const REST = 60; // milliseconds without a key or a move, after which a search or a drawing begins
const KEPT = "mtosi-places";
const FONT = "system-ui, sans-serif";
const SIGNS = { CRITICAL: "C", MAJOR: "M", MINOR: "m", WARNING: "w", INDETERMINATE: "i" };
const ORDER = Object.keys(SIGNS); // the gravest first
const LABEL = { size: 14, cell: [110, 26], most: 160 };
const section = document.getElementById("map");
const canvas = document.getElementById("drawing");
const said = document.getElementById("said");
const around = document.getElementById("around");
const form = document.getElementById("find");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const context = canvas.getContext("2d");
const picture = document.createElement("canvas"); // the last drawing
const zoom = d3.zoom().scaleExtent([0.02, 40]).on("zoom", moved);
const view = d3.select(canvas).call(zoom).on("dblclick.zoom", null);

let network = null; // {elements, links, layers, leftOut, linksLeftOut}, as the console sends it
let index = new Map(); // numbers of elements by name
let neighbours = []; // numbers of the elements next to each
let places = null; // x and y of each element
let tree = null; // finds the element at a place
let order = []; // elements whose labels come first
let worker = null;
let mark = null;
let alarms = new Map(); // [severity, how many] by the number of the element
let alarmTag = "";
let colours = {};
let chosen = null; // the number of the element that the page tells of
let near = null; // it and its neighbours
let matches = null; // the elements with the text that is searched
let hovered = null;
let onlyNear = false;
let drawn = d3.zoomIdentity; // where the picture was drawn
let timer = null;
const hiddenLayers = new Set();

const lastStep = (name) => name.slice(name.lastIndexOf("=") + 1);
const number = (value) => value.toLocaleString("en");
const transform = () => d3.zoomTransform(canvas);

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["came", "track", "edge", "accent", "ink", "card", ...ORDER.map((name) => name.toLowerCase())];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// Moving

function moved() {
  const now = transform();
  const ratio = now.k / drawn.k;
  const scale = devicePixelRatio;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const [x, y] = [now.x - ratio * drawn.x, now.y - ratio * drawn.y];
  context.setTransform(ratio, 0, 0, ratio, x * scale, y * scale);
  context.drawImage(picture, 0, 0);
  drawSoon();
}

function drawSoon(wait = REST) {
  clearTimeout(timer);
  timer = setTimeout(() => requestAnimationFrame(drawAll), wait);
}

function fit() {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let at = 0; at < places.length; at += 2) {
    left = Math.min(left, places[at]);
    right = Math.max(right, places[at]);
    top = Math.min(top, places[at + 1]);
    bottom = Math.max(bottom, places[at + 1]);
  }
  const k = Math.min((0.94 * width) / Math.max(right - left, 1), (0.94 * height) / Math.max(bottom - top, 1), 4);
  const [x, y] = [width / 2 - (k * (left + right)) / 2, height / 2 - (k * (top + bottom)) / 2];
  go(zoom.transform, d3.zoomIdentity.translate(x, y).scale(k));
}

function go(how, ...where) {
  how.call(zoom, calm.matches || !section.hasAttribute("data-ready") ? view : view.transition().duration(120), ...where);
}

// Drawing

function drawAll() {
  if (!places) return;
  const scale = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  for (const each of [canvas, picture]) {
    if (each.width !== Math.round(width * scale)) each.width = Math.round(width * scale);
    if (each.height !== Math.round(height * scale)) each.height = Math.round(height * scale);
  }
  drawn = transform();
  const pen = picture.getContext("2d");
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, picture.width, picture.height);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  const spots = new Float32Array(places.length); // on the canvas
  for (let at = 0; at < places.length; at += 2) {
    spots[at] = drawn.applyX(places[at]);
    spots[at + 1] = drawn.applyY(places[at + 1]);
  }
  const at = (node) => [spots[2 * node], spots[2 * node + 1]];
  const isSeen = ([x, y]) => x > -20 && y > -20 && x < width + 20 && y < height + 20;
  drawLinks(pen, spots, width, height);
  drawNodes(pen, at, isSeen);
  drawLabels(pen, at, isSeen);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0);
}

function drawLinks(pen, spots, width, height) {
  const paths = { [near ? "track" : "edge"]: new Path2D(), accent: new Path2D() };
  const other = near ? paths.track : paths.edge;
  for (const [first, second, layer] of network.links) {
    if (hiddenLayers.has(layer)) continue;
    const touches = near && (first === chosen || second === chosen);
    if (onlyNear && !touches) continue;
    const x1 = spots[2 * first];
    const y1 = spots[2 * first + 1];
    const x2 = spots[2 * second];
    const y2 = spots[2 * second + 1];
    if (Math.max(x1, x2) < 0 || Math.max(y1, y2) < 0 || Math.min(x1, x2) > width || Math.min(y1, y2) > height) continue;
    const path = touches ? paths.accent : other;
    path.moveTo(x1, y1);
    path.lineTo(x2, y2);
  }
  for (const [colour, path] of Object.entries(paths)) {
    pen.globalAlpha = colour === "accent" ? 1 : Math.min(Math.max(drawn.k, 0.3), 1); // many lines would hide the rest
    pen.lineWidth = colour === "accent" ? 2 : 1;
    pen.strokeStyle = colours[colour];
    pen.stroke(path);
  }
  pen.globalAlpha = 1;
}

// The radius of an element; without one, that of all elements with alarms.
function radius(node) {
  const size = Math.min(Math.max(1.2, 2.2 * Math.sqrt(drawn.k)), 9);
  return node === null || alarms.has(node) || node === chosen ? Math.max(size + 1, 6) : size;
}

function isDim(node) {
  return (near !== null || matches !== null) && !near?.has(node) && !matches?.has(node);
}

// An element with an alarm: the colour of the severity and, for whoever does not tell colours apart, its letter.
function signOf(severity) {
  const size = radius(null);
  const scale = devicePixelRatio;
  const sign = document.createElement("canvas");
  sign.width = sign.height = Math.ceil(2 * size * scale);
  const pen = sign.getContext("2d");
  pen.scale(scale, scale);
  pen.fillStyle = colours[severity.toLowerCase()];
  pen.arc(size, size, size, 0, 2 * Math.PI);
  pen.fill();
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = colours.card;
  pen.font = `700 11px ${FONT}`;
  pen.fillText(SIGNS[severity], size, size + 0.5);
  return sign;
}

function drawNodes(pen, at, isSeen) {
  const plain = { track: new Path2D(), came: new Path2D() };
  const alarmed = new Map(ORDER.toReversed().map((severity) => [severity, []])); // the gravest are drawn last
  for (let node = 0; node < network.elements.length; node++) {
    if (onlyNear && !near.has(node)) continue;
    const [x, y] = at(node);
    if (!isSeen([x, y])) continue;
    if (alarms.has(node)) {
      alarmed.get(alarms.get(node)[0]).push([x, y]);
      continue;
    }
    const path = isDim(node) ? plain.track : plain.came;
    const size = radius(node);
    if (size < 2.5) path.rect(x - size, y - size, 2 * size, 2 * size);
    else {
      path.moveTo(x + size, y);
      path.arc(x, y, size, 0, 2 * Math.PI);
    }
  }
  for (const [name, path] of Object.entries(plain)) {
    pen.fillStyle = colours[name];
    pen.fill(path);
  }
  const size = radius(null);
  for (const [severity, spots] of alarmed) {
    const sign = signOf(severity);
    for (const [x, y] of spots) pen.drawImage(sign, x - size, y - size, 2 * size, 2 * size);
  }
  for (const node of [chosen, hovered]) {
    if (node === null) continue;
    pen.lineWidth = 3;
    pen.strokeStyle = colours.accent;
    pen.beginPath();
    pen.arc(...at(node), radius(node) + 3, 0, 2 * Math.PI);
    pen.stroke();
  }
}

function drawLabels(pen, at, isSeen) {
  const taken = new Set();
  const wanted = [chosen, hovered, ...(matches ?? []), ...(near ?? []), ...order];
  const done = new Set([null]);
  pen.textAlign = "left";
  pen.font = `${LABEL.size}px ${FONT}`;
  pen.lineWidth = 4;
  pen.lineJoin = "round";
  pen.strokeStyle = colours.card;
  pen.fillStyle = colours.ink;
  let count = 0;
  for (const node of wanted) {
    if (count > LABEL.most) return;
    if (done.has(node) || (onlyNear && !near.has(node))) continue;
    done.add(node);
    if (isDim(node) && node !== hovered) continue;
    const place = at(node);
    if (!isSeen(place)) continue;
    const [column, row] = place.map((value, side) => Math.floor(value / LABEL.cell[side]));
    const cells = [-1, 0, 1].flatMap((x) => [-1, 0, 1].map((y) => `${column + x} ${row + y}`));
    if (node !== chosen && node !== hovered && cells.some((cell) => taken.has(cell))) continue;
    taken.add(`${column} ${row}`);
    count++;
    const text = [lastStep(network.elements[node]), place[0] + radius(node) + 3, place[1]];
    pen.strokeText(...text);
    pen.fillText(...text);
  }
}

// Choosing

function setChosen(name, move) {
  chosen = index.get(name) ?? null;
  near = chosen === null ? null : new Set([chosen, ...neighbours[chosen]]);
  onlyNear &&= near !== null;
  around.disabled = near === null;
  around.setAttribute("aria-pressed", String(onlyNear));
  drawSoon(0);
  if (chosen !== null && move && places) {
    go(zoom.translateTo, places[2 * chosen], places[2 * chosen + 1]);
  }
}

function refreshPage() {
  document.dispatchEvent(new Event("console:refresh"));
}

const named = () => new URL(location.href).searchParams.get("element");

// The page of an element, without loading the map again.
function visit(url, move = true) {
  history.pushState(null, "", url);
  setChosen(named(), move);
  refreshPage();
}

function elementUrl(name) {
  const parameters = new URLSearchParams();
  if (form.q.value) parameters.set("q", form.q.value);
  if (name) parameters.set("element", name);
  return `/topology${parameters.size ? `?${parameters}` : ""}`;
}

function search() {
  const text = form.q.value.trim().toLowerCase();
  matches = null;
  if (text) {
    matches = new Set();
    network.elements.forEach((name, node) => name.toLowerCase().includes(text) && matches.add(node));
  }
  drawSoon(0);
}

function nodeAt(event) {
  if (!tree) return null;
  const [x, y] = transform().invert(d3.pointer(event, canvas));
  return tree.find(x, y, 14 / transform().k) ?? null;
}

// Loading

function setPlaces(found) {
  places = found;
  tree = d3.quadtree(d3.range(network.elements.length), (node) => found[2 * node], (node) => found[2 * node + 1]);
}

// A network that was laid out in this tab is not laid out again.
function keptPlaces() {
  try {
    const [kept, found] = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    return kept === mark && found.length === 2 * network.elements.length ? found : null;
  } catch {
    return null;
  }
}

function keepPlaces() {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify([mark, Array.from(places, (value) => Math.round(value * 10) / 10)]));
  } catch {
    // Not kept, then.
  }
}

function laidOut() {
  fit();
  section.dataset.ready = "";
  const parts = [`${number(network.elements.length)} elements and ${number(network.links.length)} lines`];
  if (network.leftOut) parts.push(`${number(network.leftOut)} elements with fewer links are only in the list`);
  if (network.linksLeftOut) parts.push(`${number(network.linksLeftOut)} lines are left out`);
  said.textContent = `${parts.join("; ")}.`;
  if (chosen !== null) go(zoom.transform, closeTo(chosen));
}

function closeTo(node) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  return d3.zoomIdentity.translate(width / 2, height / 2).scale(1.5).translate(-places[2 * node], -places[2 * node + 1]);
}

function layOut() {
  worker?.terminate();
  const kept = keptPlaces();
  if (kept) {
    setPlaces(kept);
    laidOut();
    return;
  }
  said.textContent = "The map is being laid out.";
  let hasMoved = false;
  zoom.on("start", ({ sourceEvent }) => { hasMoved ||= Boolean(sourceEvent); });
  worker = new Worker(section.dataset.layout);
  worker.onmessage = ({ data: { places: found, done } }) => {
    setPlaces(found);
    if (!hasMoved) fit();
    drawSoon(0);
    if (!done) return;
    keepPlaces();
    laidOut();
  };
  worker.postMessage({ count: network.elements.length, links: network.links });
}

function showLayers() {
  const known = document.getElementById("layers");
  known.querySelectorAll("label").forEach((label) => label.remove());
  known.hidden = network.layers.length < 2;
  hiddenLayers.clear();
  network.layers.forEach((layer, at) => {
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
    box.addEventListener("change", () => {
      if (box.checked) hiddenLayers.delete(at);
      else hiddenLayers.add(at);
      drawSoon(0);
    });
    label.append(box, ` ${layer}`);
    known.append(label);
  });
}

function show(found) {
  network = found;
  index = new Map(network.elements.map((name, node) => [name, node]));
  const sets = network.elements.map(() => new Set());
  for (const [first, second] of network.links) {
    sets[first].add(second);
    sets[second].add(first);
  }
  neighbours = sets.map((set) => [...set]);
  order = d3.range(network.elements.length); // as the console sends them, those with the most links first
  readColours();
  showLayers();
  search();
  setChosen(named(), false);
  layOut();
}

async function load() {
  const asked = document.getElementById("network-mark")?.textContent;
  if (!asked || asked === mark) return;
  mark = asked;
  section.hidden = false;
  try {
    const answer = await fetch("/topology/network", { redirect: "error" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
    alarmTag = "";
    await loadAlarms();
  } catch (error) {
    mark = null;
    said.textContent = `The map cannot be drawn (${error.message}); the list below has all elements.`;
  }
}

async function loadAlarms() {
  if (!network || document.hidden || document.getElementById("pause").getAttribute("aria-pressed") === "true") return;
  try {
    const headers = alarmTag ? { "If-None-Match": alarmTag } : {};
    const answer = await fetch("/topology/alarms", { headers, redirect: "error", cache: "no-store" });
    if (!answer.ok) return;
    alarmTag = answer.headers.get("ETag");
    const known = Object.entries(await answer.json()).filter(([name]) => index.has(name));
    alarms = new Map(known.map(([name, worst]) => [index.get(name), worst]));
    const rank = (node) => (alarms.has(node) ? ORDER.indexOf(alarms.get(node)[0]) : ORDER.length);
    order = d3.range(network.elements.length).sort((one, other) => rank(one) - rank(other) || one - other);
    drawSoon(0);
  } catch {
    // The page says that the console does not answer.
  }
}

// What the reader does

const STEPS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

canvas.addEventListener("keydown", (event) => {
  const step = 80 / transform().k;
  if (event.key in STEPS) go(zoom.translateBy, ...STEPS[event.key].map((side) => side * step));
  else if (event.key === "+" || event.key === "=") go(zoom.scaleBy, 1.5);
  else if (event.key === "-") go(zoom.scaleBy, 1 / 1.5);
  else if (event.key === "0" && places) fit();
  else return;
  event.preventDefault();
});
canvas.addEventListener("click", (event) => {
  const node = nodeAt(event);
  if (node !== null) visit(elementUrl(network.elements[node]), false);
  else if (chosen !== null) visit(elementUrl(null));
});
canvas.addEventListener("mousemove", (event) => {
  const node = event.buttons ? hovered : nodeAt(event);
  if (node === hovered) return;
  hovered = node;
  canvas.classList.toggle("over", node !== null);
  drawSoon();
});
let typed = null;
form.addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(() => {
    history.replaceState(null, "", elementUrl(named()));
    if (network) search();
    refreshPage();
  }, REST);
});
form.addEventListener("submit", (event) => {
  if (!network) return;
  clearTimeout(typed);
  search();
  if (!matches?.size) return;
  event.preventDefault();
  const text = form.q.value.trim();
  const found = [...matches].map((node) => network.elements[node]);
  const exact = found.find((name) => name === text || lastStep(name) === text);
  if (exact || found.length === 1) visit(elementUrl(exact ?? found[0]));
  else refreshPage();
});
document.getElementById("live").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!network || !link || event.ctrlKey || event.metaKey || event.shiftKey || link.pathname !== "/topology") return;
  event.preventDefault();
  visit(link.href);
});
addEventListener("popstate", () => {
  form.q.value = new URL(location.href).searchParams.get("q") ?? "";
  if (network) {
    search();
    setChosen(named(), true);
  }
  refreshPage();
});
document.getElementById("nearer").addEventListener("click", () => go(zoom.scaleBy, 1.5));
document.getElementById("farther").addEventListener("click", () => go(zoom.scaleBy, 1 / 1.5));
document.getElementById("whole").addEventListener("click", () => places && fit());
around.addEventListener("click", () => {
  onlyNear = !onlyNear;
  around.setAttribute("aria-pressed", String(onlyNear));
  drawSoon(0);
});
new MutationObserver(() => { readColours(); drawSoon(0); }).observe(document.documentElement, { attributes: true });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); drawSoon(0); });
new ResizeObserver(() => drawSoon(0)).observe(canvas);
new MutationObserver(load).observe(document.getElementById("live"), { childList: true, subtree: true });
setInterval(loadAlarms, POLL);
load();
