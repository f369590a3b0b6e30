// Everything meets at NADs: the relations of an item are those of its NADs, and its own.
const NO_RELATIONS = { policy: [], resource: [], network: [], nad: [], range: [], vlan: [], ovn: [], user: [], pf: [] };

function nadsOf({ type, row, key }) {
  switch (type) {
    case "network": return known([find("nad", row.nad)]);
    case "nad": return known([find("nad", key)]);
    case "range": return known(row.nads.map((nad) => find("nad", nad)));
    case "vlan": return nadsOfVlan.get(row.vlan) ?? [];
    case "resource": return unique(known([...row.nads, ...row.networks.map((network) => byObject.get(network)?.row.nad)].map((nad) => find("nad", nad))));
    case "ovn": return known(row.nads.map((nad) => find("nad", nad)));
    case "user": return unique(known(row.networks.map((network) => find("nad", network.nad))));
    default: return [];
  }
}

function networksOf(nad) {
  return known((nad.row.networks ?? []).map((network) => byObject.get(network)));
}

// The resource that a NAD names, or else that of its networks.
function resourcesOf(nad) {
  if (nad.row.resource) return known([find("resource", nad.row.resource)]);
  return networksOf(nad).flatMap((network) => resourceNamed.get(network.row.resource ?? "") ?? []);
}

const policiesOf = (resource) => known(resource.row.policies.map((policy) => find("policy", policy)));

// The PFs with a part for a resource.
const pfsNamed = new Map();
for (const pf of items.pf) {
  for (const name of new Set(pf.row.partitions.map((part) => part.resource))) push(pfsNamed, name, pf);
}

function relations(item) {
  const found = Object.fromEntries(Object.keys(NO_RELATIONS).map((type) => [type, []]));
  if (item.type === "policy") found.resource = resourceNamed.get(item.row.resource) ?? [];
  if (item.type === "pf") found.resource = item.row.partitions.flatMap((part) => resourceNamed.get(part.resource) ?? []);
  if (item.type === "resource") found.resource = [item];
  const nads = unique([...nadsOf(item), ...found.resource.flatMap(nadsOf)]);
  found.nad = nads;
  found.network = item.type === "network" ? [item] : nads.flatMap(networksOf);
  // A network whose NAD cannot be rendered still names its resource.
  found.network.push(...found.resource.flatMap((resource) => known(resource.row.networks.map((network) => byObject.get(network)))));
  if (!found.resource.length) found.resource = nads.flatMap(resourcesOf);
  found.policy = item.type === "policy" ? [item] : found.resource.flatMap(policiesOf);
  if (item.type === "pf") found.policy = item.row.partitions.flatMap((part) => policiesNamed.get(part.policy ?? "") ?? []);
  found.pf = item.type === "pf" ? [item] : unique(found.resource).flatMap((resource) => pfsNamed.get(resource.key.split("/").at(-1)) ?? []);
  found.range = item.type === "range" ? [item] : known(nads.flatMap((nad) => (nad.row.ranges ?? []).map((range) => find("range", range))));
  found.vlan = known(nads.map((nad) => find("vlan", nad.row.vlan)));
  found.ovn = known(nads.map((nad) => find("ovn", nad.row.ovn)));
  found.user = item.type === "user" ? [item] : nads.flatMap((nad) => usersOfNad.get(nad.key) ?? []);
  if (item.type === "resource") found.user.push(...usersOfResource(item));
  return Object.fromEntries(Object.entries(found).map(([type, list]) => [type, unique(list)]));
}

const requesters = new Map();
for (const user of items.user) for (const name of Object.keys(user.row.requests ?? {})) push(requesters, name, user);
const usersOfResource = (resource) => requesters.get(resource.key) ?? [];

// What a filter compares: the namespaces of an item, and the nodes that have something to do with it.
function prepare() {
  for (const nad of items.nad) nad.namespaces = [nad.row.namespace];
  for (const network of items.network) network.namespaces = [network.row.namespace, network.row.nad.split("/")[0]];
  for (const policy of items.policy) policy.namespaces = [policy.row.namespace];
  for (const user of items.user) user.namespaces = [user.row.namespace];
  const ofNads = (item, more = []) => unique([...nadsOf(item).map((nad) => nad.row.namespace), ...more]);
  for (const type of ["range", "vlan", "ovn"]) for (const item of items[type]) item.namespaces = ofNads(item);
  for (const item of items.resource) item.namespaces = ofNads(item, usersOfResource(item).map((user) => user.row.namespace));
  for (const pf of items.pf) pf.namespaces = unique(pf.row.partitions.flatMap((part) => resourceNamed.get(part.resource) ?? []).flatMap((resource) => resource.namespaces));
  for (const finding of items.finding) finding.namespaces = finding.of?.namespaces ?? [];
  // What is wrong with a NAD's addresses is wrong with its range, and so on.
  const inherit = (type, from, isAbout) => {
    for (const item of items[type]) item.findings = unique(from(item).flatMap((one) => one.findings).filter((finding) => isAbout(finding.rule)));
  };
  inherit("range", nadsOf, (rule) => rule.startsWith("ipam/"));
  inherit("ovn", nadsOf, (rule) => rule.startsWith("ovn/"));
  inherit("resource", policiesOf, (rule) => rule.startsWith("node-policy/"));
  inherit("pf", (pf) => pf.row.partitions.flatMap((part) => policiesNamed.get(part.policy ?? "") ?? []), (rule) => rule.startsWith("node-policy/"));
}
prepare();

function nodesOf(item) {
  if (item.nodes === null) {
    const nodes = (users) => users.map((user) => user.row.node).filter(Boolean);
    if (item.type === "user") item.nodes = nodes([item]);
    else if (item.type === "pf") item.nodes = known([item.row.node]);
    else if (item.type === "finding") item.nodes = item.of ? nodesOf(item.of) : [];
    else if (item.type === "policy") item.nodes = unique(items.pf.filter((pf) => pf.row.partitions.some((part) => part.policy === item.row.name)).map((pf) => pf.row.node).filter(Boolean));
    else {
      const own = item.type === "resource" ? item.row.nodes.map((node) => node.node) : [];
      item.nodes = unique([...own, ...nodes(nadsOf(item).flatMap((nad) => usersOfNad.get(nad.key) ?? []))]);
    }
  }
  return item.nodes;
}
