# syntax=docker/dockerfile:1
# The service in one image: docker build -t arachne-pool . && docker run --rm -p 127.0.0.1:8000:8000 --shm-size 1g arachne-pool
ARG PYTHON=3.13

FROM python:${PYTHON}-slim-bookworm AS build
# With camoufox among them, Camoufox is fetched too (its download must be reachable from where this is built).
ARG EXTRAS=service,postgres,otel
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /opt/arachne
# What the project depends on changes less often than the project: a layer of its own.
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; \
        project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
        extras = [project['optional-dependencies'][name] for name in '${EXTRAS}'.split(',')]; \
        print(*project['dependencies'], *sum(extras, []), sep='\n')" > wanted.txt \
    && /opt/arachne/bin/pip install -c constraints.txt -r wanted.txt
COPY README.md LICENSE ./
COPY arachne_pool ./arachne_pool
COPY api ./api
RUN PIP_CONSTRAINT=/src/constraints.txt PIP_BUILD_CONSTRAINT=/src/constraints.txt \
    /opt/arachne/bin/pip install --no-deps .

FROM python:${PYTHON}-slim-bookworm
ARG EXTRAS=service,postgres,otel
# tini is process 1: browsers leave orphans when they are killed, and process 1 has to reap them.
# Debian keeps only the newest browser: a version here would soon not be found.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        chromium-headless-shell \
        fontconfig \
        fonts-liberation \
        fonts-noto-cjk \
        fonts-noto-color-emoji \
        tini \
    && case ",${EXTRAS}," in *,camoufox,*) apt-get install -y --no-install-recommends \
        libasound2 libdbus-glib-1-2 libgtk-3-0 libx11-xcb1 libxt6 xauth xvfb ;; esac \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home arachne \
    && install -d -o arachne -g arachne /data
COPY --from=build /opt/arachne /opt/arachne
ENV PATH=/opt/arachne/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ARACHNE_HOST=0.0.0.0 \
    ARACHNE_PORT=8000 \
    ARACHNE_DATA_DIR=/data \
    ARACHNE_LOG_FORMAT=json
WORKDIR /home/arachne
USER 1000:1000
# Camoufox's Firefox wants ~/.camoufox to be there, also where the file system is read-only later.
RUN case ",${EXTRAS}," in *,camoufox,*) mkdir -m 700 .camoufox && arachne browsers install --engine camoufox ;; esac \
    && arachne doctor
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=6s --start-period=40s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['ARACHNE_PORT'] + '/readyz', timeout=5)"]
ENTRYPOINT ["tini", "--"]
CMD ["arachne", "serve"]
