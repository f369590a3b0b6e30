//! What the judgement costs: one object, and configs of growing size.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench has nobody to answer to"
)]
#![allow(unreachable_pub, missing_docs, reason = "nobody links against this")]

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

mod subjects;

use nadmit::policy::Policy;
use subjects::{
    answer_status, facts, judge_object, judge_once, large_nad, network, node_state_review, operator_nad, read,
};

fn judging(criterion: &mut Criterion) {
    let facts = facts();
    let mut group = criterion.benchmark_group("judge");
    let nad = operator_nad();
    let object = read(&nad);
    group.bench_function("operator_nad", |bencher| bencher.iter(|| judge_object(black_box(&object), &facts)));
    group.bench_function("operator_nad_from_json", |bencher| bencher.iter(|| judge_once(black_box(&nad), &facts)));
    let network = network();
    group.bench_function("sriov_network_from_json", |bencher| bencher.iter(|| judge_once(black_box(&network), &facts)));
    group.finish();
}

fn growing(criterion: &mut Criterion) {
    let facts = facts();
    let mut group = criterion.benchmark_group("config_size");
    group.sample_size(20);
    for kib in [4, 64, 1024] {
        let nad = large_nad(kib << 10);
        group.throughput(Throughput::Bytes(kib << 10));
        group.bench_with_input(BenchmarkId::from_parameter(format!("{kib} KiB")), &nad, |bencher, nad| {
            bencher.iter(|| judge_once(black_box(nad), &facts));
        });
    }
    group.finish();
}

/// The largest status that is written often. What counts is the slowest of a hundred, which criterion does not tell.
fn statuses(criterion: &mut Criterion) {
    let (review, policy) = (node_state_review(), Policy::default());
    let mut group = criterion.benchmark_group("status");
    group.throughput(Throughput::Bytes(review.len() as u64));
    group.bench_function("node_state_8x64", |bencher| bencher.iter(|| answer_status(black_box(&review), &policy)));
    group.finish();
    let once = || {
        let start = Instant::now();
        black_box(answer_status(black_box(&review), &policy));
        start.elapsed()
    };
    let mut times: Vec<_> = (0..10_000).map(|_| once()).collect();
    times.sort();
    println!("status/node_state_8x64, {} bytes: p50 {:?}, p99 {:?}", review.len(), times[5_000], times[9_900]);
}

criterion_group!(benches, judging, growing, statuses);
criterion_main!(benches);
