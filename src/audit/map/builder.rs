//! Takes objects one by one, and connects their rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::devices;
use super::finding_rows;
use super::groups;
use super::leases::{LeasePool, LeaseStore};
use super::nads::ReadNad;
use super::policies;
use super::ranges::RangeIndex;
use super::resources::{self, ResourceSources};
use super::rows::{MapFinding, MapNad, MapNetwork, MapNodePolicy, MapPf, MapUser, UnknownPart};
use super::users;
use super::{MAP_VERSION, MAX_LEASES, MAX_PARTS, MAX_ROWS, MapSource, NetworkMap, key, object_name, short};
use crate::policy::{Facts, NetworkFact, Policy, Verdict};
use crate::resources::raw::RawFields;
use crate::resources::{NAD_GROUP, NETWORK_GROUP, Network, Object, Rendered, WorkloadKind, render};

/// The API group of whereabouts.
pub(crate) const WHEREABOUTS_GROUP: &str = "whereabouts.cni.cncf.io";

/// A kind of object that is on a map, or says something about one that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// A NAD or a network, which say their kind themselves.
    Judged,
    /// SriovNetworkNodePolicy
    NodePolicy,
    /// SriovNetworkNodeState
    NodeState,
    /// Node
    Node,
    /// IPPool
    IpPool,
    /// OverlappingRangeIPReservation
    Reservation,
    /// A pod, or an object that makes pods.
    User(WorkloadKind),
}

impl MapKind {
    /// The kind of an object with these two fields.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        match (group, kind) {
            (NAD_GROUP, "NetworkAttachmentDefinition") => Some(Self::Judged),
            (NETWORK_GROUP, "SriovNetwork" | "SriovIBNetwork" | "OVSNetwork") => Some(Self::Judged),
            (NETWORK_GROUP, "SriovNetworkNodePolicy") => Some(Self::NodePolicy),
            (NETWORK_GROUP, "SriovNetworkNodeState") => Some(Self::NodeState),
            ("", "Node") => Some(Self::Node),
            (WHEREABOUTS_GROUP, "IPPool") => Some(Self::IpPool),
            (WHEREABOUTS_GROUP, "OverlappingRangeIPReservation") => Some(Self::Reservation),
            _ => WorkloadKind::of(api_version, kind).map(Self::User),
        }
    }
}

/// A network, and the NAD that it renders.
#[derive(Clone, Debug)]
struct ReadNetwork {
    row: MapNetwork,
    nad: Option<ReadNad>,
}

/// What decides which networks the operator renders.
#[derive(Clone, Debug)]
struct RenderRules {
    policy: Policy,
    facts: Facts,
}

/// Builds a map.
#[derive(Clone, Debug, Default)]
pub struct MapBuilder {
    prefix: String,
    /// `None` where nothing is known about the operator: it may render every network then.
    rules: Option<Arc<RenderRules>>,
    source: MapSource,
    networks: Vec<ReadNetwork>,
    nads: Vec<ReadNad>,
    policies: Vec<MapNodePolicy>,
    pfs: Vec<MapPf>,
    nodes: Option<BTreeMap<String, BTreeMap<String, u64>>>,
    leases: LeaseStore,
    kept_leases: usize,
    users: Vec<MapUser>,
    findings: Vec<MapFinding>,
    unknown: Vec<UnknownPart>,
    left_out: BTreeMap<&'static str, usize>,
}

impl MapBuilder {
    /// A map made from that; networks are rendered with that prefix of resource names.
    pub fn new(source: MapSource, prefix: &str) -> Self {
        Self { source, prefix: short(prefix), ..Self::default() }
    }

    /// The same, with what is known about the operator: it ignores networks of other namespaces that have a foreign target.
    pub fn with_operator(self, policy: &Policy, facts: Facts) -> Self {
        Self { rules: Some(Arc::new(RenderRules { policy: policy.clone(), facts })), ..self }
    }

    /// An empty map with the same prefix and operator.
    pub fn part(&self) -> Self {
        Self { prefix: self.prefix.clone(), rules: self.rules.clone(), source: self.source.clone(), ..Self::default() }
    }

    /// Adds an object of that kind, which was found at that place.
    pub fn add(&mut self, kind: MapKind, json: &str, place: &str) {
        match kind {
            MapKind::Judged => self.add_judged(json, place),
            MapKind::NodePolicy => {
                if let Some(row) =
                    policies::read(json, place).filter(|_| self.has_capacity("policies", self.policies.len()))
                {
                    self.policies.push(row);
                }
            }
            MapKind::NodeState => {
                if self.has_capacity("pfs", self.pfs.len()) {
                    self.pfs.extend(devices::pfs_of_state(json));
                }
            }
            MapKind::Node => {
                let known = self.nodes.as_ref().map_or(0, BTreeMap::len);
                if let Some((name, has)) = resources::of_node(json).filter(|_| self.has_capacity("nodes", known)) {
                    self.nodes.get_or_insert_default().insert(name, has);
                }
            }
            MapKind::IpPool => {
                let remaining = MAX_LEASES.saturating_sub(self.kept_leases);
                let pool = LeasePool::read(json, remaining);
                if let Some(pool) = pool.filter(|_| self.has_capacity("ip_pools", self.leases.pools.len())) {
                    self.kept_leases += pool.kept();
                    self.leases.pools.push(pool);
                }
            }
            MapKind::Reservation => {
                if let Some(name) =
                    name_of_object(json).filter(|_| self.has_capacity("reservations", self.leases.reservations.len()))
                {
                    self.leases.reservations.push(name);
                }
            }
            MapKind::User(kind) => {
                let is_cluster = matches!(self.source, MapSource::Cluster { .. });
                let user = users::read(kind, json, place, is_cluster);
                if let Some(user) = user.filter(|_| self.has_capacity("users", self.users.len())) {
                    self.users.push(user);
                }
            }
        }
    }

