FROM python:3.12-slim AS build
WORKDIR /source
COPY build-requirements.lock .
RUN pip install --no-cache-dir --require-hashes --requirement build-requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY core core
COPY hub hub
COPY migrations migrations
COPY static static
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.12-slim
COPY requirements.lock /wheels/
# What is installed is what was tested: versions and hashes of all packages stand in the lock.
RUN pip install --no-cache-dir --require-hashes --requirement /wheels/requirements.lock
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && useradd --system --uid 10001 --no-create-home warren \
    && install --directory --owner=warren --mode=700 /var/lib/warren
USER warren
WORKDIR /var/lib/warren
VOLUME /var/lib/warren
EXPOSE 5672 15672
# Others can reach the ports: it starts with WARREN_DEFAULT_USER and WARREN_DEFAULT_PASS (12
# characters or more), and with certificates, or WARREN_ALLOW_PLAINTEXT=1 for a trusted network.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:15672/health/ready', timeout=4)"]
CMD ["warren", "serve", "--host", "0.0.0.0", "--data", "/var/lib/warren"]
