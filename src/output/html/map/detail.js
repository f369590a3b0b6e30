// One item: the chain it is a part of, what is wrong with it, what is known of it, and what breaks without it.
const detail = document.getElementById("detail");
const main = document.querySelector("main");
const FEW = 3;
const COLUMNS = [["Devices", ["policy", "resource"]], ["Network", ["network"]], ["NAD", ["nad"]], ["Addresses", ["range", "ovn"]], ["Used by", ["user"]]];

function chain(item, found) {
  return element("ol", { class: "chain" }, ...COLUMNS.map(([title, types]) => {
    const all = types.flatMap((type) => found[type]);
    const own = all.includes(item);
    const few = own ? [item, ...all.filter((one) => one !== item)].slice(0, FEW) : all.slice(0, FEW);
    const chips = few.map((one) => one === item ? element("span", { class: "chip here" }, element("span", {}, nameOf(one)[1])) : chip(one, nameOf(one)[1]));
    const more = all.length - few.length;
    return element("li", { class: all.length ? null : "none" }, element("h3", {}, title), ...(chips.length ? chips : [element("span", { class: "soft" }, "–")]), more > 0 && element("span", { class: "soft" }, `and ${digits(more)} more`));
  }));
}

function findingCard(finding, item) {
  const others = known((finding.related ?? []).map((other) => byObject.get(other)));
  const about = item.object === finding.object ? null : element("p", { class: "soft" }, finding.object);
  return element("section", { class: "finding" }, element("h3", {}, sign(finding.action, finding.action), element("code", {}, finding.rule)), about,
    element("p", { class: "message" }, finding.message), finding.note && element("p", {}, finding.note), finding.help && element("p", { class: "soft" }, finding.help),
    others.length > 0 && element("p", { class: "chips" }, ...others.map((other) => chip(other, other.object))));
}

// A list of links; the rest on demand.
function links(title, all, label) {
  if (!all.length) return null;
  const box = element("div", { class: "chips" });
  const more = element("button", { class: "plain", type: "button" });
  let limit = 0;
  const add = () => {
    box.append(...all.slice(limit, limit + 50).map((one) => chip(one, label?.(one))));
    limit += 50;
    more.hidden = limit >= all.length;
    more.textContent = `Show ${Math.min(50, all.length - limit)} more`;
  };
  more.addEventListener("click", add);
  add();
  return element("section", {}, element("h3", {}, title, element("span", { class: "count" }, digits(all.length))), box, more);
}

function fact(title, value) {
  if (value === undefined || value === null || value === "" || value === false) return [];
  return [element("dt", {}, title), element("dd", {}, value)];
}

function writtenBy(row) {
  if (!row.networks) return row.owner ? `${row.owner}, which is not on this map` : "hand";
  const networks = row.networks.join(", ");
  return row.is_stored && !row.owner ? `hand; but ${networks} renders a NAD of this name` : networks;
}

function facts(item) {
  const { type, row } = item;
  const rows = {
    network: () => [...fact("Kind", row.kind), ...fact("Renders", row.nad), ...fact("Resource", row.resource), ...fact("Problem", row.problem)],
    nad: () => [...fact("Plugins", row.plugins.join(" → ")), ...fact("Resource", row.resource), ...fact("Attached to", row.link), ...fact("VLAN", row.vlan), ...fact("IPAM", row.ipam),
      ...fact("Addresses", row.addresses?.join(", ")), ...fact("OVN network", row.ovn), ...fact("Written by", writtenBy(row)),
      ...fact("Stored", isMissing(row) && "no: the operator has not created it"), ...fact("Problem", row.problem)],
    range: () => [...fact("IPAM", row.ipam), ...fact("Network name", row.network_name), ...fact("Hands out", `${row.first} – ${row.last}`), ...fact("Without", row.excluded?.join(", ")),
      ...fact("Addresses", digits(row.size) ?? "more than can be counted"), ...fact("Taken", takenText(row)), ...fact("Reserved", row.reserved_elsewhere ? `${row.reserved_elsewhere} more are reserved by other ranges` : null), ...fact("IPPools", row.pools?.join(", "))],
    resource: () => [...fact("On nodes", digits(row.allocatable) ?? unknownText("nodes")), ...fact("Requested", digits(row.requested)), ...fact("On each node", row.requested_on_each_node)],
    policy: () => [...fact("Resource", row.resource), ...fact("PFs", row.selects.join(", ")), ...fact("VFs per PF", row.num_vfs), ...fact("Nodes", row.nodes.join(", ") || "all"), ...fact("Device type", row.device_type), ...fact("Link type", row.link_type)],
    pf: () => [...fact("Node", row.node || "by node policies alone"), ...fact("PCI address", row.pci_address), ...fact("Device", row.device), ...fact("Link", [row.link_type, row.speed].filter(Boolean).join(", ")),
      ...fact("VFs", row.num_vfs), ...fact("At most", row.total_vfs), ...row.partitions.flatMap((part) => fact(`VF ${part.from}–${part.to}`, [part.resource, part.policy && `policy ${part.policy}`, part.device_type].filter(Boolean).join(", ")))],
    ovn: () => [...fact("Topology", row.topologies.join(", ")), ...fact("Subnets", row.subnets.join(", "))],
    user: () => [...fact("Kind", row.kind), ...fact("Node", row.node), ...fact("Pods", row.pods ?? "one on each of its nodes"), ...fact("Requests", Object.entries(row.requests ?? {}).map(([name, count]) => `${count} × ${name}`).join(", ")), ...fact("Problem", row.problem)],
  };
  return element("dl", {}, ...(rows[type]?.() ?? []), ...fact("Manifest", row.place));
}

