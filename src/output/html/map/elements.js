// Elements are made of texts and other elements only: nothing of the map is ever read as HTML.
function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...inside.filter((one) => one !== null && one !== undefined && one !== false && one !== ""));
  return made;
}

function svg(name, attributes, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

const sign = (severity, text) => element("span", { class: `sign ${severity}` }, text);

// The severity of the worst finding, as a word beside its sign.
function severitySign(item, isShort = false) {
  const severity = SEVERITIES[worst(item) - 1];
  if (!severity) return null;
  return element("span", { class: `sign ${severity}${isShort ? " short" : ""}` }, hasConflict(item) ? "conflict" : severity);
}

// How full something is: a bar beside the numbers, which say the same.
function bar(part, label) {
  const level = part >= 1 ? "deny" : part >= 0.8 ? "warn" : "level";
  const width = part > 0 ? Math.max(1.5, 100 * part) : 0;
  return svg("svg", { class: "bar", viewBox: "0 0 100 1", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("rect", { class: level, x: 0, width, height: 1 }));
}

function percent(part) {
  return part >= 1 ? "full" : `${Math.floor(100 * part)} %`;
}

// The VFs of a PF: each part as wide as it has VFs.
function partitionBar(row) {
  const end = Math.max(row.total_vfs ?? 0, row.num_vfs ?? 0, ...row.partitions.map((part) => part.to + 1), 1);
  const parts = row.partitions.filter((part) => part.to >= part.from);
  return svg("svg", { class: "bar vfs", viewBox: `0 0 ${end} 1`, preserveAspectRatio: "none", role: "img", "aria-label": parts.map((part) => `VFs ${part.from} to ${part.to}: ${part.resource}`).join(", ") || "not partitioned" },
    ...parts.map((part, at) => svg("rect", { class: `part${at % 4}`, x: part.from, width: part.to - part.from + 1, height: 1 })));
}

function named(item) {
  const [before, name] = nameOf(item);
  return element("span", { class: "name" }, before, element("b", {}, name || "(no name)"));
}

// A link to an item, which keeps the view and the filters.
function chip(item, label) {
  const inside = label === undefined ? nameOf(item).join("") : label;
  return element("a", { class: "chip", href: itemAddress(item.id), "data-item": item.id, title: nameOf(item).join("") }, severitySign(item, true), element("span", {}, inside));
}

const card = (title, ...inside) => element("section", { class: "card panel" }, element("h2", {}, title), ...inside);
