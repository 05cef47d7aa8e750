"""Recognises apprise's own URLs without loading apprise.

No I/O; loaded when a URL is not in shoutrrr's form. It knows only the names of apprise's services, which a test
compares with the library's. At the agent's start a child process of `notify.py` checks whether the library accepts the
whole URL.
"""

from __future__ import annotations

import re

_SCHEMES = """
    46elks amqp amqps apprise apprises aprs atalk azure bark barks betterstack bluesky brevo bsky bulksms bulkvs
    burstsms chanify clickatell clicksend cliq cm d7sms dapnet deltachat deltachats dingtalk discord dot eight00com
    elks emby embys enigma2 enigma2s evolution evolutions exotel fcm feishu firehydrant flock flowtriq flowtriqs
    fluxer fluxers form forms freemobile gchat github goalert goalerts gorush gorushs gotify gotifys groundmail
    groupme guilded gupshup hassio hassios httpsms humhub humhubs ifttt ilert incidentio infobip irc ircs jellyfin
    jellyfins jira join json jsons kakao kakaotalk kaleyra kavenegar klr kodi kodis kook kudosity kumulos lametric
    lametrics lark lauther lfg line mailersend mailgun mailto mailtos mastodon mastodons matrix matrixs misskey
    misskeys mmost mmosts mobilemessage mobilemsg msg91 msgbird ncloud nclouds nctalk nctalks nexmo nostr notica
    noticas notifiarr notifico notificos notifyre ntfy ntfys o365 octopush onebot onebots onesignal opsgenie pagerduty
    pagertree parsep parseps pbul pinglet pinglets pingram pjet pjets plivo postmark pover prowl psafer psafers push
    pushdeer pushdeers pushed pushme pushplus pushward pushy qq reddit resend revolt ringc rocket rockets rsyslog
    ryver schan sendgrid sendpulse serwersms ses session sessions seven sfr signal signalgrid signals signl4
    simplepush sinch slack smsc smseagle smseagles smsmanager smsmgr smstunnel smtp2go sns sogs sparkpost spike splunk
    spugpush spush squadcast stackfield strmlabs synology synologys syslog telesign telnyx tgram threema toot toots
    trigv trigvs tweet twilio twist twitter vapid viber victorops voipms vonage webex wechat wecom wecombot whapi
    whatsapp workflow workflows wpush wxpusher wxteams x xbmc xbmcs xmatters xml xmls youlmk zalo zcliq zohocliq zoom
    zulip
"""
"""The schemes of apprise 2.2 that work with the packages of the image."""

# The services that both apprise and shoutrrr have, with apprise's forms after SCHEME://. A form that looks like one of
# shoutrrr's is left out. So is gotify: both have the same form, but only shoutrrr uses TLS for it.
_FORMS = {
    "bark": r"[^@/?#]+/[^/?#]+",  # HOST/KEY
    "discord": r"([^@/?#]+@)?\d+/[^/?#]+",  # [BOT@]WEBHOOK-ID/TOKEN
    "ifttt": r"[^@/?#]+@[^/?#]+",  # KEY@EVENT
    "join": r"[^@:/?#]+/[^/?#]+",  # KEY/DEVICE
    "matrix": r"[^/?#]+/(%23|%21|!)[^/?#]+",  # USER:PASSWORD@HOST/#ROOM
    "ntfy": r"[^@/?#]+(?=/?([?#]|$))|[^/?#]+/[^/?#]+/[^/?#]+",  # TOPIC, HOST/TOPIC/TOPIC
    "opsgenie": r"[^@./?#]+(?=[/?]|$)",  # KEY
    "slack": (
        r"([^@/?#]+@)?T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}/([#@+]|%23|%40|%2B)[^/?#]+"  # [BOT@]A/B/C/#CHANNEL
        r"|([^@/?#]+@)?xox[abp]-[^/?#]+/([#@+]|%23|%40|%2B)[^/?#]+"  # [BOT@]TOKEN/#CHANNEL
    ),
    "zulip": r"[^@:/?#]+@[^/?#]+/[^/?#]+",  # BOT@ORGANIZATION/TOKEN
}

# Hosts of webhook addresses that services give out and that apprise accepts unchanged.
_PASTED = re.compile(
    r"https://(hooks\.slack\.com/services/[^/]+/[^/]+/[^/]+|discord(app)?\.com/api/webhooks/\d+/"
    r"|signals\.firehydrant\.com/v1/process/|api\.flock\.com/hooks/sendMessage/|maker\.ifttt\.com/use/"
    r"|chat\.googleapis\.com/v1/spaces/|(media\.)?guilded\.gg/webhooks/|api\.incident\.io/v2/alert_events/http/"
    r"|(api\.)?fluxer\.app/|cliq\.zoho(cloud)?(\.[a-z]+){1,2}/|www\.kookapp\.cn/api/v3/incoming/"
    r"|open\.larksuite\.com/open-apis/bot/v2/hook/|api\.lfg\.gm/horn/|mattermost\.[a-z0-9_.-]+(:\d+)?/"
    r"|notica\.us/|n\.tkte\.ch/h/|ntfy\.sh/|www\.pushplus\.plus/send|qmsg\.zendee\.cn/send/"
    r"|[a-z0-9_-]+\.ryver\.com/application/webhook/|api\.spike\.sh/v1/alerts/|push\.spug\.dev/send/"
    r"|alert\.victorops\.com/integrations/generic/|api\.(eu\.)?squadcast\.com/v2/incidents/api/"
    r"|(www\.)?stackfield\.com/apiwh/|api\.ciscospark\.com/|webexapis\.com/|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send"
    r"|api\.wpush\.cn/api/v1/send|[a-z0-9.-]+\.xmatters\.com/|(www\.)?youlmk\.com/k/|inbots\.zoom\.us/incoming/hook/"
    r"|([^@/]+@)?api\.46elks\.com/a1/sms)",
    re.IGNORECASE,
)


def is_scheme(scheme: str) -> bool:
    """Whether apprise has such a service that works in the image."""
    return scheme in _SCHEMES.split()


def is_form_of(scheme: str, text: str) -> bool:
    """Of a `scheme` that both know: whether the URL is in apprise's form and not in shoutrrr's."""
    form = _FORMS.get(scheme)
    return form is not None and re.match(form, text.partition("://")[2]) is not None


def is_pasted(text: str) -> bool:
    """A webhook address as a service gives it to people, such as `https://hooks.slack.com/services/A/B/C`, in a form
    that apprise accepts."""
    return _PASTED.match(text) is not None