    fn add_judged(&mut self, json: &str, place: &str) {
        match Object::read(json) {
            Ok(Some(Object::Nad(nad))) if self.has_capacity("nads", self.nads.len()) => {
                self.nads.push(ReadNad::of(&nad, true, place));
            }
            Ok(Some(Object::Network(network))) if self.has_capacity("networks", self.networks.len()) => {
                let network = self.read_network(&network, place);
                self.networks.push(network);
            }
            _ => {}
        }
    }

    fn read_network(&self, network: &Network<'_>, place: &str) -> ReadNetwork {
        let target = network.target_namespace();
        let is_rendered = self
            .rules
            .as_ref()
            .is_none_or(|rules| rules.policy.may_render(&NetworkFact::of(network), &target, &rules.facts));
        let rendered: Rendered = render(network, &self.prefix);
        let nad = rendered.nad().filter(|_| is_rendered).map(|nad| ReadNad::of(&nad, false, ""));
        let problem = if is_rendered {
            nad.is_none().then(|| "the operator cannot render a NAD from it".to_owned())
        } else {
            Some("the operator ignores it: only networks in its own namespace can have a networkNamespace".to_owned())
        };
        let row = MapNetwork {
            kind: network.kind.name(),
            namespace: short(&network.meta.namespace),
            name: short(&network.meta.name),
            nad: if is_rendered { key(&target, &network.meta.name) } else { String::new() },
            resource: short(&network.text("resourceName")),
            problem,
            place: place.to_owned(),
        };
        ReadNetwork { row, nad }
    }

    /// Adds the findings about an object.
    pub fn add_findings(&mut self, object: &Object<'_>, verdict: &Verdict) {
        finding_rows::of_verdict(object, verdict).into_iter().for_each(|finding| self.add_finding(finding));
    }

    /// Adds a finding.
    pub fn add_finding(&mut self, finding: MapFinding) {
        if self.has_capacity("findings", self.findings.len()) {
            self.findings.push(finding);
        }
    }

    /// Records that something is not known, and why.
    pub fn unknown(&mut self, what: &str, why: &str) {
        self.unknown.push(UnknownPart { what: short(what), why: short(why) });
    }

    /// Records that all nodes were read.
    pub fn knows_nodes(&mut self) {
        self.nodes.get_or_insert_default();
    }

    /// Records that all IPPools were read, and whether every NAD was that may have one of their ranges.
    pub fn knows_leases(&mut self, knows_all_nads: bool) {
        (self.leases.is_complete, self.leases.knows_all_nads) = (true, knows_all_nads);
    }

    /// Keeps the networks that render a NAD in that namespace, or are in it.
    pub fn only_networks_of(&mut self, namespace: &str) {
        let is_of = |network: &MapNetwork| network.namespace == namespace || groups::target_of(network) == namespace;
        self.networks.retain(|network| is_of(&network.row));
    }

    /// Adds another map's objects, which come after these.
    pub fn merge(&mut self, other: Self) {
        self.networks.extend(other.networks);
        self.nads.extend(other.nads);
        self.policies.extend(other.policies);
        self.pfs.extend(other.pfs);
        if let Some(nodes) = other.nodes {
            self.nodes.get_or_insert_default().extend(nodes);
        }
        self.leases.pools.extend(other.leases.pools);
        self.leases.reservations.extend(other.leases.reservations);
        self.users.extend(other.users);
        self.findings.extend(other.findings);
        self.unknown.extend(other.unknown);
        for (list, count) in other.left_out {
            *self.left_out.entry(list).or_default() += count;
        }
        self.cut();
    }

    /// Cuts what several parts have too much together.
    fn cut(&mut self) {
        fn cut<T>(list: &'static str, rows: &mut Vec<T>, left_out: &mut BTreeMap<&'static str, usize>) {
            if rows.len() > MAX_ROWS {
                *left_out.entry(list).or_default() += rows.len() - MAX_ROWS;
                rows.truncate(MAX_ROWS);
            }
        }
        cut("networks", &mut self.networks, &mut self.left_out);
        cut("nads", &mut self.nads, &mut self.left_out);
        cut("policies", &mut self.policies, &mut self.left_out);
        cut("pfs", &mut self.pfs, &mut self.left_out);
        cut("users", &mut self.users, &mut self.left_out);
        cut("findings", &mut self.findings, &mut self.left_out);
        cut("ip_pools", &mut self.leases.pools, &mut self.left_out);
        cut("reservations", &mut self.leases.reservations, &mut self.left_out);
    }

