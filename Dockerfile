# syntax=docker/dockerfile:1
# The agent's image: Python, careen, and of the Kubernetes client only what the agent uses.
# tests/architecture/test_image.py carries out the removals below and sees that the agent still starts.

# `make pin-base` writes the digest behind the tag, so that the same base is taken until somebody asks for another one.
ARG BASE=docker.io/library/python:3.13-slim-trixie

FROM ${BASE} AS build
WORKDIR /source
# The dependencies change less often than the code: their layer is kept as long as the lock stays as it is. Nothing is
# installed whose hash is not in a lock: `make lock` writes both. Not installed: packages that dependencies name and careen
# never imports (what reads dates written by people; what colours source code and reads Markdown for a terminal), and pip.
COPY requirements.lock requirements-build.lock ./
RUN awk '/^[a-z]/ {unused = /^(aiohttp-retry|dateparser|markdown-it-py|mdurl|pygments|pytz|regex|tzlocal)==/} !unused' requirements.lock > /tmp/used.lock \
 && python -m venv /opt/build && /opt/build/bin/python -m pip install --no-cache-dir --no-compile --quiet --no-deps --require-hashes -r requirements-build.lock \
 && python -m venv --without-pip /opt/careen \
 && /opt/build/bin/python -m pip --python /opt/careen/bin/python install --no-cache-dir --no-compile --quiet --no-deps --require-hashes -r /tmp/used.lock
# Programs of the dependencies: nobody calls them in the image, and some belong to what is removed below.
RUN find /opt/careen/bin -type f ! -name 'python*' -delete
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
COPY scheduler_core scheduler_core
# Without isolation, which would fetch the build's tools anew, whatever they are by then. Without an index: scheduler_core
# comes from here, whoever has that name elsewhere.
RUN /opt/build/bin/python -m pip wheel --no-cache-dir --quiet --no-deps --no-build-isolation --no-index --wheel-dir /tmp/wheel ./scheduler_core . \
 && /opt/build/bin/python -m pip --python /opt/careen/bin/python install --no-cache-dir --no-compile --quiet --no-deps --no-index /tmp/wheel/*.whl
# What careen never imports, and neither does anything that it imports: docs/image.md has the gain of each. Of the client its
# asyncio twin, the typed APIs and their models; of numpy everything but arrays; translations of apprise.
RUN cd /opt/careen/lib/python3*/site-packages && rm -rf \
      apprise/i18n/*/ \
      kubernetes/aio \
      kubernetes/client/api \
      kubernetes/client/models/[a-z]* \
      numpy/_core/_*_tests.*.so \
      numpy/_core/_simd.*.so \
      numpy/_core/include \
      numpy/_core/lib \
      numpy/_core/tests \
      numpy/distutils \
      numpy/doc \
      numpy/f2py \
      numpy/fft \
      numpy/polynomial \
      numpy/random \
      numpy/testing \
      numpy/tests \
      numpy/*/tests \
 && find . -name '*.pyi' -delete
# A SIGTERM that comes while Python itself starts waits until careen can answer it; else the pod would end as failed.
RUN sed -i '1s|^#!|#!/usr/bin/env -S --block-signal=TERM |' /opt/careen/bin/careen /opt/careen/bin/kubectl-careen /opt/careen/bin/kubectl_complete-careen /opt/careen/bin/kured
# Symbols for debuggers, which some wheels carry.
COPY mk/image/strip.py mk/image/strip.py
RUN python mk/image/strip.py /opt/careen/lib
# The root file system is read-only in the cluster: without bytecode in the image each start would compile everything
# anew, in memory.
COPY mk/image/bytecode.py mk/image/bytecode.py
RUN /opt/careen/bin/python mk/image/bytecode.py /opt/careen/lib

FROM ${BASE}
# The official image ships the standard library without bytecode. nsenter carries the reboot command to the host;
# that it is there is checked here rather than on the first node that wants to reboot.
RUN --mount=type=bind,source=mk/image/bytecode.py,target=/bytecode.py \
    python /bytecode.py --skip '/(test|tests|idlelib|lib2to3|tkinter|turtledemo|ensurepip|pydoc_data|distutils|unittest|curses|sqlite3|site-packages|dist-packages)/' \
      "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
 && nsenter --version
COPY --from=build /opt/careen /opt/careen
ENV PATH=/opt/careen/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
# kured's manifests name this program; each of its flags is one of `careen agent`.
RUN ln -s /opt/careen/bin/kured /usr/bin/kured && kured --help > /dev/null
# Root, as kured's image: PID 1, which reboots the host, is root's, and kured's manifests do not ask for a user. Commands for
# people need none: `--user 65532`, or `runAsNonRoot` and `runAsUser` in their pod.
# The build adds revision and date: `make image` and `make image-release`.
ARG BASE
LABEL org.opencontainers.image.title="careen" \
      org.opencontainers.image.description="Reboots a Kubernetes fleet node by node" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE}"
ENTRYPOINT ["careen"]
CMD ["agent"]
