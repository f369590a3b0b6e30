//! What an audit knows around the objects it judges, and the facts it makes of that.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::moments::{Kept, Moments};
use super::operator::Writers;
use crate::policy::{
    Facts, Lookup, NadFact, NamespaceState, NetworkFact, OperatorLife, Policy, Prefix, Rewrites, Stored, Subject,
    Verdict, judge,
};
use crate::resources::{Network, NetworkId, Object};

/// How many networks that render to one place are told of: to rules, more of them make no difference.
const MOST_HERE: usize = 4;

/// What is known of a cluster besides the objects that are judged. What could not be read is unknown.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The time.
    pub now: Timestamp,
    /// The namespaces.
    pub namespaces: Option<HashMap<Box<str>, NamespaceState>>,
    /// The resource names that node policies offer.
    pub offered: Option<Arc<[String]>>,
    /// The operator's namespace.
    pub operator_namespace: Option<String>,
    /// The operator's resource prefix.
    pub prefix: Option<Prefix>,
    /// Whether the operator runs.
    pub operator_runs: Option<bool>,
    /// Who writes the NADs that networks render, the operator among them.
    pub writers: Writers,
    /// How many networks wait for their NADs.
    pub waiting: usize,
}

/// A network that was read, and what is known of it alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfNetwork<'a> {
    /// The NAD where it renders to, if there is one.
    pub nad: Option<&'a Kept>,
    /// Its NAD where it went last; `Unknown` where it goes there still.
    pub last_nad: Option<bool>,
    /// Who refuses its NAD, and in which words.
    pub refused: Option<&'a str>,
}

impl Around {
    /// Judges a stored NAD, beside the networks that render to its place and the one it names as its owner.
    pub fn nad(
        &self,
        (object, moments): (&Object<'_>, &Moments),
        here: &[NetworkFact],
        named_owner: Lookup<NetworkFact>,
        rewrites: Option<Rewrites>,
        policy: &Policy,
    ) -> Verdict {
        let stored = Stored { rewrites, ..self.stored(moments) };
        let facts = Facts { named_owner, knows_networks: true, ..self.facts(here, stored) };
        judge(&Subject::manifest(object), &facts, policy)
    }

    /// Judges a stored network.
    pub fn network(
        &self,
        (object, network, moments): (&Object<'_>, &Network<'_>, &Moments),
        here: &[NetworkFact],
        of: OfNetwork<'_>,
        rewrites: Option<Rewrites>,
        policy: &Policy,
    ) -> Verdict {
        let nad_written = of.nad.and_then(|nad| nad.moments.written);
        let stored = Stored {
            // As long as somebody still writes one of the two, nothing is settled.
            unchanged_for: self.since(moments.written.max(nad_written)),
            nad: of.nad.map_or(Lookup::Absent, |nad| Lookup::Found(nad.text.to_string())),
            condition: moments.condition.clone(),
            refused: of.refused.map(str::to_owned),
            operator: self.operator(moments.written),
            waiting: self.waiting,
            rewrites,
            ..self.stored(moments)
        };
        let target = network.target_namespace();
        let facts = Facts {
            nad_here: of.nad.map_or(Lookup::Absent, |nad| Lookup::Found(nad_fact(nad))),
            last_nad: of
                .last_nad
                .map_or(Lookup::Unknown, |is_there| if is_there { Lookup::Found(()) } else { Lookup::Absent }),
            target_namespace: self.namespaces.as_ref().map_or(Lookup::Unknown, |known| {
                known.get(target.as_ref()).map_or(Lookup::Absent, |state| Lookup::Found(*state))
            }),
            offered: self.offered.clone(),
            ..self.facts(here, stored)
        };
        judge(&Subject::manifest(object), &facts, policy)
    }

    /// Whether a network without a NAD waits for nobody but the operator, and has done so for long enough.
    pub fn waits(&self, network: &Network<'_>, moments: &Moments, policy: &Policy) -> bool {
        let target = network.target_namespace();
        let is_ready =
            self.namespaces.as_ref().is_none_or(|known| known.get(target.as_ref()) == Some(&NamespaceState::Active));
        is_ready && !network.meta.deleting && self.since(moments.written) >= policy.audit.grace()
    }

    /// How long from now until it is time to look at an object again, because others must have done their part by then.
    pub fn due_in(&self, moments: &Moments, policy: &Policy) -> Option<Duration> {
        let begun = moments.deleted.or(moments.written)?;
        policy.audit.grace().checked_sub(self.since(Some(begun))).filter(|rest| !rest.is_zero())
    }

    fn facts(&self, here: &[NetworkFact], stored: Stored) -> Facts {
        Facts {
            networks_here: here.iter().take(MOST_HERE).cloned().collect(),
            prefix: self.prefix.clone(),
            operator_namespace: self.operator_namespace.clone(),
            stored: Some(Box::new(stored)),
            today: Some(self.now.to_zoned(TimeZone::UTC).date()),
            ..Facts::default()
        }
    }

    fn stored(&self, moments: &Moments) -> Stored {
        Stored {
            unchanged_for: self.since(moments.written),
            deleting_for: moments.deleted.map(|deleted| self.since(Some(deleted))),
            finalizers: moments.finalizers.clone(),
            ..Stored::default()
        }
    }

    /// How long ago a moment was. One in the future, by a clock that is wrong, is now; so is one that nobody knows.
    fn since(&self, moment: Option<Timestamp>) -> Duration {
        moment.and_then(|moment| self.now.duration_since(moment).try_into().ok()).unwrap_or_default()
    }

    fn operator(&self, written: Option<Timestamp>) -> OperatorLife {
        match self.operator_runs {
            None => OperatorLife::Unknown,
            Some(false) => OperatorLife::Gone,
            // The API server's moments are whole seconds: in the same one nobody knows who came first.
            Some(true) if self.writers.operator_wrote() > written => OperatorLife::Works,
            Some(true) => OperatorLife::Silent,
        }
    }
}

fn nad_fact(nad: &Kept) -> NadFact {
    let owner: Option<NetworkId> = match Object::read(&nad.text) {
        Ok(Some(object)) => object.meta().owner(),
        _ => None,
    };
    NadFact { owner }
}
