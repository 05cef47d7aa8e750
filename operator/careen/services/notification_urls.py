"""Notification URLs as targets for apprise: shoutrrr's (as in kured), apprise's own, and webhook addresses of services.

No I/O and no library, because every agent validates its settings with it. Almost any part of a URL may be a secret, so
errors and representations contain only the service. The forms are those of shoutrrr 0.8
(https://containrrr.dev/shoutrrr/v0.8/services/overview/).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit


class DeliveryMethod(StrEnum):
    """How a message is sent to a target."""

    APPRISE = "apprise"  # through apprise, with its own URL
    TEXT = "text"  # a POST of the message alone
    JSON = "json"  # a POST of an object that contains the message
    CARD = "card"  # a POST of an adaptive card that shows the message
    LOG = "log"  # nothing is sent: the log has every message


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One receiver of messages."""

    service: str
    way: DeliveryMethod = DeliveryMethod.APPRISE
    url: str = field(default="", repr=False)
    title: str = field(default="", repr=False)  # a subject or topic, if the service has one
    message_key: str = "message"  # the message's key in the JSON object
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "POST"
    is_native: bool = False
    """Whether the URL has apprise's own form. It goes to apprise unchanged, and only apprise can say whether it is
    complete."""
    remark: str = ""  # a warning about this receiver, without secrets


# Parameters that affect only a message's look. Any other that nothing uses is refused, because it may determine where a
# message goes.
_DRESS = frozenset(
    {
        "title",
        "color",
        "colour",
        "icon",
        "avatar",
        "splitlines",
        "preview",
        "parsemode",
        "notification",
        "botname",
        "colorinfo",
        "colordebug",
        "colorwarn",
        "colorerror",
        "usehtml",
        "clienthost",
        "sound",
        "badge",
        "group",
        "category",
        "copy",
        "click",
        "actions",
        "cache",
        "firebase",
        "entity",
        "alias",
    }
)
_TRUE, _FALSE = {"1", "true", "yes"}, {"0", "false", "no"}


class _Parts:
    """A URL's parts. Each is removed when it is read, so that `refuse_rest` sees what nothing has read."""

    def __init__(self, service: str, text: str, *, over: str = "") -> None:
        self.over = over  # generic+http: the protocol after the plus sign
        try:
            found = urlsplit(text)
            self.port = found.port
            self.host = unquote(found.hostname or "")
            self.raw_host = unquote(found.netloc.rpartition("@")[2].partition(":")[0])  # tokens keep their case
        except ValueError:
            raise ValueError(f"{service}: expected a host name, and a number as the port") from None
        self.service = service
        self.user, self.password = unquote(found.username or ""), unquote(found.password or "")
        self.path = [unquote(part) for part in found.path.split("/") if part]
        self.fragment = unquote(found.fragment)
        self._query = dict(parse_qsl(found.query, keep_blank_values=True))
        self._known: set[str] = set()

    def taken(self, *names: str) -> str:
        """The first parameter with one of these names, without regard to case."""
        self._known.update(names)
        values = [self._query.pop(key) for key in list(self._query) if key.lower() in names]
        return values[0] if values else ""

    def is_set(self, name: str, *, default: bool) -> bool:
        """A boolean parameter, or `default`."""
        text = self.taken(name).lower()
        if text and text not in _TRUE | _FALSE:
            raise ValueError(f"{self.service}: {name} must be yes or no")
        return default if not text else text in _TRUE

    def rest(self) -> dict[str, str]:
        """All parameters that nothing has read yet."""
        found, self._query = self._query, {}
        return found

    def need(self, what: str, *values: str) -> None:
        """Raises ValueError if any value is empty."""
        if not all(values):
            raise ValueError(f"{self.service}: expected {what}")

    def at(self) -> str:
        """`host:port` for another URL."""
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        return host if self.port is None else f"{host}:{self.port}"

    def secure(self, plain: str, secured: str) -> str:
        """The scheme with TLS, unless the URL has `disabletls`."""
        return plain if self.is_set("disabletls", default=False) else secured

    def refuse_rest(self) -> None:
        """Raises ValueError for a parameter that nothing has read, unless it changes only a message's look."""
        if any(key.lower() not in _DRESS for key in self._query):
            # After an unquoted `&`, the rest of a secret is a parameter's name. So the message shows no unknown name.
            known = ", ".join(sorted(self._known)) or "none"
            raise ValueError(
                f"{self.service}: leave out each parameter that careen does not know (known parameters: {known})"
            )


