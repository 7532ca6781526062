# An image of the program `leasehold`, with nothing besides but what it needs to run: docker build -t leasehold .
# compose.yaml runs three of them; docs/install.md says more.

FROM debian:bookworm AS build
ENV CI=true
WORKDIR /source
RUN apt-get update -q \
  && apt-get install -y -q --no-install-recommends ca-certificates make \
  && rm -rf /var/lib/apt/lists/*
# What it is built with changes seldom: a layer of its own.
COPY Makefile packages.txt ./
COPY cmake/flow cmake/
RUN make deps
COPY . .
# Several sources at a time, since all of them are compiled once.
RUN cmake --preset program -DLEASEHOLD_BATCHES=ON -DCMAKE_INSTALL_PREFIX=/usr \
  && cmake --build build/release --target leasehold leasehold_manual \
  && DESTDIR=/image cmake --install build/release --component program --strip

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="leasehold" \
  org.opencontainers.image.description="A replicated key-value store with linearizable reads from the leader's lease" \
  org.opencontainers.image.licenses="Apache-2.0"
# The libraries that the program is linked with. tests/packaging compares them with those of a build.
RUN apt-get update -q \
  && apt-get install -y -q --no-install-recommends libcpp-httplib0.11 libfmt9 libnettle8 libnghttp2-14 libprotobuf32 \
    librocksdb7.8 libspdlog1.10 libssl3 libstdc++6 zlib1g \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --system --gid 7200 leasehold \
  && useradd --system --uid 7200 --gid leasehold --no-create-home --home-dir /var/lib/leasehold \
    --shell /usr/sbin/nologin leasehold \
  && install -d -o leasehold -g leasehold -m 0700 /var/lib/leasehold /etc/leasehold
COPY --from=build /image/ /
COPY --chmod=0755 packaging/docker/healthy /usr/bin/leasehold-healthy
COPY --chmod=0644 LICENSE /usr/share/doc/leasehold/LICENSE
USER 7200:7200
WORKDIR /var/lib/leasehold
VOLUME ["/var/lib/leasehold"]
# Clients; peers, and at the same number the notice that a process has ended.
EXPOSE 7201/tcp 7101/tcp 7101/udp
# A node transfers its leadership before it ends: give it time (docker stop --timeout 30).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["leasehold-healthy"]
ENTRYPOINT ["leasehold"]
CMD ["--help"]
