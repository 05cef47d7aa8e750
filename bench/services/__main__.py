"""Time and memory of each client of a service against each nasty answer: `python -m bench.services` writes results.md.

Each question has `SECONDS` for the connection and for each read, and twice that in all (the API server has its own 5 s
for the connection). The memory is the peak of the
Python heap. A name with dead addresses and one without an answer of DNS are simulated in the resolver.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

from careen.services.notification_urls import parse
from careen.services.notify import send
from tests.careen.services import nasty
from tests.careen.services.nasty import BROKEN, ENDLESS, SLOW, WRONG, serving
from tests.careen.services.test_nasty_answers import ASKING, SENDING

SECONDS = 1.0
RESULTS = Path(__file__).parent / "results.md"

Ask = Callable[[str, float], Awaitable[Any]]


def slow_handshake(_: str) -> Iterator[bytes]:
    """The first bytes of a TLS record, one by one."""
    yield b"\x16"
    while True:
        yield b"\x03"


@contextmanager
def dead_addresses() -> Iterator[str]:
    with nasty.full_listener() as address:
        rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)] * 100
        with mock.patch("socket.getaddrinfo", return_value=rows):
            yield "http://many.example:9"


@contextmanager
def slow_names() -> Iterator[str]:
    over = threading.Event()

    def slow(*_: Any, **__: Any) -> list[Any]:
        over.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    with mock.patch("socket.getaddrinfo", slow):
        yield "http://slow.example:9"
        over.set()


async def measured(ask: Ask, url: str) -> tuple[float, float, str]:
    """Seconds, MiB, and the answer."""
    tracemalloc.start()
    began = time.monotonic()
    answer = await ask(url, SECONDS)
    took = time.monotonic() - began
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return took, peak, type(answer).__name__


async def rows() -> list[tuple[str, str, float, float, str]]:
    found = []
    nasty.packed()
    import_module("careen.cluster.wire.client")  # takes seconds, and the processes that `messages` starts its size
    for client, ask in ASKING.items():
        for answer in (*SLOW, *ENDLESS, *BROKEN, *WRONG, slow_handshake):
            with serving(answer, "http://127.0.0.1:9") as server:
                url = server.url.replace("http:", "https:") if answer is slow_handshake else server.url
                found.append((client, answer.__name__, *await measured(ask, url)))
        for place in (dead_addresses, slow_names):
            with place() as url:
                found.append((client, place.__name__, *await measured(ask, url)))
    return found


async def messages() -> list[tuple[str, str, float, str]]:
    """The target, the answer, seconds, and why the message has failed."""
    found = []
    nasty.packed()
    for target, form in SENDING.items():
        for answer in (*SLOW, *ENDLESS, *BROKEN, *WRONG):
            with serving(answer, "http://127.0.0.1:9") as server:
                url = form.format(url=server.url, host=server.url.partition("//")[2])
                began = time.monotonic()
                (outcome,) = await send("x", [parse(url)], seconds=2 * SECONDS)
                found.append((target, answer.__name__, time.monotonic() - began, outcome.why))
    return found


def table_of_messages(found: list[tuple[str, str, float, str]]) -> str:
    cells = {(target, answer): f"{took:.2f} s{'' if why else ', sent'}" for target, answer, took, why in found}
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    lines = [
        "",
        "## Messages",
        "",
        f"A message has {2 * SECONDS:g} s in all. A process of its own sends it.",
        "*sent*: the status was 200; nobody reads the body.",
        "",
        f"| answer | {' | '.join(SENDING)} |",
        f"|---|{'---|' * len(SENDING)}",
        *(
            f"| {answer.replace('_', ' ')} | {' | '.join(cells[target, answer] for target in SENDING)} |"
            for answer in dict.fromkeys(row[1] for row in found)
        ),
        "",
        f"Longest: {max(row[2] for row in found):.2f} s. The largest of the processes had {largest:.0f} MiB.",
    ]
    return "\n".join(lines) + "\n"


def table(found: list[tuple[str, str, float, float, str]]) -> str:
    clients = list(dict.fromkeys(row[0] for row in found))
    answers = list(dict.fromkeys(row[1] for row in found))
    cells = {(client, answer): (took, peak, said) for client, answer, took, peak, said in found}
    lines = [
        "# Clients against nasty answers",
        "",
        "`python -m bench.services`: each cell has the seconds and the peak of the Python heap in MiB. A question has",
        f"{SECONDS:g} s for each read and {2 * SECONDS:g} s in all; the API server has 5 s more for the connection.",
        "Each answer is unknown; any other is marked.",
        "",
        f"| answer | {' | '.join(clients)} |",
        f"|---|{'---|' * len(clients)}",
    ]
    for answer in answers:
        row = []
        for client in clients:
            took, peak, said = cells[client, answer]
            mark = "" if said == "Unknown" else f" **{said}**"
            row.append(f"{took:.2f} s, {peak:.0f} MiB{mark}")
        lines.append(f"| {answer.replace('_', ' ')} | {' | '.join(row)} |")
    worst = max(found, key=lambda row: row[2]), max(found, key=lambda row: row[3])
    longest, most = ((row[0], row[1].replace("_", " ")) for row in worst)
    lines += [
        "",
        f"Longest: {worst[0][2]:.2f} s ({', '.join(longest)}). Most: {worst[1][3]:.0f} MiB ({', '.join(most)}).",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sent = asyncio.run(messages())  # first: a new process begins with the size of this one
    text = table(asyncio.run(rows())) + table_of_messages(sent)
    RESULTS.write_text(text)
    print(text)
