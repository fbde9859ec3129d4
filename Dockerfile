# One image for every role; docker-compose.yml says which one a container is. Builds on amd64 and arm64.
ARG PYTHON_IMAGE=python:3.13-slim

# The packages change seldom and the code often: so they come first, and stay in the cache.
FROM ${PYTHON_IMAGE} AS packages
COPY requirements.lock requirements-parquet.lock /
# Anything but empty: with pyarrow, for the module `parquet`; 170 MB more.
ARG PARQUET=
# Wheels alone: nothing is compiled here, so there is no compiler to leave out of the image below.
RUN python -m venv --without-pip /opt/venv \
 && pip --disable-pip-version-check --python /opt/venv/bin/python install \
      --no-cache-dir --no-compile --only-binary :all: --require-hashes -r /requirements.lock ${PARQUET:+-r /requirements-parquet.lock} \
 && /opt/venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/venv/lib

FROM packages AS code
COPY gossamer /app/gossamer
COPY adapters /app/adapters
COPY modules /app/modules
COPY services /app/services
# Whoever checked the code out, with whatever umask: every user may read it, and none may change it.
RUN chmod -R u=rwX,go=rX /app \
 && /opt/venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /app

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="Gossamer" org.opencontainers.image.licenses="Apache-2.0"
# A fixed number, so that files in volumes and in ./out belong to the same user after every build.
RUN groupadd --gid 10001 gossamer \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin gossamer
COPY --from=packages /opt/venv /opt/venv
COPY --from=code /app /app
# The byte code is there already, and the root file system read-only: nothing is to be written beside it.
ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
USER 10001:10001
WORKDIR /out
ENTRYPOINT ["python", "-m"]
CMD ["services.controller", "--help"]
