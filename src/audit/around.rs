//! What an audit knows around the objects it judges, and the facts it makes of that.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::moments::{Kept, Moments};
use super::operator::Writers;
use crate::policy::{
    Facts, Lookup, NadFact, Names, NamespaceState, NetworkFact, OperatorLife, Operators, Policy, Prefix, Rewrites,
    Stored, Subject, Verdict, judge,
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
    /// The operators.
    pub operators: Operators,
    /// What may be named to whoever reads the findings.
    pub names: Names,
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
        if self.is_foreign(network, policy) {
            let stored = Stored { nad: Lookup::Unknown, refused: None, ..stored };
            return judge(&Subject::manifest(object), &self.facts(&[], stored), policy);
        }
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
        is_ready
            && !network.meta.deleting
            && !self.is_foreign(network, policy)
            && self.since(moments.written) >= policy.audit.grace()
    }

    /// Whether a network names a place where the operator does not render it. What is there is none of its author's business, and what
    /// an audit finds is for its author.
    fn is_foreign(&self, network: &Network<'_>, policy: &Policy) -> bool {
        let facts = Facts { operators: self.operators.clone(), names: self.names.clone(), ..Facts::default() };
        policy.has_foreign_target(network, &facts)
    }

    /// The networks that the operator renders to a namespace, of those that name it. Others have no say in what is found there.
    pub fn renderers(&self, networks: Vec<NetworkFact>, namespace: &str, policy: &Policy) -> Vec<NetworkFact> {
        let facts = Facts { operators: self.operators.clone(), ..Facts::default() };
        networks.into_iter().filter(|network| policy.may_render(network, namespace, &facts)).collect()
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
            operators: self.operators.clone(),
            names: self.names.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::OperatorFact;

    /// A tenant's network that names a victim's namespace: no dry run, and nothing of what is there is said or has a say.
    #[test]
    fn of_a_foreign_target_nothing_is_known() {
        let network = |namespace: &str| {
            format!(
                r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{{"name":"net","namespace":"{namespace}",
                "uid":"u","creationTimestamp":"2026-11-01T00:00:00Z"}},"spec":{{"resourceName":"cx7","networkNamespace":"victim"}}}}"#
            )
        };
        let operator = OperatorFact { namespace: "op".to_owned(), ..OperatorFact::default() };
        let victim = [("victim".into(), NamespaceState::Active)];
        let around = Around {
            now: "2026-11-02T00:00:00Z".parse().unwrap(),
            namespaces: Some(victim.into_iter().collect()),
            operators: Operators::Known([operator].into()),
            names: Names::Own(Vec::new()),
            ..Around::default()
        };
        let policy = Policy::default();
        let (op, tenant) = (network("op"), network("tenant"));
        let facts = [&op, &tenant].map(|text| match Object::read(text) {
            Ok(Some(Object::Network(network))) => NetworkFact::of(&network),
            _ => panic!("{text}"),
        });
        let here = around.renderers(facts.to_vec(), "victim", &policy);
        assert_eq!(here, facts[..1], "only the operator's own counts at the victim's place");
        for (text, is_known) in [(&op, true), (&tenant, false)] {
            let kept = Kept::of(text).unwrap();
            let object = Object::read(&kept.text).unwrap().unwrap();
            let Object::Network(network) = &object else { panic!("{text}") };
            assert_eq!(around.waits(network, &kept.moments, &policy), is_known, "{text}");
            let of = OfNetwork { refused: Some("secret words"), ..OfNetwork::default() };
            let verdict = around.network((&object, network, &kept.moments), &here, of, None, &policy);
            let told: Vec<_> = verdict.findings.iter().map(|finding| finding.rule.id).collect();
            assert_eq!(told.contains(&"audit/nad-absent"), is_known, "{told:?}");
            assert_eq!(told.contains(&"network/target-namespace"), !is_known, "{told:?}");
            assert_eq!(format!("{verdict:?}").contains("secret words"), is_known);
        }
    }
}
