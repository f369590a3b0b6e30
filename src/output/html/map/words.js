// What each type is called, and what is said of an item in a line.
const TYPES = {
  network: { one: "Network", many: "Networks", empty: "No SriovNetwork, SriovIBNetwork or OVSNetwork" },
  nad: { one: "NAD", many: "NADs", empty: "No NAD" },
  range: { one: "Range", many: "Ranges", empty: "No range of addresses" },
  vlan: { one: "VLAN", many: "VLANs", empty: "No VLAN" },
  resource: { one: "Resource", many: "Devices", empty: "No resource of devices" },
  policy: { one: "Node policy", many: "Node policies", empty: "No SriovNetworkNodePolicy" },
  pf: { one: "PF", many: "PFs", empty: "No PF" },
  ovn: { one: "OVN network", many: "OVN", empty: "No network of OVN-Kubernetes" },
  user: { one: "User", many: "Users", empty: "Nothing that uses a NAD" },
  finding: { one: "Finding", many: "Findings", empty: "No findings" },
};

const nadWord = (number) => counted(number, "NAD");
const podWord = (number) => counted(number, "pod");

// A cluster should have each NAD that a network renders; manifests need not.
const isMissing = (row) => !row.is_stored && Boolean(map.source.cluster);

// The name of an item: what is before it, and the name itself.
function nameOf(item) {
  const { type, row, key } = item;
  const own = row.namespace ? [`${row.namespace}/`, row.name] : ["", row.name];
  switch (type) {
    case "range": return row.network_name ? [`${row.network_name} `, row.cidr] : ["", row.cidr];
    case "vlan": return ["VLAN ", key];
    case "resource": return [key.slice(0, key.lastIndexOf("/") + 1), key.slice(key.lastIndexOf("/") + 1)];
    case "pf": return row.node ? [`${row.node}/`, row.name || row.pci_address] : ["", row.name];
    case "finding": return ["", row.message];
    default: return own;
  }
}

function leasesText(row) {
  if (row.leases === "on-nodes") return "leases are on the nodes";
  if (row.used === undefined) return "leases not known";
  const of = row.size === undefined ? "" : ` of ${digits(row.size)}`;
  return `${digits(row.used)}${of} taken`;
}

function share(row) {
  if (row.used === undefined || !row.size) return null;
  return Math.min(1, row.used / row.size);
}

// The facts below a name.
function factsOf(item) {
  const { type, row } = item;
  switch (type) {
    case "network": return known([row.kind, row.nad && `renders ${row.nad}`, row.resource && `resource ${row.resource}`, row.problem]);
    case "nad": return known([
      row.plugins.join(", "), isMissing(row) && "not there yet", row.resource, row.link, row.vlan !== undefined && `VLAN ${row.vlan}`,
      row.ovn && `OVN ${row.ovn}`, row.ranges?.length === 1 && find("range", row.ranges[0])?.row.cidr, row.ranges?.length > 1 && counted(row.ranges.length, "range"),
      !row.ranges?.length && row.ipam, row.addresses?.join(", "), row.problem,
    ]);
    case "range": return known([row.ipam, `${row.first} – ${row.last}`, row.nads.length ? nadWord(row.nads.length) : "no NAD has it: an IPPool was left behind", share(row) === null && leasesText(row)]);
    case "vlan": return [nadWord(nadsOf(item).length), counted(unique(nadsOf(item).map((nad) => nad.row.resource ?? nad.row.link ?? "")).length, "link")];
    case "resource": return known([
      row.policies.length ? counted(row.policies.length, "policy", "policies") : "no policy offers it", nadWord(unique([...row.nads]).length),
      !row.allocatable && `${digits(row.requested)} requested`,
      row.requested_on_each_node && `${row.requested_on_each_node} more on each node of DaemonSets`,
    ]);
    case "policy": return known([`resource ${row.resource}`, row.selects.join(", "), row.num_vfs !== undefined && counted(row.num_vfs, "VF"), row.nodes.join(", "), row.device_type, row.link_type]);
    case "pf": return known([row.pci_address, row.device, row.link_type, row.speed, row.num_vfs !== undefined && `${row.num_vfs}${row.total_vfs === undefined ? "" : ` of ${row.total_vfs}`} VFs`,
      ...row.partitions.map((part) => `${part.from}–${part.to} ${part.resource}`)]);
    case "ovn": return known([row.topologies.join(", "), row.subnets.join(", "), nadWord(row.nads.length)]);
    case "user": return known([row.kind, row.node && `on ${row.node}`, row.networks.map((network) => network.nad).join(", "), row.problem]);
    case "finding": return known([row.rule, row.object]);
  }
}

// At the end of a row: how many use it.
function usersText(item) {
  switch (item.type) {
    case "nad": return podWord(podsOf(usersOfNad.get(item.key) ?? []));
    case "network": return podWord(podsOf(usersOfNad.get(item.row.nad) ?? []));
    case "range": case "vlan": case "ovn": return podWord(podsOf(unique(nadsOf(item).flatMap((nad) => usersOfNad.get(nad.key) ?? []))));
    case "user": return item.row.pods === undefined ? "one per node" : item.row.pods === 1 ? "" : podWord(item.row.pods);
    default: return "";
  }
}

function textOf(item) {
  if (item.text === null) {
    const leases = item.type === "user" ? (leasesOfPod.get(keyOf(item.row)) ?? []).map((lease) => lease.address) : [];
    item.text = [...nameOf(item), ...factsOf(item), item.id, ...leases, ...item.findings.map((finding) => `${finding.rule} ${finding.message}`)].join("\n").toLowerCase();
  }
  return item.text;
}
