//! A look at all that is stored. Lists come page by page and are judged as they come: networks first, of which a short text is kept,
//! then NADs, each together with the networks that render to its place; at the end the networks that have none.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;

use super::collection::{Id, Page, key};
use super::later::{Later, Memory};
use super::pages::Pages;
use super::refusals::Refusals;
use super::surroundings::Unread;
use super::{Cluster, Failed};
use crate::audit::around::{Around, OfNetwork};
use crate::audit::moments::{Kept, Moments};
use crate::policy::{Lookup, Names, NetworkFact, Policy, Rewrites, Verdict};
use crate::resources::raw::Fields;
use crate::resources::{LAST_NAMESPACE, NAD_GROUP, NADS, NETWORK_GROUP, NetworkId, NetworkKind, Object};
use crate::supervise::{Panicked, contained, contained_async};

/// An object that was looked at.
pub struct Looked<'a> {
    /// The object, as JSON, without its managedFields.
    pub text: &'a str,
    /// The same, read.
    pub object: &'a Object<'a>,
    /// When it was written, and the like.
    pub moments: &'a Moments,
    /// For a NAD: whether a network renders it.
    pub is_rendered: bool,
    /// What came of it.
    pub verdict: Verdict,
}

/// Who is told what was found.
pub trait Sink: Send {
    /// So many more objects are there to look at.
    fn expects(&mut self, objects: usize);

    /// How often an object was written lately, where somebody watched.
    fn rewrites(&self, kind: &str, namespace: &str, name: &str) -> Option<Rewrites>;

    /// An object was looked at.
    fn looked(&mut self, looked: Looked<'_>) -> impl Future<Output = ()> + Send;

    /// An object made the judgement panic and was skipped.
    fn skipped(&mut self, object: &str, panicked: &Panicked);
}

/// One who looks at everything once.
pub struct Survey<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The policy.
    pub policy: &'a Policy,
    /// What may be named to whoever reads what is found.
    pub names: Names,
}

/// What came of it besides findings.
#[derive(Debug, Default)]
pub struct Surveyed {
    /// What could not be read, so that what depends on it was not checked: in words.
    pub unread: Vec<String>,
    /// What is around the objects.
    pub around: Around,
    /// The time spent waiting for lists.
    pub listing: Duration,
}

/// The networks that were listed.
#[derive(Default)]
struct Networks {
    /// By the place they render to.
    at: HashMap<Box<str>, Vec<Later>>,
    /// By what they are called.
    known: HashMap<NetworkId, NetworkFact>,
}

