// What follows if an object is deleted.
function impactOf(item) {
  switch (item.type) {
    case "nad": return nadImpact(item);
    case "network": return networkImpact(item);
    case "policy": return policyImpact(item);
    default: return null;
  }
}

// `lines`: sentences; `broken`: the items that no longer work.
function usersImpact(users, what) {
  const why = unknown("pods");
  if (!users.length) return { lines: [why ? `Who uses it is not known: ${why}.` : `Nothing on this map uses ${what}.`], broken: [] };
  return {
    lines: [`${podWord(podsOf(users))} select${podsOf(users) === 1 ? "s" : ""} ${what}: those that run keep their interface, but none of them starts again.`, ...(why ? [`There may be more: ${why}.`] : [])],
    broken: users,
  };
}

function nadImpact(nad) {
  if (isMissing(nad.row)) return { lines: ["It is not there yet."], broken: [] };
  const networks = networksOf(nad);
  if (networks.length) return { lines: [`The operator creates it again, because ${networks[0].object} renders it. Delete the network instead.`, "Until then no pod that selects it starts."], broken: [] };
  const { lines, broken } = usersImpact(usersOfNad.get(nad.key) ?? [], "it");
  const alone = known((nad.row.ranges ?? []).map((range) => find("range", range))).filter((range) => range.row.nads.length === 1 && range.row.used);
  return { lines: [...lines, ...alone.map((range) => `${range.row.cidr} is then in no NAD; its leases stay until the pods end.`)], broken };
}

function networkImpact(network) {
  if (!network.row.nad) return { lines: ["Nothing: the operator ignores it."], broken: [] };
  const nad = find("nad", network.row.nad);
  const others = nad ? networksOf(nad).filter((other) => other !== network) : [];
  if (others.length) return { lines: [`The operator deletes ${network.row.nad}; ${others[0].object} renders it too, and the operator creates it again.`], broken: [] };
  const { lines, broken } = usersImpact(usersOfNad.get(network.row.nad) ?? [], "that NAD");
  return { lines: [`The operator deletes the NAD ${network.row.nad}.`, ...lines], broken: [...(nad ? [nad] : []), ...broken] };
}

function policyImpact(policy) {
  const resources = resourceNamed.get(policy.row.resource) ?? [];
  const others = unique(resources.flatMap(policiesOf)).filter((other) => other !== policy);
  const { nad, network, user } = relations(policy);
  const pods = unique(resources.flatMap(usersOfResource));
  const lost = `The operator removes the VFs that it configures${policy.row.selects.length ? ` on ${policy.row.selects.join(", ")}` : ""}; their nodes may be drained.`;
  if (others.length) return { lines: [lost, `${counted(others.length, "other policy", "other policies")} still offer${others.length === 1 ? "s" : ""} ${policy.row.resource}.`], broken: [] };
  const broken = unique([...network, ...nad, ...user, ...pods]);
  return { lines: [lost, `Nothing on this map offers ${policy.row.resource} any more: ${counted(network.length, "network")}, ${nadWord(nad.length)} and ${podWord(podsOf(unique([...user, ...pods])))} depend on it.`, ...(unknown("pods") ? [`There may be more: ${unknown("pods")}.`] : [])], broken };
}
