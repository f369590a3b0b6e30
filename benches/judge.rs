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

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

mod subjects;

use subjects::{facts, judge_object, judge_once, large_nad, network, operator_nad, read};

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

criterion_group!(benches, judging, growing);
criterion_main!(benches);
