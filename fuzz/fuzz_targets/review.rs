//! Any bytes as the body of a review: nothing panics, and what can be read is answered with its own uid in JSON that says no
//! more than it may.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nadmit::policy::{Facts, Mode, Policy, judge, judge_status};
use nadmit::review::{Endpoint, SkipReason, ReviewOutcome, Review, answer};

fuzz_target!(|body: &[u8]| {
    let Ok(review) = Review::read(body) else { return };
    for endpoint in [Endpoint::Mutate, Endpoint::Validate, Endpoint::Status] {
        let write = review.request.status_write().ok().filter(|_| endpoint == Endpoint::Status);
        let outcome = match review.request.subject(endpoint) {
            _ if endpoint == Endpoint::Status => write
                .and_then(|write| judge_status(&write, &Facts::default(), &Policy::default()))
                .map_or(ReviewOutcome::Nothing(SkipReason::NotJudged, Mode::Enforce), ReviewOutcome::Status),
            Ok(subject) => ReviewOutcome::Judged(judge(&subject, &Facts::default(), &Policy::default())),
            Err(nothing) => ReviewOutcome::Nothing(nothing, Mode::Enforce),
        };
        let answer: serde_json::Value = serde_json::from_slice(&answer(&review, endpoint, &outcome).body).expect("JSON");
        let response = &answer["response"];
        assert_eq!(response["uid"], *review.request.uid);
        assert_eq!(response["patch"].is_null(), response["patchType"].is_null());
        match endpoint {
            Endpoint::Mutate => assert_eq!(response["allowed"], true),
            Endpoint::Validate | Endpoint::Status => assert!(response["patch"].is_null()),
        }
        let warnings = response["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
        for warning in warnings.iter().filter_map(serde_json::Value::as_str) {
            assert!(warning.chars().count() <= 120 && !warning.chars().any(char::is_control), "{warning:?}");
        }
    }
});
