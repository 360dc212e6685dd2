// Lays out a network, in a thread of its own: elements with links between them come near each other.
"use strict";
importScripts("d3-7.9.2.min.js");
const TELL = 700; // milliseconds between two pictures of what is not yet ready

onmessage = ({ data: { count, links } }) => {
  const nodes = Array.from({ length: count }, () => ({}));
  const pulls = links.map(([source, target]) => ({ source, target }));
  const simulation = d3
    .forceSimulation(nodes)
    .force("link", d3.forceLink(pulls).distance(30))
    .force("charge", d3.forceManyBody().strength(-40).theta(1.2).distanceMax(1200))
    .force("x", d3.forceX().strength(0.03))
    .force("y", d3.forceY().strength(0.03))
    .alphaDecay(0.06)
    .stop();
  let told = 0;
  const tell = (done) => {
    const places = new Float32Array(2 * count);
    nodes.forEach((node, at) => places.set([node.x, node.y], 2 * at));
    told = performance.now();
    postMessage({ places, done });
  };
  tell(false);
  while (simulation.alpha() > simulation.alphaMin()) {
    simulation.tick();
    if (performance.now() - told > TELL) tell(false);
  }
  tell(true);
};