impl Survey<'_> {
    /// Looks at everything. What cannot be listed, of the kinds that are judged, is an error.
    pub async fn run(&self, now: Timestamp, refusals: &mut Refusals, sink: &mut impl Sink) -> Result<Surveyed, Failed> {
        let began = std::time::Instant::now();
        let mut unread = Unread::default();
        let around = self.cluster.surroundings(self.policy, now, &mut unread).await;
        let around = Around { names: self.names.clone(), ..around };
        let mut networks = self.networks(sink).await?;
        let mut surveyed = Surveyed { unread: unread.0, around, listing: began.elapsed() };
        let rest = self.nads(&mut networks, &mut surveyed, sink).await?;
        self.alone(rest, &mut networks, &mut surveyed.around, refusals, sink).await?;
        Ok(surveyed)
    }

    async fn networks(&self, sink: &mut impl Sink) -> Result<Networks, Failed> {
        let mut networks = Networks::default();
        let mut memory = Memory::default();
        for kind in NetworkKind::ALL {
            let mut seen = 0;
            let address = format!("/apis/{NETWORK_GROUP}/v1/{}", kind.plural());
            let mut skipped = Vec::new();
            let add = |text: &str| {
                seen += 1;
                skipped.extend(
                    contained(|| networks.add(text, &mut memory)).err().map(|panicked| (described(text), panicked)),
                );
            };
            self.cluster.each(&address, "", add).await?;
            sink.expects(seen);
            skipped.iter().for_each(|(object, panicked)| sink.skipped(object, panicked));
        }
        Ok(networks)
    }

    /// Looks at every NAD and the networks of its place; the places of NADs are what is left to know for the others.
    async fn nads(
        &self,
        networks: &mut Networks,
        surveyed: &mut Surveyed,
        sink: &mut impl Sink,
    ) -> Result<Rest, Failed> {
        let mut rest = Rest::default();
        let address = format!("/apis/{NAD_GROUP}/v1/{NADS}");
        let mut pages = Pages::of(&address, "");
        loop {
            let began = std::time::Instant::now();
            let Some(text) = pages.next(self.cluster).await? else { return Ok(rest) };
            surveyed.listing += began.elapsed();
            let page = Page::read(&text)?;
            pages.after(&page);
            sink.expects(page.objects.len());
            for text in &page.objects {
                let read = contained(|| Kept::of(text).zip(Id::of(text)));
                let read = read.unwrap_or_else(|panicked| {
                    sink.skipped(&described(text), &panicked);
                    None
                });
                let Some((nad, id)) = read else { continue };
                let place = id.key();
                let at = self.whole(networks.at.remove(&place).unwrap_or_default()).await?;
                if !here(&at, &surveyed.around, self.policy).is_empty() {
                    surveyed.around.writers.saw(&nad.moments);
                }
                rest.places.insert(place);
                self.place(Some(&nad), at, networks, &surveyed.around, &mut rest, sink).await;
            }
        }
    }

    /// Looks at a NAD and at the networks that render it, but for those of which it must first be known what else is there.
    async fn place(
        &self,
        nad: Option<&Kept>,
        at: Vec<Kept>,
        networks: &Networks,
        around: &Around,
        rest: &mut Rest,
        sink: &mut impl Sink,
    ) {
        let here = here(&at, around, self.policy);
        if let Some(kept) = nad
            && let Err(panicked) = contained_async(self.nad(kept, &here, networks, around, sink)).await
        {
            sink.skipped(&described(&kept.text), &panicked);
        }
        for network in at {
            if let Some(id) = moved_from(&network.text).and_then(|_| fact(&network.text)).map(|fact| fact.id) {
                let nad = nad.and_then(|nad| Later::nad(nad, &mut rest.memory));
                let network = Later::network(id, network, &mut rest.memory);
                rest.moved.push(Moved { network, here: here.clone(), nad });
            } else {
                self.network(&network, &here, OfNetwork { nad, ..OfNetwork::default() }, around, sink).await;
            }
        }
    }

    async fn nad(&self, kept: &Kept, here: &[NetworkFact], networks: &Networks, around: &Around, sink: &mut impl Sink) {
        let Ok(Some(object)) = Object::read(&kept.text) else { return };
        let meta = object.meta();
        let named = meta.owner().map_or(Lookup::Unknown, |owner| {
            networks.known.get(&owner).map_or(Lookup::Absent, |network| Lookup::Found(network.clone()))
        });
        let rewrites = sink.rewrites(object.kind(), &meta.namespace, &meta.name);
        let verdict = around.nad((&object, &kept.moments), here, named, rewrites, self.policy);
        let is_rendered = !here.is_empty();
        sink.looked(Looked { text: &kept.text, object: &object, moments: &kept.moments, is_rendered, verdict }).await;
    }

    /// Looks at what is left: the networks that moved, and those without a NAD.
    async fn alone(
        &self,
        mut rest: Rest,
        networks: &mut Networks,
        around: &mut Around,
        refusals: &mut Refusals,
        sink: &mut impl Sink,
    ) -> Result<(), Failed> {
        for (_, at) in std::mem::take(&mut networks.at) {
            let facts = at.iter().filter_map(|network| networks.known.get(network.id.as_ref()?).cloned()).collect();
            let here = renderers(facts, around, self.policy);
            rest.moved.extend(at.into_iter().map(|network| Moved { network, here: here.clone(), nad: None }));
        }
        // Their order is that of a map until here.
        rest.moved.sort_by(|one, other| one.network.path.cmp(&other.network.path));
        let mut waiting = Vec::new();
        for moved in rest.moved.iter().filter(|moved| moved.nad.is_none()) {
            let Some(network) = moved.network.whole(self.cluster).await? else { continue };
            if self.waits(&network, around) {
                waiting.push((&moved.network, network.moments.uid.clone()));
            }
        }
        around.waiting = waiting.len();
        refusals.ask(self.cluster, waiting, around).await;
        for Moved { network, here, nad } in &rest.moved {
            let Some(network) = network.whole(self.cluster).await? else { continue };
            let nad = match nad {
                Some(nad) => nad.whole(self.cluster).await?,
                None => None,
            };
            let last_nad = moved_from(&network.text).map(|(last, name)| rest.places.contains(&key(&last, &name)));
            let waits = nad.is_none() && self.waits(&network, around);
            let refused = refusals.said(&network.moments.uid).filter(|_| waits);
            let of = OfNetwork { nad: nad.as_deref(), last_nad, refused };
            self.network(&network, here, of, around, sink).await;
        }
        Ok(())
    }

    /// All of these, read again where they were too large to be held; those that are gone by now are left out.
    async fn whole(&self, networks: Vec<Later>) -> Result<Vec<Kept>, Failed> {
        let mut whole = Vec::with_capacity(networks.len());
        for network in networks {
            whole.extend(network.into_whole(self.cluster).await?);
        }
        Ok(whole)
    }

    fn waits(&self, kept: &Kept, around: &Around) -> bool {
        match Object::read(&kept.text) {
            Ok(Some(Object::Network(network))) => around.waits(&network, &kept.moments, self.policy),
            _ => false,
        }
    }

    async fn network(
        &self,
        kept: &Kept,
        here: &[NetworkFact],
        of: OfNetwork<'_>,
        around: &Around,
        sink: &mut impl Sink,
    ) {
        if let Err(panicked) = contained_async(self.judge_network(kept, here, of, around, sink)).await {
            sink.skipped(&described(&kept.text), &panicked);
        }
    }

    async fn judge_network(
        &self,
        kept: &Kept,
        here: &[NetworkFact],
        of: OfNetwork<'_>,
        around: &Around,
        sink: &mut impl Sink,
    ) {
        let Ok(Some(object)) = Object::read(&kept.text) else { return };
        let Object::Network(network) = &object else { return };
        let rewrites = sink.rewrites(object.kind(), &network.meta.namespace, &network.meta.name);
        let verdict = around.network((&object, network, &kept.moments), here, of, rewrites, self.policy);
        let looked = Looked { text: &kept.text, object: &object, moments: &kept.moments, is_rendered: false, verdict };
        sink.looked(looked).await;
    }
}