def parse(text: str) -> Target:
    """Raises ValueError with a message that contains no secret."""
    text = text.strip().strip('"')  # kured removes quotes, because charts leave them in
    scheme = re.match(r"([a-z0-9]{1,32})(?:\+([a-z0-9]{1,32}))?://", text, re.IGNORECASE)
    if scheme is None or re.search(r"\s", text):
        raise ValueError("expected a shoutrrr URL such as slack://TOKEN-A/TOKEN-B/TOKEN-C, or an apprise URL")
    service, over = scheme[1].lower(), (scheme[2] or "").lower()
    if service in ("http", "https") and not over:
        return _pasted(text)
    if service in _SERVICES and (not over or (service == "generic" and over in ("http", "https"))):
        return _shoutrrrs(service, text, over)
    if service == "apprise" and over:
        return _native(over, text.partition("+")[2])
    if over:
        raise ValueError(_unknown())
    return _native(service, text)


def is_native(text: str) -> bool:
    """Whether one of the URLs in the text has apprise's own form."""
    return any(_is_native(each) for each in several(text))


def _is_native(text: str) -> bool:
    try:
        return parse(text).is_native
    except ValueError:
        return False


_HARMLESS = frozenset({"template", "disabletls"})


def shapes_a_request(text: str) -> bool:
    """Whether a generic URL in the text chooses more of the request than server and path: its method, headers, body or
    query."""
    return any(_shapes(each) for each in several(text))


def _shapes(text: str) -> bool:
    address = text.strip().strip('"')
    scheme, _, rest = address.partition("://")
    names = {key.lower() for key, _ in parse_qsl(rest.partition("?")[2], keep_blank_values=True)}
    has_login = "@" in re.split(r"[/?#]", rest, maxsplit=1)[0]
    return scheme.lower().partition("+")[0] == "generic" and (has_login or not names <= _HARMLESS)


def several(text: str) -> list[str]:
    """Splits at line breaks and commas. URLs may contain commas, so a comma counts only before another URL."""
    return [part for part in (each.strip() for each in _BETWEEN.split(text)) if part]


_BETWEEN = re.compile(r"[,\n](?=\s*\"?[A-Za-z0-9][A-Za-z0-9+]*://)")


def _unknown() -> str:
    return f"expected a shoutrrr URL of one of {', '.join(sorted(_SERVICES))}, or an apprise URL (docs/messages.md)"


def _shoutrrrs(service: str, text: str, over: str) -> Target:
    """A URL in shoutrrr's form, or in apprise's if it cannot be mistaken for shoutrrr's."""
    parts = _Parts(service, text, over=over)
    try:
        target = _SERVICES[service](parts)
        parts.refuse_rest()
    except ValueError:
        from careen.services import apprise_urls  # few agents have one

        if over or not apprise_urls.is_form_of(service, text):
            raise
        return _native(service, text)
    return target


def _native(service: str, text: str) -> Target:
    from careen.services import apprise_urls  # few agents have one

    if not apprise_urls.is_scheme(service):
        raise ValueError(_unknown())
    return Target(service=service, url=text, is_native=True)


