//! Reads what is on a map of the secondary networks, page by page, with the caller's permissions. Of each object only a row is kept.
//!
//! What may not be read is recorded as not known, with the missing permission. Findings are those of the scan of `nadmit audit`, which here
//! makes no dry runs: nothing but reads is sent.

mod sink;

use jiff::Timestamp;

use crate::audit::map::{MapBuilder, MapKind, MapSource, NetworkMap};
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, missing};
use crate::cluster::leader::dry_run::DryRunDenials;
use crate::cluster::leader::full_scan::FullScan;
use crate::cluster::leader::scan_scope::ScanScope;
use crate::policy::{Facts, NameVisibility, Operators, Policy};
use crate::resources::{NetworkKind, WorkloadKind};
use sink::FindingSink;

/// The prefix of resource names where it is not known.
const DEFAULT_PREFIX: &str = "openshift.io";

/// What is read.
#[derive(Clone, Copy)]
pub struct MapScan<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The policy, for findings.
    pub policy: &'a Policy,
    /// The only namespace; `None` for all.
    pub namespace: Option<&'a str>,
    /// The prefix of resource names, if it is given.
    pub prefix: Option<&'a str>,
}

/// Where the objects of a kind are, if the map is of one namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// In that namespace.
    There,
    /// Also in others: in all namespaces if permitted, and otherwise in that one.
    Anywhere,
    /// Only in others, or in none.
    Elsewhere,
}

/// How much of a kind was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadExtent {
    Everything,
    Namespace,
    Nothing,
}

impl MapScan<'_> {
    /// The map. It is an error if neither NADs nor networks nor pods can be read.
    pub async fn run(&self, now: Timestamp, progress: &mut (dyn FnMut(usize) + Send)) -> Result<NetworkMap, ApiError> {
        let mut sink = FindingSink::default();
        let scope = ScanScope { namespace: self.namespace.map(str::to_owned), selector: None };
        let scan =
            FullScan { cluster: self.cluster, policy: self.policy, names: NameVisibility::All, scope, caches: None };
        let scanned = scan.run(now, &mut DryRunDenials::off(), &mut sink).await;
        let found_prefix = scanned.as_ref().ok().and_then(|scanned| scanned.context.prefix.as_ref());
        let prefix = self.prefix.or(found_prefix.map(|prefix| prefix.value.as_str())).unwrap_or(DEFAULT_PREFIX);
        let source = MapSource::Cluster {
            name: self.cluster.description().to_owned(),
            namespace: self.namespace.map(str::to_owned),
        };
        let operators = scanned.as_ref().map_or(Operators::Unknown, |scanned| scanned.context.operators.clone());
        let facts = Facts { operators, is_cluster: true, ..Facts::default() };
        let mut map = MapBuilder::new(source, prefix).with_operator(self.policy, facts);
        match scanned {
            Ok(scanned) => scanned.unread.iter().for_each(|note| map.unknown("some findings", note)),
            Err(failed) if failed.is_forbidden() => map.unknown("findings", &failed.to_string()),
            Err(failed) => return Err(failed),
        }
        sink.into_findings().into_iter().for_each(|finding| map.add_finding(finding));
        self.objects(&mut map, progress).await?;
        Ok(map.finish())
    }

    async fn objects(&self, map: &mut MapBuilder, progress: &mut (dyn FnMut(usize) + Send)) -> Result<(), ApiError> {
        let nads = self.read(map, ApiResource::NADS, (MapKind::Judged, "NADs", Where::There), progress).await?;
        let mut readable = usize::from(nads != ReadExtent::Nothing);
        for kind in NetworkKind::ALL {
            let what = format!("{}s", kind.name());
            let read = (MapKind::Judged, what.as_str(), Where::Anywhere);
            let extent = self.read(map, ApiResource::network(kind), read, progress).await?;
            readable += usize::from(extent != ReadExtent::Nothing);
        }
        if let Some(namespace) = self.namespace {
            map.only_networks_of(namespace);
        }
        let pods = (MapKind::User(WorkloadKind::Pod), "pods", Where::There);
        readable += usize::from(self.read(map, ApiResource::PODS, pods, progress).await? != ReadExtent::Nothing);
        if readable == 0 {
            let namespace =
                self.namespace.map_or_else(|| "all namespaces".to_owned(), |name| format!("namespace {name}"));
            let right = format!("list {} or pods in {namespace}", ApiResource::NADS.plural());
            let hint = if self.namespace.is_none() { "; pass --namespace NAME to map one" } else { "" };
            return Err(ApiError::Forbidden(format!("{}{hint}", missing(&right))));
        }
        for (resource, kind, what) in [
            (ApiResource::NODE_POLICIES, MapKind::NodePolicy, "SriovNetworkNodePolicies"),
            (ApiResource::NODE_STATES, MapKind::NodeState, "SriovNetworkNodeStates"),
        ] {
            self.read(map, resource, (kind, what, Where::Elsewhere), progress).await?;
        }
        let nodes = (MapKind::Node, "nodes", Where::Elsewhere);
        if self.read(map, ApiResource::NODES, nodes, progress).await? == ReadExtent::Everything {
            map.knows_nodes();
        }
        let pools = (MapKind::IpPool, "IPPools", Where::Elsewhere);
        if self.read(map, ApiResource::IP_POOLS, pools, progress).await? == ReadExtent::Everything {
            map.knows_leases(self.namespace.is_none() && nads == ReadExtent::Everything);
        }
        let reservations = (MapKind::Reservation, "OverlappingRangeIPReservations", Where::Elsewhere);
        self.read(map, ApiResource::IP_RESERVATIONS, reservations, progress).await?;
        Ok(())
    }

    /// Reads all objects of a kind that may be read.
    async fn read(
        &self,
        map: &mut MapBuilder,
        resource: ApiResource,
        (kind, what, place): (MapKind, &str, Where),
        progress: &mut (dyn FnMut(usize) + Send),
    ) -> Result<ReadExtent, ApiError> {
        let plural = resource.plural();
        let in_namespace = |namespace: &str| ApiPath::in_namespace(resource, namespace);
        let mut attempts = Vec::new();
        match self.namespace {
            Some(namespace) if place == Where::There => {
                let right = format!("list {plural} in namespace {namespace}");
                attempts.push((in_namespace(namespace)?, right, ReadExtent::Everything));
            }
            Some(namespace) if place == Where::Anywhere => {
                attempts.push((
                    ApiPath::all(resource),
                    format!("list {plural} in all namespaces"),
                    ReadExtent::Everything,
                ));
                let right = format!("list {plural} in namespace {namespace}");
                attempts.push((in_namespace(namespace)?, right, ReadExtent::Namespace));
            }
            _ if resource == ApiResource::NODES => {
                attempts.push((ApiPath::all(resource), format!("list {plural}"), ReadExtent::Everything));
            }
            _ => {
                attempts.push((
                    ApiPath::all(resource),
                    format!("list {plural} in all namespaces"),
                    ReadExtent::Everything,
                ));
            }
        }
        let last = attempts.len();
        for (number, (path, right, extent)) in attempts.into_iter().enumerate() {
            let add = |text: &str| {
                map.add(kind, text, "");
                progress(1);
            };
            match self.cluster.for_each_object(&path, add).await {
                Ok(_) => return Ok(extent),
                Err(failed) if failed.is_forbidden() => {
                    let what = if number + 1 < last { format!("{what} of other namespaces") } else { what.to_owned() };
                    map.unknown(&what, &missing(&right));
                }
                Err(failed) => return Err(failed),
            }
        }
        Ok(ReadExtent::Nothing)
    }
}
