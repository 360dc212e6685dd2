// Draws the map of the network, with its alarms. What is known of an element is in the page below, which the server makes.
"use strict";

const POLL = 2000;
const LIMIT = 60; // milliseconds for which a search waits for the next key
const ORDER = ["CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE"];
const SIGNS = { CRITICAL: "C", MAJOR: "M", MINOR: "m", WARNING: "w", INDETERMINATE: "i" };
const section = document.getElementById("map");
const drawing = document.getElementById("drawing");
const said = document.getElementById("said");
const around = document.getElementById("around");
const form = document.getElementById("find");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

let graph = null;
let sigma = null;
let worker = null;
let mark = null;
let alarms = {};
let alarmTag = "";
let colours = {};
let chosen = null; // the name of the element that the page tells of
let near = null; // it and its neighbours
let matches = null; // the elements with the text that is searched
let hovered = null;
let onlyNear = false;
const hiddenLayers = new Set();

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  colours = {
    node: colour("--came"), dim: colour("--track"), edge: colour("--edge"), near: colour("--accent"),
    ink: colour("--ink"), card: colour("--card"),
    CRITICAL: colour("--critical"), MAJOR: colour("--major"), MINOR: colour("--minor"), WARNING: colour("--warning"),
    INDETERMINATE: colour("--indeterminate"),
  };
}

const lastStep = (name) => name.slice(name.lastIndexOf("=") + 1);

function shownNode(name, data) {
  const [severity] = alarms[name] ?? [];
  const result = { ...data, color: colours[severity] ?? colours.node };
  if (severity) {
    result.size = Math.max(data.size, 6);
    result.zIndex = ORDER.length - ORDER.indexOf(severity);
  }
  const wanted = name === chosen || name === hovered || near?.has(name) || matches?.has(name);
  if (onlyNear && near && !near.has(name)) result.hidden = true;
  else if ((near || matches) && !wanted) {
    result.color = severity ? colours[severity] : colours.dim;
    result.label = null;
    result.zIndex = -1;
  }
  if (name === chosen || name === hovered) Object.assign(result, { highlighted: true, zIndex: 9 });
  if (near?.has(name) && near.size <= 30) result.forceLabel = true;
  if (matches?.has(name) && matches.size <= 30) result.forceLabel = true;
  return result;
}

function shownEdge(edge, data) {
  if (hiddenLayers.has(data.layer)) return { ...data, hidden: true };
  if (!near) return { ...data, color: colours.edge };
  const touches = graph.source(edge) === chosen || graph.target(edge) === chosen;
  if (touches) return { ...data, color: colours.near, size: data.size + 1, zIndex: 1 };
  return { ...data, color: colours.dim, hidden: onlyNear };
}

function drawLabel(context, data, settings) {
  if (!data.label) return;
  context.font = `${settings.labelSize}px ${settings.labelFont}`;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = colours.card;
  context.fillStyle = colours.ink;
  const at = [data.label, data.x + data.size + 3, data.y + settings.labelSize / 3];
  context.strokeText(...at);
  context.fillText(...at);
}

function drawHover(context, data, settings) {
  context.beginPath();
  context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
  context.lineWidth = 3;
  context.strokeStyle = colours.near;
  context.stroke();
  drawLabel(context, { ...data, label: data.label ?? lastStep(data.key ?? "") }, settings);
}

// The letter of the severity, for whoever does not tell the colours apart.
function drawSigns() {
  const context = sigma.getCanvases().signs.getContext("2d");
  const { width, height } = sigma.getDimensions();
  context.clearRect(0, 0, width, height);
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = colours.card;
  for (const [name, [severity]] of Object.entries(alarms)) {
    const data = graph.hasNode(name) && sigma.getNodeDisplayData(name);
    if (!data || data.hidden) continue;
    const size = sigma.scaleSize(data.size);
    if (size < 5) continue;
    const { x, y } = sigma.framedGraphToViewport(data);
    if (x < 0 || y < 0 || x > width || y > height) continue;
    context.font = `700 ${Math.round(size * 1.6)}px system-ui, sans-serif`;
    context.fillText(SIGNS[severity] ?? "?", x, y + 0.5);
  }
}

function refreshMap() {
  sigma?.refresh({ skipIndexation: true });
}

