# syntax=docker/dockerfile:1
# The agent's image: Python, careen, and of the Kubernetes client only what the agent uses.
# tests/architecture/test_image.py carries out the removals below and sees that the agent still starts.

# `make pin-base` writes the digest behind the tag, so that the same base is taken until somebody asks for another one.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /source
# The dependencies change less often than the code: their layer is kept as long as the lock stays as it is. Nothing is
# installed whose hash is not in a lock: `make lock` writes both.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/careen && /opt/careen/bin/python -m pip install --no-cache-dir --quiet --no-deps --require-hashes -r requirements.lock \
 && python -m venv /opt/build && /opt/build/bin/python -m pip install --no-cache-dir --quiet --no-deps --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
COPY scheduler_core scheduler_core
# Without isolation, which would fetch the build's tools anew, whatever they are by then.
RUN /opt/build/bin/python -m pip wheel --no-cache-dir --quiet --no-deps --no-build-isolation --no-index --wheel-dir /tmp/wheel . \
 && /opt/careen/bin/python -m pip install --no-cache-dir --quiet --no-deps --no-index /tmp/wheel/*.whl
# Of the client: its asyncio twin (more than half of it) and the typed APIs. Of numpy: headers, tests and its Fortran tool.
# And what installed all this. Nothing of it is imported by careen or by what careen imports.
RUN cd /opt/careen/lib/python3*/site-packages && rm -rf \
      kubernetes/aio \
      kubernetes/client/api \
      numpy/_core/include \
      numpy/_core/tests \
      numpy/f2py \
      pip \
      setuptools
# A SIGTERM that comes while Python itself starts waits until careen can answer it; else the pod would end as failed.
RUN sed -i '1s|^#!|#!/usr/bin/env -S --block-signal=TERM |' /opt/careen/bin/careen /opt/careen/bin/kubectl-careen /opt/careen/bin/kured
# The root file system is read-only in the cluster: without bytecode in the image each start would compile everything
# anew, in memory.
RUN /opt/careen/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/careen/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="careen" \
      org.opencontainers.image.description="Reboots a Kubernetes fleet node by node" \
      org.opencontainers.image.licenses="Apache-2.0"
# The official image ships the standard library without bytecode. nsenter carries the reboot command to the host;
# that it is there is checked here rather than on the first node that wants to reboot.
RUN python -m compileall -q -j 0 -x '/(test|tests|idlelib|lib2to3|tkinter|turtledemo)/' /usr/local/lib/python3* || true \
 && nsenter --version
COPY --from=build /opt/careen /opt/careen
ENV PATH=/opt/careen/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
# kured's manifests name this program; each of its flags is one of `careen agent`.
RUN ln -s /opt/careen/bin/kured /usr/bin/kured && kured --help > /dev/null
# Root, as kured's image: PID 1, which reboots the host, is root's, and kured's manifests do not ask for a user. Commands for
# people need none: `--user 65532`, or `runAsNonRoot` and `runAsUser` in their pod.
ENTRYPOINT ["careen"]
CMD ["agent"]
