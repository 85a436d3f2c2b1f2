# The service and its worker. Built in one stage and copied into the next, so that the image holds no installer of its
# own and nothing but what runs.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY migrations migrations
RUN python -m venv --without-pip /opt/palimpsest \
    && pip --python /opt/palimpsest/bin/python install --no-cache-dir --disable-pip-version-check . \
    && /opt/palimpsest/bin/palimpsest version

FROM python:3.13-slim
# The embedded Postgres, which runs where no DATABASE_URL is given, wants an account and a folder of its own.
RUN groupadd --gid 10001 palimpsest \
    && useradd --uid 10001 --gid palimpsest --no-create-home --home-dir /var/lib/palimpsest palimpsest \
    && install --directory --owner palimpsest --group palimpsest --mode 0700 /var/lib/palimpsest
COPY --from=build /opt/palimpsest /opt/palimpsest
ENV PATH=/opt/palimpsest/bin:$PATH \
    PALIMPSEST_DATA_DIR=/var/lib/palimpsest \
    PALIMPSEST_HOST=0.0.0.0 \
    PALIMPSEST_PORT=8000 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /var/lib/palimpsest
USER palimpsest
VOLUME /var/lib/palimpsest
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
# Beyond loopback the service wants a key to exist: make one first with `palimpsest keys create`, on the same data.
CMD ["palimpsest", "serve"]
