use std::collections::BTreeSet;

use super::*;

const NOW: i64 = 1_800_000_000;
const DAY: i64 = 86_400;
const HOUR: i64 = 3_600;
const LONG: Duration = Duration::from_secs(3_600);

fn rotation() -> Rotation {
    Rotation::new("nadmit", "nadmit", Lifetimes::default())
}

fn at(stored: &StoredCertificates, now: i64) -> CertificateState<'_> {
    CertificateState { stored: Some(stored), served: None, registered: None, steady: LONG, now }
}

fn nothing(now: i64) -> CertificateState<'static> {
    CertificateState { stored: None, served: None, registered: None, steady: LONG, now }
}

fn made(now: i64) -> StoredCertificates {
    rotation().execute(RotationStep::MakeAll, &nothing(now)).unwrap().unwrap()
}

/// Takes the next step, which must be `want`.
fn next(state: &CertificateState<'_>, want: RotationStep) -> StoredCertificates {
    let (step, flaws) = rotation().decide(state);
    assert_eq!((step, flaws), (want, Vec::new()));
    rotation().execute(step, state).unwrap().unwrap()
}

fn step(state: &CertificateState<'_>) -> RotationStep {
    rotation().decide(state).0
}

/// Whether a client with only that bundle accepts the served certificate.
fn is_accepted(bundle: &str, served: &StoredCertificates, now: i64) -> bool {
    let shown = StoredCertificates { bundle: bundle.to_owned(), ..served.clone() };
    CertificateChain::read(&shown, &rotation().names, now).leaf.is_some()
}

fn size(bundle: &str) -> usize {
    bundle.matches("BEGIN CERTIFICATE").count()
}

#[test]
fn new_certificates_are_valid_and_kept() {
    assert_eq!(step(&nothing(NOW)), RotationStep::MakeAll);
    let stored = made(NOW);
    // Clocks may be an hour off, in either direction.
    for now in [NOW - HOUR, NOW, NOW + HOUR, NOW + 59 * DAY] {
        assert_eq!(rotation().decide(&at(&stored, now)), (RotationStep::Keep, Vec::new()), "{}", now - NOW);
        assert!(is_accepted(&stored.bundle, &stored, now));
    }
    assert_eq!(rotation().bundle(&at(&stored, NOW)).as_ref(), Some(&stored.bundle));
    assert!(stored.material(None).serve().is_ok());
    let names = &rotation().names;
    assert_eq!(names, &["nadmit.nadmit", "nadmit.nadmit.svc", "nadmit.nadmit.svc.cluster.local"]);
}

#[test]
fn a_leaf_is_renewed_by_the_same_ca_at_two_thirds_of_its_life() {
    let stored = made(NOW);
    let due = NOW + 60 * DAY;
    assert_eq!(step(&at(&stored, due - 1)), RotationStep::Keep);
    let renewed = next(&at(&stored, due), RotationStep::RenewLeaf);
    assert_eq!((&renewed.bundle, &renewed.ca_key), (&stored.bundle, &stored.ca_key));
    assert_ne!((&renewed.chain, &renewed.key), (&stored.chain, &stored.key));
    assert!(is_accepted(&stored.bundle, &renewed, due));
    assert_eq!(step(&at(&renewed, due)), RotationStep::Keep);
    // The previous leaf is valid for another month: a replica that reloads late rejects no caller.
    assert!(is_accepted(&renewed.bundle, &stored, due + 29 * DAY));
}

/// All steps of a rotation; at each step every kind of caller accepts every kind of replica.
#[test]
fn ca_rotation_never_rejects_a_caller() {
    let first = made(NOW);
    let due = NOW + 365 * DAY / 3 * 2;
    let leaf = rotation().execute(RotationStep::RenewLeaf, &at(&first, due - DAY)).unwrap().unwrap();
    let joined = next(&at(&leaf, due), RotationStep::AddAuthority(Base::StoredCertificates));
    assert_eq!(size(&joined.bundle), 2);
    assert_eq!((&joined.chain, &joined.key), (&leaf.chain, &leaf.key));
    assert!(is_accepted(&first.bundle, &joined, due) && is_accepted(&joined.bundle, &leaf, due));

    // Not before callers have had the new CA for a while; nor before that can be known.
    let state = |registered, steady| CertificateState { registered, steady, ..at(&joined, due) };
    for (registered, steady) in [
        (Some(first.bundle.as_str()), LONG),
        (Some(""), LONG),
        (Some("nonsense"), LONG),
        (Some(joined.bundle.as_str()), Duration::from_secs(59)),
        (None, Duration::from_secs(59)),
    ] {
        assert_eq!(step(&state(registered, steady)), RotationStep::Keep);
    }
    assert_eq!(step(&state(None, LONG)), RotationStep::SwitchLeaf);
    let switched = next(&state(Some(&joined.bundle), LONG), RotationStep::SwitchLeaf);
    assert_eq!((&switched.bundle, &switched.ca_key), (&joined.bundle, &joined.ca_key));
    assert!(!is_accepted(&first.bundle, &switched, due) && is_accepted(&joined.bundle, &switched, due));

    // Not before all replicas have the new leaf.
    let steady = Duration::from_secs(59);
    assert_eq!(step(&CertificateState { steady, ..at(&switched, due) }), RotationStep::Keep);
    let alone = next(&at(&switched, due), RotationStep::DropOld);
    assert_eq!(size(&alone.bundle), 1);
    assert!(is_accepted(&alone.bundle, &switched, due) && !is_accepted(&alone.bundle, &leaf, due));
    assert_eq!(step(&at(&alone, due)), RotationStep::Keep);
    assert_eq!(step(&at(&alone, due + DAY)), RotationStep::Keep);
}