def _pasted(text: str) -> Target:
    """A webhook address that a person copied from the service."""
    from careen.services import apprise_urls, teams  # few agents have one

    try:
        if teams.is_workflow(text):
            return Target(service="teams", way=DeliveryMethod.CARD, url=text)
        if teams.is_connector(text):
            return Target(
                service="teams", way=DeliveryMethod.JSON, message_key="text", url=text, remark=teams.CONNECTORS_ARE_OFF
            )
    except ValueError as error:
        raise ValueError(str(error) if str(error).startswith("teams: ") else "expected a web address") from None
    if apprise_urls.is_pasted(text):
        return Target(service="https", url=text, is_native=True)
    raise ValueError(f"{_unknown()}; for any other web server, use generic+https://HOST/PATH")


def slack_hook(text: str) -> Target | None:
    """kured's deprecated --slack-hook-url, the address of a Slack webhook; None for an empty text."""
    text = text.strip().strip('"')
    if not text:
        return None
    found = re.fullmatch(r"https://hooks\.slack\.com/services/([^/\s]+)/([^/\s]+)/([^/\s]+)/?", text)
    if found is None:
        raise ValueError(
            "expected https://hooks.slack.com/services/TOKEN-A/TOKEN-B/TOKEN-C; for another service, use --notify-url"
        )
    return Target(service="slack", url=_url("slack", "", *found.groups(), image="no", footer="no"))


def secrets_of(target: Target) -> tuple[str, ...]:
    """The parts of the address that may be secret, longest first. The caller removes them from another program's
    message before it prints it."""
    pieces = {
        each
        for text in (target.url, unquote(target.url), *target.headers.values(), *target.fields.values())
        for each in re.split(r"[\s/@:?&=,#]+", text)
    }
    return tuple(
        sorted((each for each in pieces if len(each) >= _SHORTEST_SECRET), key=lambda each: (-len(each), each))
    )


_SHORTEST_SECRET = 4


def _url(scheme: str, login: str, host: str, *path: str, port: int | None = None, **query: str) -> str:
    """A URL for apprise, all parts but `login` quoted, without the pictures and footers that apprise would add."""
    tail = "/".join(quote(part, safe="") for part in path if part)
    asked = urlencode({key: value for key, value in query.items() if value})
    place = (f"[{host}]" if ":" in host else quote(host, safe="")) + ("" if port is None else f":{port}")
    return f"{scheme}://{f'{login}@' if login else ''}{place}/{tail}{f'?{asked}' if asked else ''}"


def _login(user: str, password: str = "") -> str:
    return quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


# ---- one function for each service, in the order of the alphabet ----


def _bark(parts: _Parts) -> Target:
    parts.need("bark://:DEVICE-KEY@HOST", parts.password or parts.user, parts.host)
    scheme = "bark" if parts.taken("scheme") == "http" else "barks"
    return Target(
        service="bark", url=_url(scheme, "", parts.host, parts.password or parts.user, port=parts.port, image="no")
    )


def _discord(parts: _Parts) -> Target:
    parts.need(
        "discord://TOKEN@WEBHOOK-ID", parts.user, parts.raw_host, "" if parts.path not in ([], ["raw"]) else "raw"
    )
    bot = _login(parts.taken("username"))
    return Target(
        service="discord", url=_url("discord", bot, parts.raw_host, parts.user, thread=parts.taken("thread_id"))
    )


def _generic(parts: _Parts) -> Target:
    """Any web server. As in shoutrrr, parameters that careen does not know stay in the server's address."""
    parts.need("generic://HOST/PATH or generic+https://HOST/PATH", parts.host)
    template, key = parts.taken("template").lower(), parts.taken("messagekey") or "message"
    if template not in ("", "json"):
        raise ValueError("generic: the only supported template is json")
    plain = parts.is_set("disabletls", default=parts.over == "http")
    content_type, method = (
        parts.taken("contenttype") or "application/json",
        parts.taken("method", "requestmethod") or "POST",
    )
    parts.taken("titlekey", "title")
    rest = parts.rest()
    query = urlencode({key: value for key, value in rest.items() if key[:1] not in "@$"})
    login = f"{_login(parts.user, parts.password)}@" if parts.user else ""
    path = "/".join(quote(part, safe=":@") for part in parts.path)
    return Target(
        service="generic",
        way=DeliveryMethod.JSON if template else DeliveryMethod.TEXT,
        message_key=key,
        method=method.upper(),
        url=f"{'http' if plain else 'https'}://{login}{parts.at()}/{path}{f'?{query}' if query else ''}",
        headers={
            "Content-Type": content_type,
            **{key[1:]: value for key, value in rest.items() if key.startswith("@")},
        },
        fields={key[1:]: value for key, value in rest.items() if key.startswith("$")},
    )


