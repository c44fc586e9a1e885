# One image for all programs; the kind in the file selects one:
#
#   python -m image --config FILE
#
# Any base with Python 3.11 or newer will do; the same one builds and runs. It is named by digest, since a tag may be
# another image tomorrow, or on another mirror; docs/install.md explains how to find the digest:
#
#   docker build --build-arg BASE=python:3.13-slim@sha256:... .
#
# The target `gardenlet` has the program `helm` in addition, with which gardenlets pull and render charts, built from Go
# modules that are pinned by hashes:
#
#   docker build --build-arg BASE=... --build-arg GO=golang:1.26@sha256:... --target gardenlet .
#
# The target `sbom` has a bill of materials of the image instead, in CycloneDX:
#
#   docker build --build-arg BASE=... --target sbom --output . .
#
# What is built from the same files on the same base is the same to the byte, if the builder sets timestamps
# (SOURCE_DATE_EPOCH with BuildKit's rewrite-timestamp, or buildah's --timestamp).
ARG BASE
ARG GO

# Without BASE the name is one that no image can have, so that the builder tells it.
FROM ${BASE:-Give-BASE-with-a-digest-see-docs/install.md} AS build
ARG BASE
RUN echo "${BASE}" | grep -Eq '@sha256:[0-9a-f]{64}$' \
    || { echo "BASE is '${BASE}': name it by its digest, NAME@sha256:...; docs/install.md explains how to find it" >&2; exit 1; }
WORKDIR /src
# The locked dependencies come first: this layer lasts until one of them changes. The build backend is locked, too.
# With requirements-tracing.txt the image can send traces, with requirements-cel.txt evaluate expressions; several files
# are separated by spaces.
ARG REQUIREMENTS=requirements.txt
COPY requirements.txt requirements-cel.txt requirements-tracing.txt requirements-dev.txt ./
RUN sed -n '/^setuptools==/,/[^\\]$/p' requirements-dev.txt > backend.txt \
    && cat ${REQUIREMENTS} > wanted.txt \
    && python3 -m venv /build \
    && /build/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes -r backend.txt \
    && python3 -m venv --without-pip /app \
    && /build/bin/pip --python /app/bin/python install --quiet --no-cache-dir --disable-pip-version-check \
        --no-deps --require-hashes --only-binary :all: --no-compile -r wanted.txt
COPY pyproject.toml README.md LICENSE ./
COPY kube kube
COPY gardener gardener
COPY gardenapi gardenapi
COPY config config
COPY process process
COPY components components
COPY agent agent
COPY webhooks webhooks
COPY image image
RUN /build/bin/pip wheel --quiet --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation -w /wheel . \
    && /build/bin/pip --python /app/bin/python install --quiet --no-cache-dir --disable-pip-version-check \
        --no-deps --no-index --no-compile /wheel/*.whl \
    && rm /app/bin/resource-manager-devcluster /app/bin/kubectl* \
    # Again (-f), with a hash of the source in place of its time, and sets in one order: so all builds
    # are alike.
    && PYTHONHASHSEED=0 /app/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /app/lib

FROM build AS write-sbom
COPY requirements-sbom.txt ./
RUN python3 -m venv /sbom \
    && /sbom/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes \
        -r requirements-sbom.txt \
    && /sbom/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
        --output-file /resource-manager.cdx.json /app/bin/python

FROM scratch AS sbom
COPY --from=write-sbom /resource-manager.cdx.json /

# Without GO it is a base without Go, of which the first step reports the missing part. Other targets leave this stage out.
FROM ${GO:-${BASE}} AS helm
ARG GO
RUN echo "${GO}" | grep -Eq '@sha256:[0-9a-f]{64}$' \
    || { echo "GO is '${GO}': name an image with Go 1.26 or newer by its digest, NAME@sha256:..." >&2; exit 1; }
WORKDIR /src
COPY localprocesses/helm ./
ENV CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local
# The flags are those with which `python -m devcluster build` makes it, too.
RUN version=$(go list -m -f '{{.Version}}' helm.sh/helm/v3) \
    && go build -trimpath "-ldflags=-s -w -X helm.sh/helm/v3/internal/version.version=${version}" -o /helm \
        helm.sh/helm/v3/cmd/helm

FROM ${BASE} AS programs
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="resource-manager" \
      org.opencontainers.image.description="Gardener's resource manager with its webhooks, and a garden with its gardenlets" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /app /app
# Nothing is written anywhere: everything is compiled already, and the root file system may be read-only.
ENV PATH=/app/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /
USER 65532:65532
EXPOSE 8080 8081 10250
# SIGTERM is kept while Python starts: process 1 would never get it.
ENTRYPOINT ["env", "--block-signal=TERM", "python", "-m", "image"]

FROM programs AS gardenlet
COPY --from=helm /helm /app/bin/

# The default.
FROM programs