/// What is known only when all NADs were seen.
#[derive(Default)]
struct Rest {
    /// Where there are NADs.
    places: HashSet<Box<str>>,
    /// The networks that went elsewhere before, and those without a NAD.
    moved: Vec<Moved>,
    memory: Memory,
}

/// A network that is looked at when all NADs were seen.
struct Moved {
    network: Later,
    /// The networks that render to the same place.
    here: Vec<NetworkFact>,
    /// The NAD there.
    nad: Option<Later>,
}

impl Networks {
    fn add(&mut self, text: &str, memory: &mut Memory) {
        let (Some(kept), Some(fact)) = (Kept::of(text), fact(text)) else { return };
        let network = Later::network(fact.id.clone(), kept, memory);
        self.at.entry(key(&fact.target_namespace, &fact.id.name)).or_default().push(network);
        self.known.insert(fact.id.clone(), fact);
    }
}

/// The kind and the name of an object that may be unfit to be read.
pub(super) fn described(text: &str) -> String {
    let read = || {
        let kind = Fields::parse(text).ok()?.text("kind").value()?.into_owned();
        Some(format!("{kind} {}", Id::of(text)?.key()))
    };
    contained(read).ok().flatten().unwrap_or_else(|| "an object without a name".to_owned())
}

/// What is known of the networks at one place, of those that the operator renders there.
pub(super) fn here(at: &[Kept], around: &Around, policy: &Policy) -> Vec<NetworkFact> {
    renderers(at.iter().filter_map(|network| fact(&network.text)).collect(), around, policy)
}

fn renderers(facts: Vec<NetworkFact>, around: &Around, policy: &Policy) -> Vec<NetworkFact> {
    let target = facts.first().map(|fact| fact.target_namespace.clone()).unwrap_or_default();
    around.renderers(facts, &target, policy)
}

/// What is known of a network by its text.
fn fact(text: &str) -> Option<NetworkFact> {
    match Object::read(text) {
        Ok(Some(Object::Network(network))) => Some(NetworkFact::of(&network)),
        _ => None,
    }
}

/// The namespace that a network rendered to before, if it is another one, and its name.
fn moved_from(text: &str) -> Option<(String, String)> {
    let Ok(Some(Object::Network(network))) = Object::read(text) else { return None };
    let last = network.meta.annotation(LAST_NAMESPACE).filter(|last| *last != network.target_namespace())?;
    Some((last.into_owned(), network.meta.name.into_owned()))
}