def _googlechat(parts: _Parts) -> Target:
    key, token = parts.taken("key"), parts.taken("token")
    space = parts.path[2] if len(parts.path) == 4 and parts.path[:2] == ["v1", "spaces"] else ""
    parts.need("googlechat://chat.googleapis.com/v1/spaces/SPACE/messages?key=KEY&token=TOKEN", space, key, token)
    return Target(service="googlechat", url=_url("gchat", "", space, key, token))


def _gotify(parts: _Parts) -> Target:
    parts.need("gotify://HOST/TOKEN", parts.host, *parts.path[:1] or [""])
    scheme = parts.secure("gotify", "gotifys")
    return Target(
        service="gotify",
        url=_url(scheme, "", parts.host, *parts.path, port=parts.port, priority=parts.taken("priority")),
    )


def _ifttt(parts: _Parts) -> Target:
    events = _list(parts.taken("events"))
    parts.need("ifttt://KEY/?events=EVENT", parts.raw_host, *events[:1] or [""])
    return Target(service="ifttt", url=_url("ifttt", "", parts.raw_host, *events))


def _join(parts: _Parts) -> Target:
    devices = _list(parts.taken("devices"))
    parts.need("join://shoutrrr:KEY@join/?devices=DEVICE", parts.password, *devices[:1] or [""])
    return Target(service="join", url=_url("join", "", parts.password, *devices, image="no"))


def _logger(_parts: _Parts) -> Target:
    return Target(service="logger", way=DeliveryMethod.LOG)


def _matrix(parts: _Parts) -> Target:
    rooms = _list(parts.taken("rooms", "room")) or ([f"#{parts.fragment}"] if parts.fragment else [])
    parts.need("matrix://USER:PASSWORD@HOST/?rooms=ROOM", parts.password, parts.host, *rooms[:1] or [""])
    scheme = parts.secure("matrix", "matrixs")
    # Without a user the password is an access token. `e2ee=no`: otherwise apprise needs a library for encryption.
    login, token = (_login(parts.user, parts.password), "") if parts.user else ("", parts.password)
    return Target(
        service="matrix",
        url=_url(scheme, login, parts.host, *rooms, port=parts.port, token=token, e2ee="no", mode="off"),
    )


def _mattermost(parts: _Parts) -> Target:
    parts.need("mattermost://[USER@]HOST/TOKEN[/CHANNEL]", parts.host, *parts.path[:1] or [""])
    scheme = parts.secure("mmost", "mmosts")
    channel = parts.path[1] if len(parts.path) > 1 else ""
    return Target(
        service="mattermost",
        url=_url(scheme, _login(parts.user), parts.host, parts.path[0], port=parts.port, channel=channel, image="no"),
    )


def _ntfy(parts: _Parts) -> Target:
    parts.need("ntfy://[USER:PASSWORD@]HOST/TOPIC", parts.host, *(parts.path if len(parts.path) == 1 else [""]))
    scheme = "ntfy" if parts.taken("scheme").lower() == "http" else "ntfys"
    login, token = (_login(parts.user, parts.password), "") if parts.user else ("", parts.password)
    return Target(
        service="ntfy",
        url=_url(
            scheme,
            login,
            parts.host,
            *parts.path[:1],
            port=parts.port,
            token=token,
            priority=parts.taken("priority"),
            tags=parts.taken("tags"),
            mode="private",
            image="no",
            delay=parts.taken("delay", "at", "in"),
            email=parts.taken("email"),
        ),
    )


