FROM python:3.12-slim AS build
WORKDIR /source
COPY deploy/build-requirements.lock .
RUN pip install --no-cache-dir --require-hashes --requirement build-requirements.lock
COPY pyproject.toml README.md LICENSE pyspark_warren.py ./
COPY app app
COPY core core
COPY docs docs
COPY hub hub
COPY migrations migrations
COPY static static
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

# For jobs of the pipeline, and the Spark cluster that runs them: `--target pipeline`.
FROM python:3.12-slim AS pipeline
RUN apt-get update && apt-get install --yes --no-install-recommends default-jre-headless \
    && rm --recursive --force /var/lib/apt/lists/*
COPY deploy/build-requirements.lock deploy/pipeline-requirements.lock /wheels/
# PySpark is built where it is installed, with the setuptools of the lock.
RUN pip install --no-cache-dir --require-hashes --requirement /wheels/build-requirements.lock
RUN pip install --no-cache-dir --require-hashes --no-build-isolation \
    --requirement /wheels/pipeline-requirements.lock
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && useradd --system --uid 10001 --no-create-home --home-dir /tmp warren \
    && install --directory --owner=warren --mode=700 /etc/spark /var/lib/pipeline
COPY --from=build --chown=warren /source/hub/pipeline/conf /etc/spark
COPY deploy/spark-secret /usr/local/bin/
ENV SPARK_HOME=/usr/local/lib/python3.12/site-packages/pyspark SPARK_CONF_DIR=/etc/spark
ENV PATH=$SPARK_HOME/bin:$PATH
USER warren
WORKDIR /var/lib/pipeline
VOLUME /etc/spark /var/lib/pipeline
ENTRYPOINT ["spark-secret"]
CMD ["warren", "pipeline", "list"]

FROM python:3.12-slim
# arrow-requirements.lock adds what sends streams in Arrow and reads archives (docs/pipeline.md),
# cluster-requirements.lock what speaks with a RabbitMQ cluster (docs/scaling.md).
ARG REQUIREMENTS=requirements.lock
COPY deploy/requirements.lock deploy/arrow-requirements.lock deploy/cluster-requirements.lock /wheels/
# What is installed is what was tested: versions and hashes of all packages stand in the lock.
RUN pip install --no-cache-dir --require-hashes --requirement /wheels/$REQUIREMENTS
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && useradd --system --uid 10001 --no-create-home warren \
    && install --directory --owner=warren --mode=700 /var/lib/warren /var/lib/pipeline
USER warren
WORKDIR /var/lib/warren
VOLUME /var/lib/warren
EXPOSE 5672 15672
# Others can reach the ports: it starts with certificates, or with WARREN_ALLOW_PLAINTEXT=1 for a
# trusted network. It prints a link for the first administrator, unless WARREN_DEFAULT_USER and
# WARREN_DEFAULT_PASS (12 characters or more) name one.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:15672/health/ready', timeout=4)"]
CMD ["warren", "serve", "--host", "0.0.0.0", "--data", "/var/lib/warren"]
