# The commands of mtosi-jms with the native XML core: suppliers, subscribers, gateway, console.
#
#     docker build --tag mtosi-jms .
#     docker run --rm mtosi-jms doctor
#
# Spark jobs and the JMS clients of the JVM need Java: build with --build-arg EXTRAS=cli,jvm,spark,stomp --build-arg JAVA=yes

FROM rust:1.95-slim-bookworm AS wheel
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --no-install-recommends --yes python3 python3-pip && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml README.md LICENSE /src/
COPY codegen /src/codegen
COPY mtosi_jms /src/mtosi_jms
COPY native /src/native
COPY wsdl /src/wsdl
COPY xsd /src/xsd
RUN MTOSI_JMS_BUILD=native pip3 wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.12-slim-bookworm
ARG EXTRAS=cli,console,http,otel,prometheus,stomp
ARG JAVA=
# hadolint ignore=DL3008
RUN if [ -n "$JAVA" ]; then apt-get update && apt-get install --no-install-recommends --yes openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*; fi
COPY --from=wheel /wheels /wheels
# hadolint ignore=DL3013
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[$EXTRAS]" && rm -rf /wheels \
    && useradd --create-home --uid 10001 mtosi && install --directory --owner=mtosi /home/mtosi/landing
USER 10001
WORKDIR /home/mtosi
ENTRYPOINT ["mtosi-jms"]
CMD ["--help"]