def _opsgenie(parts: _Parts) -> Target:
    parts.need("opsgenie://api.opsgenie.com/KEY", parts.host, *parts.path[:1] or [""])
    if parts.host not in ("api.opsgenie.com", "api.eu.opsgenie.com"):
        raise ValueError("opsgenie: expected the host api.opsgenie.com or api.eu.opsgenie.com")
    region = "eu" if parts.host == "api.eu.opsgenie.com" else "us"
    return Target(
        service="opsgenie",
        url=_url(
            "opsgenie", "", parts.path[0], region=region, priority=parts.taken("priority"), tags=parts.taken("tags")
        ),
    )


def _pushbullet(parts: _Parts) -> Target:
    parts.need("pushbullet://TOKEN[/DEVICE]", parts.raw_host)
    channel = [f"#{parts.fragment}"] if parts.fragment else []
    return Target(service="pushbullet", url=_url("pbul", "", parts.raw_host, *parts.path, *channel))


def _pushover(parts: _Parts) -> Target:
    parts.need("pushover://shoutrrr:TOKEN@USER-KEY", parts.password, parts.raw_host)
    devices = _list(parts.taken("devices"))
    return Target(
        service="pushover",
        url=_url("pover", _login(parts.raw_host), parts.password, *devices, priority=parts.taken("priority")),
    )


def _rocketchat(parts: _Parts) -> Target:
    """The channel follows the tokens in the path, or is the fragment."""
    parts.need(
        "rocketchat://[USER@]HOST/TOKEN-A/TOKEN-B[/CHANNEL|/@RECIPIENT]",
        parts.host,
        *(parts.path[:2] if len(parts.path) > 1 else [""]),
    )
    scheme = parts.secure("rocket", "rockets")
    channel = parts.path[2] if len(parts.path) > 2 else parts.fragment
    where = channel if not channel or channel[0] in "@#" else f"#{channel}"
    login = f"{_login(parts.user)}:" if parts.user else ""
    # apprise expects `TOKEN-A/TOKEN-B` unquoted.
    parts.need("two tokens of letters and digits", *(part if part.isalnum() else "" for part in parts.path[:2]))
    return Target(
        service="rocketchat",
        url=_url(
            scheme,
            f"{login}{parts.path[0]}/{parts.path[1]}",
            parts.host,
            where,
            port=parts.port,
            mode="webhook",
            avatar="no",
        ),
    )


def _slack(parts: _Parts) -> Target:
    """Three forms: the webhook's tokens as a path (as in kured's documentation) or as a login, or a bot's token."""
    bot = parts.taken("botname", "username")
    if parts.user == "hook" or not parts.password:
        is_login = parts.user == "hook"
        tokens = re.split(r"[-/]", parts.password) if is_login else [parts.raw_host, *parts.path]
        is_whole = len(tokens) == 3 and not parts.fragment
        parts.need("slack://[BOT@]TOKEN-A/TOKEN-B/TOKEN-C", *(tokens if is_whole else [""]))
        return Target(
            service="slack",
            url=_url("slack", _login(bot if is_login else parts.user or bot), *tokens, image="no", footer="no"),
        )
    parts.need("slack://xoxb:TOKEN@CHANNEL", parts.raw_host, parts.user if parts.user.startswith("xo") else "")
    # apprise distinguishes a channel's id from its name by the character before it.
    mark = "+" if re.fullmatch(r"[CGD][A-Z0-9]{8,}", parts.raw_host) else "#"
    return Target(
        service="slack",
        url=_url(
            "slack", _login(bot), f"{parts.user}-{parts.password}", f"{mark}{parts.raw_host}", image="no", footer="no"
        ),
    )


