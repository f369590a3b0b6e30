# One static binary on nothing else. The list of what it was built from is in it: `cargo audit bin nadmit` reads it.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache build-base cmake perl
WORKDIR /nadmit
RUN cargo install --locked cargo-auditable@0.7.7
COPY .cargo .cargo
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY benches benches
COPY tests tests
# The commit's time: the same sources give the same binary.
ARG SOURCE_DATE_EPOCH=0
ENV SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH RUSTFLAGS="--remap-path-prefix=/nadmit=. --remap-path-prefix=/usr/local/cargo=cargo"
RUN cargo auditable build --release --locked --bin nadmit

FROM scratch
COPY --from=build /nadmit/target/release/nadmit /nadmit
USER 65532:65532
ENTRYPOINT ["/nadmit"]