#[test]
fn broken_secrets_are_replaced_from_what_still_works() {
    let (good, other) = (made(NOW), made(NOW));
    let broken = |change: fn(&mut StoredCertificates, StoredCertificates)| {
        let mut stored = good.clone();
        change(&mut stored, other.clone());
        stored
    };
    let (anew, served) = (RotationStep::MakeAll, RotationStep::AddAuthority(Base::Served));
    // Without, and with, a replica that still has the valid one.
    for (what, stored, alone, beside) in [
        ("no bundle", broken(|it, _| it.bundle.clear()), anew, served),
        ("another bundle", broken(|it, other| it.bundle = other.bundle), anew, served),
        ("half a bundle", broken(|it, _| it.bundle.truncate(200)), anew, served),
        ("a leaf for a CA", broken(|it, _| it.bundle = it.chain.clone()), anew, served),
        (
            "no CA key",
            broken(|it, _| it.ca_key.clear()),
            RotationStep::AddAuthority(Base::StoredCertificates),
            RotationStep::AddAuthority(Base::StoredCertificates),
        ),
        (
            "another CA key",
            broken(|it, other| it.ca_key = other.ca_key),
            RotationStep::AddAuthority(Base::StoredCertificates),
            RotationStep::AddAuthority(Base::StoredCertificates),
        ),
        ("no leaf", broken(|it, _| it.chain.clear()), RotationStep::RenewLeaf, RotationStep::RenewLeaf),
        ("another leaf", broken(|it, other| it.chain = other.chain), RotationStep::RenewLeaf, RotationStep::RenewLeaf),
        (
            "another pair",
            broken(|it, other| (it.chain, it.key) = (other.chain, other.key)),
            RotationStep::RenewLeaf,
            RotationStep::RenewLeaf,
        ),
        ("two leaves", broken(|it, other| it.chain += &other.chain), RotationStep::RenewLeaf, RotationStep::RenewLeaf),
        ("no key", broken(|it, _| it.key.clear()), RotationStep::RenewLeaf, RotationStep::RenewLeaf),
        (
            "nonsense",
            broken(|it, _| {
                *it = StoredCertificates { bundle: "x".into(), ca_key: "y".into(), chain: "z".into(), key: "\0".into() }
            }),
            anew,
            served,
        ),
        (
            "another CA too",
            broken(|it, other| it.bundle += &other.bundle),
            RotationStep::DropOld,
            RotationStep::DropOld,
        ),
    ] {
        let alone_now = at(&stored, NOW);
        let beside_now = CertificateState { served: Some(&good), registered: Some(&good.bundle), ..alone_now };
        for (state, want) in [(alone_now, alone), (beside_now, beside)] {
            let (step, flaws) = rotation().decide(&state);
            assert_eq!(step, want, "{what}");
            assert_eq!(flaws.is_empty(), step == RotationStep::DropOld, "{what}: {flaws:?}");
            // After one step callers accept the stored certificates.
            let fixed = rotation().execute(step, &state).unwrap().unwrap();
            assert!(is_accepted(&fixed.bundle, &fixed, NOW), "{what}");
            assert_eq!(
                rotation().decide(&CertificateState { stored: Some(&fixed), steady: Duration::ZERO, ..state }),
                (RotationStep::Keep, Vec::new()),
                "{what}"
            );
        }
        // Callers in the meantime get a certificate that they trust.
        let served = rotation().serve(&beside_now).unwrap();
        assert!(is_accepted(&good.bundle, served, NOW), "{what}");
        let fixed = rotation().execute(beside, &beside_now).unwrap().unwrap();
        let served = rotation().serve(&CertificateState { stored: Some(&fixed), ..beside_now }).unwrap();
        assert!(is_accepted(&good.bundle, served, NOW), "{what}: after it was fixed");
    }
}