const unknownText = (what) => `not known${unknown(what) ? `: ${unknown(what)}` : ""}`;
function takenText(row) {
  if (row.leases === "on-nodes") return "not visible: host-local keeps its leases in files on each node";
  if (row.leases === "unknown") return unknownText("IPPools");
  if (row.leases === "no-ip-pool") return "nothing: it has no IPPool yet";
  return leasesText(row);
}

function leaseTable(item) {
  const leases = item.type === "range" ? leasesOfRange.get(item.key) : item.type === "user" ? leasesOfPod.get(keyOf(item.row)) : null;
  if (!leases?.length) return null;
  const user = (lease) => { const at = lease.pod.indexOf("/"); return byObject.get(objectName("Pod", lease.pod.slice(0, at), lease.pod.slice(at + 1))); };
  const rows = leases.slice(0, 200).map((lease) => element("tr", {}, element("td", {}, lease.address), element("td", {}, item.type === "range" ? (user(lease) ? chip(user(lease)) : `${lease.pod} (not on this map)`) : find("range", lease.range) ? chip(find("range", lease.range)) : lease.range), element("td", {}, lease.interface ?? "")));
  return element("section", {}, element("h3", {}, "Leases", element("span", { class: "count" }, digits(leases.length))),
    element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...["Address", item.type === "range" ? "Pod" : "Range", "Interface"].map((title) => element("th", { scope: "col" }, title)))), element("tbody", {}, ...rows))),
    leases.length > 200 && element("p", { class: "soft" }, "The first 200; search for an address to find its pod."));
}

function nodeTable(item) {
  if (item.type !== "resource" || !item.row.nodes.length) return null;
  const rows = item.row.nodes.slice(0, 200).map((node) => element("tr", {}, element("td", {}, node.node), element("td", { class: "number" }, `${node.requested} of ${node.allocatable}`), element("td", {}, node.allocatable ? bar(Math.min(1, node.requested / node.allocatable), `${node.requested} of ${node.allocatable}`) : "")));
  return element("section", {}, element("h3", {}, "Nodes", element("span", { class: "count" }, item.row.nodes.length)), element("table", { class: "nodes" }, element("tbody", {}, ...rows)));
}

function selections(item) {
  if (item.type !== "user") return null;
  const missing = item.row.networks.filter((network) => !find("nad", network.nad));
  return missing.length > 0 && element("p", { class: "missing" }, `Not on this map: ${unique(missing.map((network) => network.nad)).join(", ")}${unknown("NADs") ? ` (${unknown("NADs")})` : ""}`);
}

function impactCard(item) {
  const impact = impactOf(item);
  if (!impact) return null;
  return element("section", { class: `impact ${impact.broken.length ? "warn" : "pass"}` }, element("h3", { class: "sign" }, "If you delete this"), ...impact.lines.map((line) => element("p", {}, line)), links("What breaks", impact.broken, (one) => one.object));
}

function showDetail() {
  const item = state.item ? byId.get(state.item) : null;
  main.classList.toggle("with-detail", Boolean(item));
  detail.hidden = !item;
  if (!item) return detail.replaceChildren();
  const found = relations(item);
  const [before, name] = nameOf(item);
  const type = item.type === "network" || item.type === "user" ? item.row.kind : TYPES[item.type].one;
  const close = element("button", { class: "plain close", type: "button", onclick: leave }, "Close");
  const parts = ["policy", "resource", "pf", "network", "nad", "range", "vlan", "ovn", "user"].filter((one) => one !== item.type);
  detail.replaceChildren(
    element("div", { class: "top" }, element("p", { class: "soft" }, type), close),
    element("h2", { tabindex: "-1" }, before, element("b", {}, name || "(no name)")),
    ...known([item.type === "finding" ? null : chain(item, found), item.type === "pf" ? partitionBar(item.row) : null]),
    ...item.findings.slice(0, 16).map((finding) => findingCard(finding, item)),
    ...known([impactCard(item), facts(item), selections(item), nodeTable(item), leaseTable(item), ...parts.map((one) => links(TYPES[one].many, found[one]))]));
  detail.scrollTop = 0;
}

function enter(id, view) {
  change({ item: id, ...(view ? { view } : {}) });
  for (const row of list.querySelectorAll("[aria-current]")) row.removeAttribute("aria-current");
  list.querySelector(`[data-item="${CSS.escape(id)}"]`)?.setAttribute("aria-current", "true");
  const heading = detail.querySelector("h2");
  heading?.focus({ preventScroll: true });
  detail.scrollIntoView({ block: "nearest" });
}

// Back to where the item is in the list.
function leave() {
  const id = state.item;
  change({ item: null });
  const row = id && document.querySelector(`a[data-item="${CSS.escape(id)}"]`);
  (row ?? search).focus();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-item], a[data-view]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.dataset.item) enter(link.dataset.item, link.dataset.view);
  else change({ view: link.dataset.view, item: null });
});