    fn has_capacity(&mut self, list: &'static str, rows: usize) -> bool {
        if rows >= MAX_ROWS {
            *self.left_out.entry(list).or_default() += 1;
        }
        rows < MAX_ROWS
    }

    /// The map.
    pub fn finish(mut self) -> NetworkMap {
        self.sort();
        let networks: Vec<MapNetwork> = self.networks.iter().map(|network| network.row.clone()).collect();
        let mut nads = self.all_nads();
        let mut index = RangeIndex::default();
        for nad in &mut nads {
            nad.row.ranges = index.add(&nad.key(), &nad.ranges);
        }
        let specs = index.by_id.clone();
        let mut ranges = index.into_rows();
        let mut leases = std::mem::take(&mut self.leases).fill(&mut ranges, &specs);
        ranges.sort_by(|one, other| one.id.cmp(&other.id));
        leases.sort_by_cached_key(|lease| {
            (lease.range.clone(), lease.address.parse::<std::net::IpAddr>().ok(), lease.pod.clone())
        });
        let ovn_networks = groups::ovn_networks(&nads);
        let nads: Vec<MapNad> = nads.into_iter().map(|nad| nad.row).collect();
        let sources = ResourceSources {
            prefix: &self.prefix,
            policies: &self.policies,
            networks: &networks,
            nads: &nads,
            users: &self.users,
            nodes: self.nodes.as_ref(),
        };
        let resources = sources.rows();
        let names: BTreeSet<&str> = resources.iter().map(|resource| resource.name.as_str()).collect();
        // Pods with other devices than those of networks are of no interest here.
        self.users.retain(|user| {
            !user.networks.is_empty()
                || user.problem.is_some()
                || user.requests.keys().any(|name| names.contains(name.as_str()))
        });
        for user in &mut self.users {
            user.requests.retain(|name, _| names.contains(name.as_str()));
        }
        let pfs = if self.pfs.is_empty() { devices::pfs_of_policies(&self.policies) } else { self.pfs };
        let mut map = NetworkMap {
            version: MAP_VERSION,
            source: self.source,
            unknown: self.unknown,
            left_out: self.left_out,
            namespaces: Vec::new(),
            networks,
            nads,
            ranges,
            leases,
            policies: self.policies,
            pfs,
            resources,
            ovn_networks,
            users: self.users,
            findings: self.findings,
        };
        map.namespaces = groups::namespaces(&map);
        map
    }

    /// An overlay and its base have the same object twice; the first counts.
    fn sort(&mut self) {
        let id = |row: &MapNetwork| (row.namespace.clone(), row.name.clone(), row.kind);
        self.networks.sort_by_cached_key(|network| id(&network.row));
        self.networks.dedup_by_key(|network| id(&network.row));
        self.nads.sort_by_cached_key(ReadNad::key);
        self.nads.dedup_by_key(|nad| nad.key());
        self.policies.sort_by_cached_key(|policy| key(&policy.namespace, &policy.name));
        self.policies.dedup_by_key(|policy| key(&policy.namespace, &policy.name));
        self.pfs.sort_by(|one, other| (&one.node, &one.pci_address).cmp(&(&other.node, &other.pci_address)));
        let id = |user: &MapUser| (key(&user.namespace, &user.name), user.kind);
        self.users.sort_by_cached_key(id);
        self.users.dedup_by_key(|user| id(user));
        self.findings.sort();
        self.findings.dedup();
        self.unknown.sort();
        self.unknown.dedup();
    }

    /// The stored NADs, each with the networks that render it, and those that networks would render where none is.
    fn all_nads(&mut self) -> Vec<ReadNad> {
        let mut at: HashMap<String, usize> =
            self.nads.iter().enumerate().map(|(number, nad)| (nad.key(), number)).collect();
        let mut nads = std::mem::take(&mut self.nads);
        for network in &mut self.networks {
            let Some(rendered) = network.nad.take() else { continue };
            let number = *at.entry(network.row.nad.clone()).or_insert_with(|| {
                nads.push(rendered);
                nads.len() - 1
            });
            if let Some(nad) = nads.get_mut(number).filter(|nad| nad.row.networks.len() < MAX_PARTS) {
                let row = &network.row;
                nad.row.networks.push(object_name(row.kind, &row.namespace, &row.name));
            }
        }
        nads.sort_by_cached_key(ReadNad::key);
        nads
    }
}

fn name_of_object(json: &str) -> Option<String> {
    let object = RawFields::parse(json).ok()?;
    let meta = RawFields::parse(object.raw("metadata")?).ok()?;
    meta.text("name").value().map(|name| short(&name))
}