def _smtp(parts: _Parts) -> Target:
    sender, to = parts.taken("from", "fromaddress"), _list(parts.taken("to", "toaddresses"))
    parts.need("smtp://USER:PASSWORD@HOST:PORT/?from=ADDRESS&to=ADDRESS", parts.host, sender, *to[:1] or [""])
    port = parts.port or 25
    parts.taken("auth")  # negotiated with the server
    return Target(
        service="smtp",
        title=parts.taken("subject", "title"),
        url=_url(
            "mailto",
            _login(parts.user, parts.password),
            parts.host,
            port=port,
            smtp=parts.host,
            **{"from": sender},
            to=",".join(to),
            name=parts.taken("fromname"),
            mode=_encryption(parts, port),
            format="text",
        ),
    )


def _encryption(parts: _Parts, port: int) -> str:
    """By default a server without encryption is refused; shoutrrr would send the message in clear text."""
    word, starts = parts.taken("encryption").lower(), parts.is_set("usestarttls", default=True)
    found = {"": "", "auto": "", "none": "insecure", "explicittls": "starttls", "implicittls": "ssl"}.get(word)
    if found is None:
        raise ValueError("smtp: encryption must be Auto, None, ExplicitTLS or ImplicitTLS")
    return found or ("ssl" if port == 465 else "starttls" if starts else "insecure")


def _teams(parts: _Parts) -> Target:
    """An Office connector. apprise no longer supports these, so careen sends plain text, which the remaining ones
    accept."""
    from careen.services import teams  # few agents have one

    host = parts.taken("host")
    ids = [parts.user, parts.raw_host, *parts.path[:2]]
    parts.need(
        "teams://GROUP@TENANT/ALT-ID/GROUP-OWNER?host=ORGANIZATION.webhook.office.com",
        *(ids if len(ids) == 4 else [""]),
    )
    if not re.fullmatch(r"[A-Za-z0-9-]+\.webhook\.office\.com", host):
        raise ValueError("teams: expected host=ORGANIZATION.webhook.office.com")
    group, tenant, alternative, owner = (quote(part, safe="") for part in ids)
    return Target(
        service="teams",
        way=DeliveryMethod.JSON,
        message_key="text",
        url=f"https://{host}/webhookb2/{group}@{tenant}/IncomingWebhook/{alternative}/{owner}",
        remark=teams.CONNECTORS_ARE_OFF,
    )


def _telegram(parts: _Parts) -> Target:
    chats = _list(parts.taken("chats", "channels"))
    parts.need(
        "telegram://TOKEN@telegram?chats=CHAT",
        parts.user if parts.user.isdigit() else "",
        parts.password,
        *chats[:1] or [""],
    )
    targets = "/".join(quote(chat, safe="@:-") for chat in chats)
    return Target(service="telegram", url=f"tgram://{parts.user}:{quote(parts.password, safe='')}/{targets}/")


def _zulip(parts: _Parts) -> Target:
    stream = parts.taken("stream")
    parts.need(
        "zulip://BOT-MAIL:BOT-KEY@HOST/?stream=STREAM&topic=TOPIC", parts.user, parts.password, parts.host, stream
    )
    bot = parts.user.partition("@")[0]
    return Target(
        service="zulip", title=parts.taken("topic"), url=_url("zulip", _login(bot), parts.host, parts.password, stream)
    )


_SERVICES: dict[str, Callable[[_Parts], Target]] = {
    "bark": _bark,
    "discord": _discord,
    "generic": _generic,
    "googlechat": _googlechat,
    "gotify": _gotify,
    "hangouts": _googlechat,
    "ifttt": _ifttt,
    "join": _join,
    "logger": _logger,
    "matrix": _matrix,
    "mattermost": _mattermost,
    "ntfy": _ntfy,
    "opsgenie": _opsgenie,
    "pushbullet": _pushbullet,
    "pushover": _pushover,
    "rocketchat": _rocketchat,
    "slack": _slack,
    "smtp": _smtp,
    "teams": _teams,
    "telegram": _telegram,
    "zulip": _zulip,
}
