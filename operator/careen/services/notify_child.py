"""The process that sends one message: `python -m careen.services.notify_child`. The request comes on stdin; it prints
one line for each target.

Only this module imports apprise. The process ends itself after its deadline: no other does if the agent stops
meanwhile.
"""

from __future__ import annotations

import json
import logging
import math
import signal
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from careen.core.plain_text import one_line
from careen.services.chat_text import for_target
from careen.services.notification_urls import DeliveryMethod, Target, secrets_of
from careen.services.teams import card
from careen.services.wire import bounded
from careen.services.wire.asking import status

_MOST_AT_ONCE = 8
_LONGEST_WHY = 200  # characters: the agent reads line by line


def main() -> int:
    """Prints `{"target": number, "why": sentence}` for each target; "" if the message was sent.

    Without a text, it sends nothing and checks whether apprise accepts the URLs.
    """
    order = json.load(sys.stdin)
    signal.alarm(math.ceil(order["seconds"]))  # ends the process even if a request hangs
    bounded.bind_every_session(2 * order["seconds"])  # the alarm comes first; this is for size and redirects
    said = _Said()
    logging.getLogger("apprise").addHandler(said)
    logging.getLogger("apprise").propagate = False
    printing = threading.Lock()

    def one(number: int) -> None:
        target = _target(order["targets"][number])
        text = order.get("text")
        why = one_line(refusal(target) if text is None else tell(text, target, order["seconds"], said), _LONGEST_WHY)
        with printing:
            sys.stdout.write(f"{json.dumps({'target': number, 'why': why})}\n")
            sys.stdout.flush()

    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        list(pool.map(one, range(len(order["targets"]))))
    return 0


class _Said(logging.Handler):
    """The last warning of apprise in each thread: apprise returns only true or false."""

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self.last: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.last[threading.get_ident()] = record.getMessage()


def refusal(target: Target) -> str:
    """Why apprise does not accept the URL, without any part of it; "" if it does."""
    from apprise import Apprise
    from apprise.manager_plugins import NotificationManager

    if Apprise.instantiate(target.url) is not None:
        return ""
    plugins: Any = NotificationManager()  # type: ignore[no-untyped-call]
    scheme = target.url.partition("://")[0].lower()
    forms = plugins[scheme].templates if scheme in plugins else ()
    expected = " or ".join(str(form).replace("{schema}", scheme) for form in forms[:2])
    return f"apprise does not accept this URL{f'; it expects {expected}' if expected else ''}"


def tell(text: str, target: Target, seconds: float, said: _Said) -> str:
    """Why sending to one target failed, or ""."""
    text = for_target(text, target)
    try:
        return (
            _by_library(text, target, said) if target.way is DeliveryMethod.APPRISE else _by_post(text, target, seconds)
        )
    except bounded.Unbounded as error:
        return str(error)
    except Exception as error:
        # The text of an exception may contain the address, and so the secret.
        return type(error).__name__


def _by_library(text: str, target: Target, said: _Said) -> str:
    from apprise import Apprise, AppriseAsset, NotifyFormat

    sender = Apprise(asset=AppriseAsset(app_id="careen", app_desc="careen", async_mode=False))
    server = Apprise.instantiate(target.url, asset=sender.asset)  # `add` would look for several URLs in the text
    if server is None or not sender.add(server):
        return "apprise does not accept the URL of this receiver"
    said.last.pop(threading.get_ident(), None)  # another target's warning, with its secrets
    if sender.notify(body=text, title=target.title, body_format=NotifyFormat.TEXT):
        return ""
    return blotted(said.last.get(threading.get_ident(), "not sent"), target)


def _by_post(text: str, target: Target, seconds: float) -> str:
    import requests

    match target.way:
        case DeliveryMethod.JSON:
            body = json.dumps({**target.fields, target.message_key: text})
        case DeliveryMethod.CARD:
            body = json.dumps(card(text))
        case _:
            body = text
    headers = {"Content-Type": "application/json", **target.headers}
    answer = requests.request(target.method, target.url, data=body.encode(), headers=headers, timeout=seconds)
    return "" if answer.status_code < 300 else status(answer.status_code)


def blotted(sentence: str, target: Target) -> str:
    """Without any part of the address."""
    for secret in secrets_of(target):
        sentence = sentence.replace(secret, "…")
    return " ".join(sentence.split())


def _target(given: Mapping[str, Any]) -> Target:
    return Target(**{**given, "way": DeliveryMethod(given["way"])})


if __name__ == "__main__":
    sys.exit(main())
