# The program alone, for a user without rights:
#   docker build -t inertial .
#   docker run --rm --network none -v "$PWD:/data" inertial identify robot.urdf log.csv
FROM rust:1.89-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package inertial-cli

FROM debian:bookworm-slim
COPY --from=build /source/target/release/inertial /usr/local/bin/inertial
COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/inertial/
USER 65534:65534
WORKDIR /data
ENTRYPOINT ["inertial"]
