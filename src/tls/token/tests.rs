use std::cell::Cell;

use super::*;

const PROPAGATION: Duration = Duration::from_secs(60);
const SCHEDULE: Schedule = Schedule { lifetime: Duration::from_secs(90), propagation: PROPAGATION };

fn token(number: u8) -> Token {
    Token::read(&format!("{number:02x}").repeat(BYTES)).unwrap()
}

fn tokens(current: u8, next: Option<u8>, previous: Option<u8>) -> Tokens {
    Tokens { current: token(current), made: 0, next: next.map(token), previous: previous.map(token), audit: token(99) }
}

fn found(tokens: &Tokens) -> StoredTokens {
    let Tokens { current, made, next, previous, audit } = tokens.clone();
    StoredTokens { current: Some(current), made: Some(made), next, previous, audit: Some(audit) }
}

fn step(state: &TokenState<'_>) -> Option<Tokens> {
    // The created tokens are 100, 101 and so on.
    let made = Cell::new(100);
    let make = || Ok(token(made.replace(made.get() + 1)));
    SCHEDULE.step(state, make).unwrap()
}

/// The tokens in a row of a table: current, next, previous.
type TokenRow = (u8, Option<u8>, Option<u8>);

fn shown(tokens: &Tokens) -> TokenRow {
    let number = |token: &Token| u8::from_str_radix(token.text().get(..2).unwrap(), 16).unwrap();
    (number(&tokens.current), tokens.next.as_ref().map(number), tokens.previous.as_ref().map(number))
}

#[test]
fn token_rotation_waits_for_all_replicas() {
    let none: Option<TokenRow> = None;
    for (kept, registered, steady, now, want) in [
        ((1, None, None), Some(1), PROPAGATION, 59, none),
        ((1, None, None), Some(1), Duration::ZERO, 60, Some((1, Some(100), None))),
        ((1, Some(2), None), Some(1), PROPAGATION / 2, 60, none),
        ((1, Some(2), None), Some(1), PROPAGATION, 60, Some((2, None, Some(1)))),
        ((2, None, Some(1)), Some(1), PROPAGATION, 60, none),
        ((2, None, Some(1)), None, PROPAGATION, 60, none),
        ((2, None, Some(1)), Some(2), PROPAGATION / 2, 60, none),
        ((2, None, Some(1)), Some(2), PROPAGATION, 60, Some((2, None, None))),
    ] {
        let (current, next, previous) = kept;
        let known = tokens(current, next, previous);
        let (found, registered) = (found(&known), registered.map(token));
        let state =
            TokenState { found: Some(&found), known: Some(&known), registered: registered.as_ref(), steady, now };
        assert_eq!(step(&state).as_ref().map(shown), want, "{kept:?} {registered:?} {steady:?} {now}");
    }
}

#[test]
fn registered_token_survives_a_deleted_secret() {
    let known = tokens(1, None, None);
    let registered = token(3);
    for (known, registered, want) in [
        (None, None, (101, None, None)),
        (Some(&known), None, (1, Some(100), None)),
        // A replica that starts at that moment knows only the registered token.
        (None, Some(&registered), (3, Some(101), None)),
        (Some(&known), Some(&registered), (3, Some(100), None)),
    ] {
        let state = TokenState { found: None, known, registered, steady: PROPAGATION, now: 7 };
        let made = step(&state).unwrap();
        assert_eq!((shown(&made), made.made), (want, 7));
        assert_eq!(
            made.audit,
            known.map_or(token(100), |known| known.audit.clone()),
            "the token for audit events is in a file of the administrator"
        );
    }
}

#[test]
fn fills_in_missing_tokens_only() {
    let whole = found(&tokens(1, None, None));
    for broken in [StoredTokens { made: None, ..whole.clone() }, StoredTokens { audit: None, ..whole }] {
        let state = TokenState { found: Some(&broken), known: None, registered: None, steady: PROPAGATION, now: 0 };
        let filled = step(&state).unwrap();
        assert_eq!((shown(&filled), filled.made), ((1, None, None), 0));
    }
}

#[test]
fn paths_require_a_known_token() {
    let accepted = AcceptedTokens::new(tokens(1, Some(2), Some(3)));
    let opens = |number: u8| accepted.allows_reviews(Some(token(number).text()));
    assert_eq!([1, 2, 3, 4, 99].map(opens), [true, true, true, false, false]);
    for text in ["", "1", token(1).text().get(1..).unwrap(), &format!("{}0", token(1).text()), "ä"] {
        assert!(!accepted.allows_reviews(Some(text)) && !accepted.allows_audit_events(Some(text)), "{text}");
    }
    assert!(!accepted.allows_reviews(None), "no token");
    assert!(accepted.allows_audit_events(Some(token(99).text())));
    assert!(!accepted.allows_audit_events(Some(token(1).text())) && !accepted.allows_audit_events(None));

    accepted.registered(vec![token(4)], true);
    assert!(opens(4) && accepted.allows_reviews(None), "the registered token is accepted");
    accepted.replace(tokens(2, None, None), vec![token(1)]);
    accepted.registered(Vec::new(), false);
    assert_eq!([1, 2, 3, 4].map(opens), [true, true, false, false]);
    accepted.replace(tokens(2, None, None), Vec::new());
    assert_eq!([1, 2, 3, 4].map(opens), [false, true, false, false]);
    assert!(!accepted.allows_reviews(None));
}

#[test]
fn tokens_are_random_and_fit_into_a_path() {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let (one, two) = (Token::make(provider.secure_random).unwrap(), Token::make(provider.secure_random).unwrap());
    assert_ne!(one, two);
    assert_eq!(Token::read(one.text()), Some(one.clone()));
    assert!(!format!("{one:?}").contains(one.text()));
    for text in ["", "x", &"A".repeat(64), &"g".repeat(64), &"0".repeat(63), &"0".repeat(65)] {
        assert_eq!(Token::read(text), None, "{text}");
    }
}
