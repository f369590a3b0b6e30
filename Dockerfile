# One static binary on nothing else. The list of what it was built from is in it: `cargo audit bin nadmit` reads it.
#
# The image that builds it is no part of the result, which has no base image. Its tag moves with security fixes of the toolchain and is
# therefore not pinned here; a release names the digest it was built with, and whoever repeats that build gives the same:
#   docker build --build-arg RUST=rust@sha256:... .
ARG RUST=rust:1.95-alpine
FROM ${RUST} AS build
RUN apk add --no-cache build-base cmake perl
WORKDIR /nadmit
RUN cargo install --locked cargo-auditable@0.7.7
COPY .cargo .cargo
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY benches benches
# The commit's time: the same sources give the same binary.
ARG SOURCE_DATE_EPOCH=0
ENV SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH RUSTFLAGS="--remap-path-prefix=/nadmit=. --remap-path-prefix=/usr/local/cargo=cargo"
RUN cargo auditable build --release --locked --bin nadmit

FROM scratch
COPY --from=build /nadmit/target/release/nadmit /nadmit
USER 65532:65532
ENTRYPOINT ["/nadmit"]
