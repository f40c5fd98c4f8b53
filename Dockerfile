# Kerf as a container image: `make image` builds it here, without a daemon; `docker build .` does anywhere.
# BASE needs Python 3.11 or newer with venv. Both stages have the same, so that the environment can be copied.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
# Sets of constants are written in the order of their hashes, and an unchecked hash needs no time of a file.
ENV PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# An index of one's own; by default the one that pip knows.
ARG PIP_INDEX_URL
ARG PIP_CERT
RUN python3 -m venv /build && python3 -m venv --without-pip /opt/kerf
COPY container/build.lock container/run.lock /source/container/
RUN /build/bin/pip install --quiet --require-hashes -r /source/container/build.lock \
 && /build/bin/pip --python /opt/kerf/bin/python install --quiet --no-compile --require-hashes --only-binary :all: \
      -r /source/container/run.lock
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
COPY container/sbom.py /source/container/
RUN /build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheel /source \
 && /build/bin/pip --python /opt/kerf/bin/python install --quiet --no-compile --no-deps /wheel/*.whl \
 && /opt/kerf/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/kerf/lib \
 && /opt/kerf/bin/python /source/container/sbom.py > /opt/kerf/sbom.cdx.json

FROM ${BASE}
LABEL org.opencontainers.image.title="Kerf" \
      org.opencontainers.image.description="A node autoscaler for Kubernetes that understands GPU slices" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/kerf /opt/kerf
# User 65532 has no entry in /etc/passwd, so no home but this one.
ENV PATH=/opt/kerf/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["kerf"]
CMD ["--help"]