function setChosen(name, move) {
  chosen = name && graph.hasNode(name) ? name : null;
  near = chosen ? new Set([chosen, ...graph.neighbors(chosen)]) : null;
  onlyNear &&= near !== null;
  around.disabled = near === null;
  around.setAttribute("aria-pressed", String(onlyNear));
  refreshMap();
  if (chosen && move) {
    const { x, y } = sigma.getNodeDisplayData(chosen);
    look({ x, y, ratio: Math.min(sigma.getCamera().ratio, 0.3) });
  }
}

function look(state) {
  const camera = sigma.getCamera();
  if (calm.matches) camera.setState(state);
  else camera.animate(state, { duration: 150 });
}

function refreshPage() {
  document.dispatchEvent(new Event("console:refresh"));
}

// The page of an element, without loading the map again.
function visit(url, move = true) {
  history.pushState(null, "", url);
  setChosen(new URL(location.href).searchParams.get("element"), move);
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
  matches = text ? new Set(graph.filterNodes((name) => name.toLowerCase().includes(text))) : null;
  refreshMap();
}

function setPlaces(places) {
  let at = 0;
  graph.updateEachNodeAttributes(
    (_, data) => {
      data.x = places[at++];
      data.y = places[at++];
      return data;
    },
    { attributes: ["x", "y"] },
  );
}

function layOut(network) {
  worker?.terminate();
  worker = new Worker(section.dataset.layout);
  worker.onmessage = ({ data: { places, done } }) => {
    setPlaces(places);
    sigma.refresh();
    if (!done) return;
    section.dataset.ready = "";
    tellSize(network);
    if (chosen) setChosen(chosen, true);
  };
  worker.postMessage({ count: network.elements.length, links: network.links });
}

function tellSize(network) {
  const parts = [`${network.elements.length.toLocaleString("en")} elements and ${graph.size.toLocaleString("en")} lines`];
  if (network.leftOut) parts.push(`${network.leftOut.toLocaleString("en")} elements with fewer links are only in the list`);
  if (network.linksLeftOut) parts.push(`${network.linksLeftOut.toLocaleString("en")} lines are left out`);
  said.textContent = `${parts.join("; ")}.`;
}

function build(network) {
  const made = new graphology.Graph({ type: "undirected", multi: true });
  network.elements.forEach((name, at) => {
    // Before they are laid out, elements lie in a spiral.
    made.addNode(name, { label: lastStep(name), x: Math.sqrt(at) * Math.cos(at), y: Math.sqrt(at) * Math.sin(at), size: 3 });
  });
  for (const [first, second, layer, count] of network.links) {
    const size = Math.min(0.7 + 0.3 * Math.log2(count), 3);
    made.addEdge(network.elements[first], network.elements[second], { size, layer: network.layers[layer] });
  }
  made.forEachNode((name) => made.setNodeAttribute(name, "size", 3 + Math.min(Math.sqrt(made.degree(name)) / 2, 4)));
  return made;
}

function showLayers(layers) {
  const known = document.getElementById("layers");
  known.querySelectorAll("label").forEach((label) => label.remove());
  known.hidden = layers.length < 2;
  for (const layer of layers) {
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: !hiddenLayers.has(layer) });
    box.addEventListener("change", () => {
      if (box.checked) hiddenLayers.delete(layer);
      else hiddenLayers.add(layer);
      refreshMap();
    });
    label.append(box, ` ${layer}`);
    known.append(label);
  }
}

function draw(network) {
  graph = build(network);
  readColours();
  showLayers(network.layers);
  if (sigma) {
    sigma.setGraph(graph);
  } else {
    sigma = new Sigma(graph, drawing, {
      allowInvalidContainer: true,
      defaultDrawNodeHover: drawHover,
      defaultDrawNodeLabel: drawLabel,
      edgeReducer: shownEdge,
      hideEdgesOnMove: true,
      labelDensity: 0.6,
      labelFont: "system-ui, sans-serif",
      labelGridCellSize: 90,
      labelRenderedSizeThreshold: 5,
      labelSize: 14,
      minCameraRatio: 0.005,
      maxCameraRatio: 3,
      nodeReducer: shownNode,
      zIndex: true,
    });
    sigma.createCanvasContext("signs", { afterLayer: "nodes" });
    sigma.resize(true);
    sigma.on("afterRender", drawSigns);
    sigma.on("clickNode", ({ node }) => visit(elementUrl(node), false));
    sigma.on("clickStage", () => chosen && visit(elementUrl(null)));
    sigma.on("enterNode", ({ node }) => { hovered = node; });
    sigma.on("leaveNode", () => { hovered = null; });
  }
  search();
  setChosen(new URL(location.href).searchParams.get("element"), false);
  said.textContent = "The map is being laid out.";
  layOut(network);
}

