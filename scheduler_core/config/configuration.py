"""KubeSchedulerConfiguration v1, from a parsed mapping to frozen values. Opens no files.

Skips leader election, client connection and profiling, which concern only the real scheduler. Defaults and validation
follow pkg/scheduler/apis/config of kube-scheduler v1.36.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from msgspec import field

from scheduler_core.arguments import checked, expect_fields, expect_flags
from scheduler_core.config.fields import ConfigurationError, Section, kind_of
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import (
    API_VERSION,
    NodeResourcesFitArgs,
    default_plugin_args,
    read_plugin_args,
)
from scheduler_core.config.plugin_merge import (
    EXTENSION_POINTS,
    MULTI_POINT,
    EnabledPlugin,
    PluginRules,
    PluginSelection,
)
from scheduler_core.model.labels import is_label_key
from scheduler_core.values import Value

DEFAULT_SCHEDULER_NAME = "default-scheduler"
DEFAULT_KUBE_VERSION = KubeVersion.parse("1.36")

_SKIPPED = (
    "leaderElection",
    "clientConnection",
    "enableProfiling",
    "enableContentionProfiling",
    "delayCacheUntilActive",
    "healthzBindAddress",
    "metricsBindAddress",
)
_POD_GROUP_POINTS = (
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)  # scheduling of pod groups: its gates are off in every supported release
_REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")


class ManagedResource(Value, kw_only=True):
    """An extended resource that an extender manages. `ignored_by_scheduler`: NodeResourcesFit does not check it."""

    name: str
    ignored_by_scheduler: bool = False


class ExtenderTls(Value, kw_only=True):
    """How an extender's certificate is verified, and how the client authenticates. A PEM text is preferred to a
    file."""

    insecure: bool = False
    server_name: str = ""
    certificate_file: str = ""
    key_file: str = ""
    authority_file: str = ""
    certificate_pem: bytes = b""
    key_pem: bytes = b""
    authority_pem: bytes = b""


class ExtenderSettings(Value, kw_only=True):
    """One HTTP extender. It supports a call (filter, prioritize, preempt, bind) if it has a verb for it."""

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls: ExtenderTls | None = None
    timeout_seconds: float = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class Profile(Value, kw_only=True):
    """The settings for all pods with one schedulerName. `percentage_of_nodes_to_score=None`: that of the
    configuration."""

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    percentage_of_nodes_to_score: int | None = None
    plugins: PluginRules = field(default_factory=PluginRules)
    written_args: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def plugin_args(self, name: str, kube_version: KubeVersion) -> object:
        """Configured or default; None if the plugin has no arguments."""
        if name in self.written_args:
            return self.written_args[name]
        return default_plugin_args(name, kube_version)


class Configuration(Value, kw_only=True):
    """The configuration of one scheduler: its profiles (at least one, with unique names), its extenders, and the
    settings of its queue and of its search for nodes."""

    profiles: tuple[Profile, ...] = (Profile(),)
    extenders: tuple[ExtenderSettings, ...] = ()
    parallelism: int = 16
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10

    def __post_init__(self) -> None:
        expect_fields(self)
        numbers = _wrong_numbers(self.parallelism, self.pod_initial_backoff_seconds, self.pod_max_backoff_seconds)
        problems = [f"{field}: {problem}" for field, problem in numbers]
        if problem := _wrong_percentage(self.percentage_of_nodes_to_score):
            problems.append(f"percentageOfNodesToScore: {problem}")
        if not self.profiles:
            problems.append("profiles: needs one profile at least")
        if problems:
            raise ConfigurationError(problems)

    def __repr__(self) -> str:
        names = ", ".join(profile.scheduler_name for profile in self.profiles)
        return f"<Configuration profiles={names} extenders={len(self.extenders)}>"

    @classmethod
    def from_mapping(
        cls,
        mapping: Mapping[str, Any],
        kube_version: str | KubeVersion = DEFAULT_KUBE_VERSION,
        *,
        may_name_files: bool = True,
    ) -> Configuration:
        """The configuration in `mapping` (parsed YAML or JSON), with the defaults.

        With `may_name_files=False`, the mapping must not name files that this process would open: certFile, keyFile and
        caFile of an extender are then problems; certData, keyData and caData are allowed. Raises ConfigurationError
        with all problems, each beginning with the path of its field.
        """
        expect_flags(may_name_files=may_name_files)
        if not isinstance(mapping, Mapping):
            raise ConfigurationError([f"a KubeSchedulerConfiguration must be a mapping, not {kind_of(mapping)}"])
        written = Section(values=mapping, path="", problems=[])
        release = kube_version if isinstance(kube_version, KubeVersion) else KubeVersion.parse(kube_version)
        return _read(written, release, may_name_files=may_name_files)

    @checked
    def profile(self, scheduler_name: str) -> Profile | None:
        """The profile for pods with this schedulerName, or None."""
        return next((profile for profile in self.profiles if profile.scheduler_name == scheduler_name), None)

    @checked
    def nodes_percentage(self, profile: Profile) -> int:
        """The profile's percentage of nodes to score, or else the configuration's. 0: it depends on the size of the
        cluster."""
        return (
            self.percentage_of_nodes_to_score
            if profile.percentage_of_nodes_to_score is None
            else profile.percentage_of_nodes_to_score
        )


def _read(written: Section, kube_version: KubeVersion, *, may_name_files: bool) -> Configuration:
    _check_kind(written)
    extenders = _read_extenders(written, may_name_files=may_name_files)
    profiles = _read_profiles(written, kube_version)
    parallelism, first, longest = (
        written.integer("parallelism", 16),
        written.integer("podInitialBackoffSeconds", 1, bits=64),
        written.integer("podMaxBackoffSeconds", 10, bits=64),
    )
    percentage = _read_percentage(written) or 0
    for name, problem in _wrong_numbers(parallelism, first, longest):
        written.refuse(name, problem)
    written.refuse_unknown(*_SKIPPED)
    if written.problems:
        raise ConfigurationError(written.problems)
    return Configuration(
        profiles=_with_ignored_resources(profiles, extenders, kube_version),
        extenders=extenders,
        parallelism=parallelism,
        percentage_of_nodes_to_score=percentage,
        pod_initial_backoff_seconds=first,
        pod_max_backoff_seconds=longest,
    )


def _wrong_numbers(parallelism: int, first_backoff: int, longest_backoff: int) -> Iterator[tuple[str, str]]:
    """The fields that kube-scheduler refuses, each with what is wrong with it."""
    if parallelism <= 0:
        yield "parallelism", f"{parallelism}: should be an integer value greater than zero"
    if first_backoff <= 0:
        yield "podInitialBackoffSeconds", f"{first_backoff}: must be greater than 0"
    if longest_backoff < first_backoff:
        yield "podMaxBackoffSeconds", f"{longest_backoff}: must be greater than or equal to podInitialBackoffSeconds"


def _wrong_percentage(percentage: int | None) -> str:
    in_range = percentage is None or 0 <= percentage <= 100
    return "" if in_range else f"{percentage}: not in valid range [0-100]"


def _check_kind(written: Section) -> None:
    api_version, kind = written.text("apiVersion", API_VERSION), written.text("kind", "KubeSchedulerConfiguration")
    if api_version != API_VERSION:
        written.refuse("apiVersion", f"{api_version} is not supported; write {API_VERSION}")
    if kind != "KubeSchedulerConfiguration":
        written.refuse("kind", f"the kind must be KubeSchedulerConfiguration, not {kind}")


def _read_percentage(section: Section) -> int | None:
    percentage = section.optional_integer("percentageOfNodesToScore")
    if problem := _wrong_percentage(percentage):
        section.refuse("percentageOfNodesToScore", problem)
    return percentage


# ---- profiles ----


def _read_profiles(written: Section, kube_version: KubeVersion) -> tuple[Profile, ...]:
    sections = written.sections("profiles")
    if not sections:
        return (Profile(),)
    # Only a single profile may omit its name: with several, a default name would hide a mistake.
    default_name = DEFAULT_SCHEDULER_NAME if len(sections) == 1 else ""
    profiles: list[Profile] = []
    for section in sections:
        profile = _read_profile(section, default_name, kube_version)
        if not profile.scheduler_name:
            section.refuse("schedulerName", "if there are several profiles, each needs a schedulerName")
        elif any(other.scheduler_name == profile.scheduler_name for other in profiles):
            section.refuse("schedulerName", f"another profile already has the name {profile.scheduler_name!r}")
        profiles.append(profile)
        _check_queue_sort(section, profiles[0], profile)
    return tuple(profiles)


def _read_profile(section: Section, default_name: str, kube_version: KubeVersion) -> Profile:
    plugins = section.section("plugins")
    selections = {
        point: _read_selection(plugins.section(point))
        for point in (MULTI_POINT, *EXTENSION_POINTS)
        if plugins.has(point)
    }
    plugins.refuse_unknown(*_POD_GROUP_POINTS)
    args: dict[str, object] = {}
    for written in section.sections("pluginConfig"):
        name = written.text("name")
        if name in args:
            written.refuse("name", f"{name!r} is configured twice")
        _refuse_removed(written, "name", name)
        args[name] = read_plugin_args(name, written.section("args"), kube_version)
        written.refuse_unknown()
    profile = Profile(
        scheduler_name=section.text("schedulerName", default_name),
        percentage_of_nodes_to_score=_read_percentage(section),
        plugins=PluginRules(selections=MappingProxyType(selections)),
        written_args=MappingProxyType(args),
    )
    section.refuse_unknown()
    return profile


def _read_selection(section: Section) -> PluginSelection:
    enabled, disabled = [], []
    for plugin in section.sections("enabled"):
        enabled.append(EnabledPlugin(name=plugin.text("name"), weight=plugin.integer("weight", 0)))
        _refuse_removed(plugin, "name", enabled[-1].name)
        plugin.refuse_unknown()
    for plugin in section.sections("disabled"):
        disabled.append(plugin.text("name"))
        plugin.refuse_unknown("weight")
    section.refuse_unknown()
    return PluginSelection(enabled=tuple(enabled), disabled=tuple(disabled))


def _refuse_removed(section: Section, name: str, plugin: str) -> None:
    if plugin in _REMOVED_PLUGINS:
        section.refuse(name, f"{plugin} was removed from Kubernetes; NodeVolumeLimits counts these volumes")


def _check_queue_sort(section: Section, first: Profile, profile: Profile) -> None:
    order, canon = profile.plugins.at("queueSort"), first.plugins.at("queueSort")
    if len(order.enabled) > 1:
        section.refuse("plugins.queueSort.enabled", "only one queue sort plugin can be enabled")
    if order != canon:
        section.refuse("plugins.queueSort", "must be the same for all profiles")
    name = canon.enabled[0].name if canon.enabled else None
    if name is not None and profile.written_args.get(name) != first.written_args.get(name):
        section.refuse("pluginConfig", f"the arguments of {name} must be the same for all profiles")


# ---- extenders ----


def _read_extenders(written: Section, *, may_name_files: bool) -> tuple[ExtenderSettings, ...]:
    sections = written.sections("extenders")
    extenders = tuple(_read_extender(section, may_name_files=may_name_files) for section in sections)
    managed: set[str] = set()
    for section, extender in zip(sections, extenders, strict=True):
        for index, resource in enumerate(extender.managed_resources):
            if resource.name in managed:
                section.refuse(
                    f"managedResources[{index}].name", f"{resource.name!r} is already managed by an extender"
                )
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        written.refuse("extenders", f"found {binders} extenders implementing bind, only one can")
    # Ignorable extenders come last, so that the required ones get as many nodes as possible.
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


# A query or a fragment would end the path before the verb; urlsplit silently removes tabs and line breaks.
_NOT_IN_ADDRESS = re.compile(r"[?#\s\x00-\x1f\x7f-\x9f]")
_ADDRESS_FIELDS = {
    "urlPrefix": "url_prefix",
    "filterVerb": "filter_verb",
    "prioritizeVerb": "prioritize_verb",
    "preemptVerb": "preempt_verb",
    "bindVerb": "bind_verb",
}


def _read_extender(section: Section, *, may_name_files: bool) -> ExtenderSettings:
    extender = ExtenderSettings(
        url_prefix=section.text("urlPrefix"),
        filter_verb=section.text("filterVerb"),
        prioritize_verb=section.text("prioritizeVerb"),
        preempt_verb=section.text("preemptVerb"),
        bind_verb=section.text("bindVerb"),
        weight=section.integer("weight", 0, bits=64),
        enable_https=section.flag("enableHTTPS"),
        tls=_read_tls(section.section("tlsConfig"), may_name_files=may_name_files)
        if section.has("tlsConfig")
        else None,
        timeout_seconds=section.duration_seconds("httpTimeout", 0.0) or 5.0,
        node_cache_capable=section.flag("nodeCacheCapable"),
        managed_resources=tuple(_read_managed_resource(resource) for resource in section.sections("managedResources")),
        ignorable=section.flag("ignorable"),
    )
    if not extender.url_prefix:
        section.refuse("urlPrefix", "urlPrefix must be the URL of the extender")
    for name, attribute in _ADDRESS_FIELDS.items():
        if _NOT_IN_ADDRESS.search(getattr(extender, attribute)):
            section.refuse(
                name,
                f"{name} must not contain '?', '#', white space or control characters, because {name} is part of a "
                "path",
            )
    if extender.prioritize_verb and extender.weight <= 0:
        section.refuse("weight", f"{extender.weight}: must have a positive weight applied to it")
    section.refuse_unknown()
    return extender


def _read_managed_resource(section: Section) -> ManagedResource:
    name = section.text("name")
    if not is_label_key(name):
        section.refuse("name", f"{name!r} is not a valid resource name")
    elif (
        "/" not in name
        or "kubernetes.io/" in name
        or name.startswith("requests.")
        or not is_label_key("requests." + name)
    ):
        section.refuse(
            "name",
            f"{name!r} is not an extended resource: it needs a domain other than kubernetes.io before '/'",
        )
    resource = ManagedResource(name=name, ignored_by_scheduler=section.flag("ignoredByScheduler"))
    section.refuse_unknown()
    return resource


NO_FILE = "the field must not name a file"
# Each with the field that holds the content itself.
_FILE_FIELDS = {"certFile": "certData", "keyFile": "keyData", "caFile": "caData"}


def _read_tls(section: Section, *, may_name_files: bool) -> ExtenderTls:
    for name, data in _FILE_FIELDS.items():
        if not may_name_files and section.raw(name):
            section.refuse(name, f"{NO_FILE}: copy the file, as base64, into {data}")
    tls = ExtenderTls(
        insecure=section.flag("insecure"),
        server_name=section.text("serverName"),
        certificate_file=section.text("certFile"),
        key_file=section.text("keyFile"),
        authority_file=section.text("caFile"),
        certificate_pem=_read_bytes(section, "certData"),
        key_pem=_read_bytes(section, "keyData"),
        authority_pem=_read_bytes(section, "caData"),
    )
    section.refuse_unknown()
    return tls


def _read_bytes(section: Section, name: str) -> bytes:
    try:
        return base64.b64decode(section.text(name), validate=True)
    except binascii.Error:
        section.refuse(name, "the value is not base64")
        return b""


def _with_ignored_resources(
    profiles: tuple[Profile, ...], extenders: tuple[ExtenderSettings, ...], kube_version: KubeVersion
) -> tuple[Profile, ...]:
    """If an extender marks resources as `ignoredByScheduler`, NodeResourcesFit ignores these instead of the resources
    in its own list (buildExtenders in pkg/scheduler/scheduler.go)."""
    ignored = tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return profiles
    changed = []
    for profile in profiles:
        fit = profile.plugin_args("NodeResourcesFit", kube_version)
        assert isinstance(fit, NodeResourcesFitArgs)
        args = {**profile.written_args, "NodeResourcesFit": replace(fit, ignored_resources=ignored)}
        changed.append(replace(profile, written_args=MappingProxyType(args)))
    return tuple(changed)