#[test]
fn deleted_secret_is_restored_with_a_new_ca() {
    let good = made(NOW);
    let state = CertificateState { served: Some(&good), ..nothing(NOW) };
    let back = next(&state, RotationStep::AddAuthority(Base::Served));
    assert_eq!((size(&back.bundle), &back.chain), (2, &good.chain));
    assert_ne!(back.ca_key, good.ca_key);
    // An unusable certificate of a replica is not restored.
    assert_eq!(step(&CertificateState { now: NOW + 91 * DAY, ..state }), RotationStep::MakeAll);
}

/// Another replica created a new CA without knowing the old one, while callers know only the CA of this replica.
#[test]
fn untrusted_ca_is_not_served_early() {
    let (own, stored) = (made(NOW), made(NOW));
    let served =
        |registered, served| rotation().serve(&CertificateState { served, registered, ..at(&stored, NOW) }).cloned();
    assert!(served(Some(own.bundle.as_str()), Some(&own)) == Some(own.clone()));
    assert!(served(Some(stored.bundle.as_str()), Some(&own)) == Some(stored.clone()));
    assert!(served(None, Some(&own)) == Some(stored.clone()));
    assert!(served(Some(own.bundle.as_str()), None) == Some(stored.clone()));
    assert!(rotation().serve(&CertificateState { served: Some(&own), ..nothing(NOW) }) == Some(&own));
    assert!(rotation().serve(&nothing(NOW)).is_none());
}

#[test]
fn expired_and_future_certificates_are_replaced() {
    let stored = made(NOW);
    for (now, want) in [
        // Leaf and CA.
        (NOW - HOUR - 1, RotationStep::MakeAll),
        (NOW + 366 * DAY, RotationStep::MakeAll),
        // The leaf alone.
        (NOW + 91 * DAY, RotationStep::RenewLeaf),
    ] {
        let state = at(&stored, now);
        let (step, flaws) = rotation().decide(&state);
        assert_eq!(step, want);
        assert!(!flaws.is_empty());
        let fixed = rotation().execute(step, &state).unwrap().unwrap();
        assert_eq!(rotation().decide(&at(&fixed, now)), (RotationStep::Keep, Vec::new()));
    }
    // A leaf expires with its CA at the latest.
    let late = rotation().execute(RotationStep::RenewLeaf, &at(&stored, NOW + 360 * DAY)).unwrap().unwrap();
    assert!(CertificateChain::read(&late, &rotation().names, NOW + 365 * DAY).leaf.is_some());
    assert!(late.material(None).serve().unwrap().expires <= NOW + 365 * DAY);
}

/// Replicas whose clocks are an hour apart take turns: the Secret converges, and no replica replaces what another created.
#[test]
fn clock_skew_does_not_cause_a_write_loop() {
    for offsets in [[0, HOUR], [0, -HOUR], [HOUR, 0], [-HOUR, 0]] {
        let mut stored: Option<StoredCertificates> = None;
        let mut steps = Vec::new();
        for day in 0..400 {
            for turn in 0..8 {
                let offset = offsets[turn % 2];
                let now = NOW + i64::from(day) * DAY + offset;
                let state = CertificateState { stored: stored.as_ref(), ..nothing(now) };
                let (step, flaws) = rotation().decide(&state);
                assert_eq!(flaws, Vec::<&str>::new());
                if let Some(next) = rotation().execute(step, &state).unwrap() {
                    steps.push(step);
                    stored = Some(next);
                }
            }
        }
        // Everything once, a leaf every sixty days, and one rotation.
        assert_eq!(steps.iter().filter(|step| **step == RotationStep::MakeAll).count(), 1, "{steps:?}");
        assert!(steps.len() <= 12, "{steps:?}");
        assert!(
            steps.ends_with(&[RotationStep::RenewLeaf, RotationStep::RenewLeaf])
                && steps.contains(&RotationStep::DropOld),
            "{steps:?}"
        );
    }
}

#[test]
fn certificates_are_unique() {
    let keys: BTreeSet<_> = (0..3).map(|_| made(NOW)).flat_map(|made| [made.ca_key, made.key]).collect();
    assert_eq!(keys.len(), 6);
}

#[test]
fn short_lifetimes_rotate_at_two_thirds() {
    let [ca, leaf, propagation] = [15, 12, 1].map(Duration::from_secs);
    let short = Rotation::new("nadmit", "nadmit", Lifetimes { ca, leaf, propagation });
    let stored = short.execute(RotationStep::MakeAll, &nothing(NOW)).unwrap().unwrap();
    for (seconds, want) in [
        (0, RotationStep::Keep),
        (7, RotationStep::Keep),
        (8, RotationStep::RenewLeaf),
        (10, RotationStep::AddAuthority(Base::StoredCertificates)),
    ] {
        assert_eq!(short.decide(&at(&stored, NOW + seconds)).0, want, "{seconds}");
    }
}