async function load() {
  const asked = document.getElementById("network-mark")?.textContent;
  if (!asked || asked === mark) return;
  mark = asked;
  section.hidden = false;
  try {
    const answer = await fetch("/topology/network", { redirect: "error" });
    if (!answer.ok) throw new Error(String(answer.status));
    draw(await answer.json());
    await loadAlarms();
  } catch (error) {
    sigma = null;
    drawing.hidden = true;
    said.textContent = `The map cannot be drawn here (${error.message}); the list below has all elements.`;
  }
}

async function loadAlarms() {
  if (!sigma || document.hidden || document.getElementById("pause").getAttribute("aria-pressed") === "true") return;
  try {
    const answer = await fetch("/topology/alarms", { headers: { "If-None-Match": alarmTag }, redirect: "error", cache: "no-store" });
    if (!answer.ok) return;
    alarmTag = answer.headers.get("ETag");
    alarms = await answer.json();
    refreshMap();
  } catch {
    // The page says that the console does not answer.
  }
}

function move(event) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const camera = sigma?.getCamera();
  if (!camera) return;
  if (event.key in steps) {
    const [x, y] = steps[event.key].map((step) => step * 0.1 * camera.ratio);
    camera.setState({ x: camera.x + x, y: camera.y + y });
  } else if (event.key === "+" || event.key === "=") look({ ratio: camera.ratio / 1.5 });
  else if (event.key === "-") look({ ratio: camera.ratio * 1.5 });
  else if (event.key === "0") look({ x: 0.5, y: 0.5, ratio: 1 });
  else return;
  event.preventDefault();
}

let typed = null;
form.addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(() => {
    history.replaceState(null, "", elementUrl(chosen));
    if (graph) search();
    refreshPage();
  }, LIMIT);
});
form.addEventListener("submit", (event) => {
  if (!graph || !matches?.size) return;
  event.preventDefault();
  clearTimeout(typed);
  search();
  const text = form.q.value.trim();
  const exact = [...matches].find((name) => name === text || lastStep(name) === text);
  if (exact || matches.size === 1) visit(elementUrl(exact ?? [...matches][0]));
  else refreshPage();
});
document.getElementById("live").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!sigma || !link || event.ctrlKey || event.metaKey || event.shiftKey || !link.pathname.endsWith("/topology")) return;
  event.preventDefault();
  visit(link.href);
  const reduce = calm.matches ? "auto" : "smooth";
  document.getElementById("element")?.scrollIntoView({ behavior: reduce, block: "nearest" });
});
addEventListener("popstate", () => {
  form.q.value = new URL(location.href).searchParams.get("q") ?? "";
  if (graph) search();
  if (graph) setChosen(new URL(location.href).searchParams.get("element"), true);
  refreshPage();
});
document.getElementById("nearer").addEventListener("click", () => sigma && look({ ratio: sigma.getCamera().ratio / 1.5 }));
document.getElementById("farther").addEventListener("click", () => sigma && look({ ratio: sigma.getCamera().ratio * 1.5 }));
document.getElementById("whole").addEventListener("click", () => sigma && look({ x: 0.5, y: 0.5, ratio: 1 }));
around.addEventListener("click", () => {
  onlyNear = !onlyNear;
  around.setAttribute("aria-pressed", String(onlyNear));
  refreshMap();
});
drawing.addEventListener("keydown", move);
new MutationObserver(() => { readColours(); refreshMap(); }).observe(document.documentElement, { attributes: true });
dark.addEventListener("change", () => { readColours(); refreshMap(); });
new MutationObserver(load).observe(document.getElementById("live"), { childList: true, subtree: true });
setInterval(loadAlarms, POLL);
load();
