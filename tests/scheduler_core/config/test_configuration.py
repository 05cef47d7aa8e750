"""Tests the reading of a whole KubeSchedulerConfiguration: defaults, profiles, extenders, and the list of problems."""

import base64
from typing import Any

import pytest

from scheduler_core.config.configuration import (
    Configuration,
    ExtenderSettings,
    ExtenderTls,
    ManagedResource,
    Profile,
)
from scheduler_core.config.fields import ConfigurationError
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import InterPodAffinityArgs, NodeResourcesFitArgs
from scheduler_core.config.plugin_merge import EnabledPlugin, PluginSelection

NOW = KubeVersion.parse("1.36")


def problems(mapping: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigurationError) as refusal:
        Configuration.from_mapping(mapping)
    return list(refusal.value.problems)


def test_an_empty_configuration_equals_the_default_configuration() -> None:
    assert Configuration.from_mapping({}) == Configuration() == Configuration.from_mapping({"profiles": []})


def test_the_defaults_equal_the_defaults_of_kube_scheduler() -> None:
    configuration = Configuration()
    assert (configuration.parallelism, configuration.percentage_of_nodes_to_score) == (16, 0)
    assert (configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds) == (1, 10)
    assert [profile.scheduler_name for profile in configuration.profiles] == ["default-scheduler"]


def test_a_profiles_percentageofnodestoscore_of_zero_overrides_the_global_value() -> None:
    configuration = Configuration.from_mapping(
        {
            "percentageOfNodesToScore": 40,
            "profiles": [{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 0}],
        }
    )
    a, b = configuration.profile("a"), configuration.profile("b")
    assert a is not None
    assert b is not None
    assert (
        configuration.nodes_percentage(a),
        configuration.nodes_percentage(b),
        configuration.profile("default-scheduler"),
    ) == (40, 0, None)


def test_plugin_arguments_are_typed_and_get_defaults() -> None:
    configuration = Configuration.from_mapping(
        {
            "profiles": [
                {
                    "pluginConfig": [
                        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}},
                        {"name": "Mine", "args": {"x": 1}},
                    ]
                }
            ]
        }
    )
    profile = configuration.profiles[0]
    assert profile.plugin_args("InterPodAffinity", NOW) == InterPodAffinityArgs(hard_pod_affinity_weight=5)
    assert profile.plugin_args("NodeResourcesFit", NOW) == NodeResourcesFitArgs()
    assert profile.plugin_args("Mine", NOW) == {"x": 1}


def test_a_profile_keeps_the_enabled_and_disabled_plugins_of_each_extension_point() -> None:
    mapping = {
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {"enabled": [{"name": "Mine", "weight": 2}]},
                    "score": {"disabled": [{"name": "*"}]},
                }
            }
        ]
    }
    plugins = Configuration.from_mapping(mapping).profiles[0].plugins
    assert plugins.at("multiPoint") == PluginSelection(enabled=(EnabledPlugin(name="Mine", weight=2),))
    assert plugins.at("score") == PluginSelection(disabled=("*",))
    assert plugins.at("filter") == PluginSelection()


def test_an_extender_is_read_with_all_its_settings() -> None:
    pem = b"-----BEGIN CERTIFICATE-----"
    written = {
        "urlPrefix": "https://extender.example/api/",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": 3,
        "enableHTTPS": True,
        "tlsConfig": {
            "insecure": False,
            "serverName": "extender",
            "certFile": "/c",
            "keyFile": "/k",
            "caFile": "/a",
            "caData": base64.b64encode(pem).decode(),
        },
        "httpTimeout": "1m",
        "nodeCacheCapable": True,
        "managedResources": [{"name": "example.com/fpga", "ignoredByScheduler": True}],
        "ignorable": True,
    }
    assert Configuration.from_mapping({"extenders": [written]}).extenders == (
        ExtenderSettings(
            url_prefix="https://extender.example/api/",
            filter_verb="filter",
            prioritize_verb="prioritize",
            preempt_verb="preempt",
            bind_verb="bind",
            weight=3,
            enable_https=True,
            tls=ExtenderTls(
                server_name="extender", certificate_file="/c", key_file="/k", authority_file="/a", authority_pem=pem
            ),
            timeout_seconds=60.0,
            node_cache_capable=True,
            managed_resources=(ManagedResource(name="example.com/fpga", ignored_by_scheduler=True),),
            ignorable=True,
        ),
    )


def test_the_default_timeout_of_an_extender_is_five_seconds() -> None:
    assert Configuration.from_mapping({"extenders": [{"urlPrefix": "http://e"}]}).extenders[0].timeout_seconds == 5.0


def test_ignorable_extenders_are_called_last() -> None:
    extenders = [
        {"urlPrefix": "http://a", "ignorable": True},
        {"urlPrefix": "http://b"},
        {"urlPrefix": "http://c", "ignorable": True},
        {"urlPrefix": "http://d"},
    ]
    assert [e.url_prefix for e in Configuration.from_mapping({"extenders": extenders}).extenders] == [
        "http://b",
        "http://d",
        "http://a",
        "http://c",
    ]


def test_resources_that_an_extender_marks_as_ignored_replace_the_ignored_resources_of_node_resources_fit() -> None:
    mapping = {
        "profiles": [
            {
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {"ignoredResources": ["example.com/old"], "ignoredResourceGroups": ["example.org"]},
                    }
                ]
            }
        ],
        "extenders": [
            {
                "urlPrefix": "http://e",
                "managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}, {"name": "example.com/b"}],
            }
        ],
    }
    fit = Configuration.from_mapping(mapping).profiles[0].plugin_args("NodeResourcesFit", NOW)
    assert fit == NodeResourcesFitArgs(ignored_resources=("example.com/a",), ignored_resource_groups=("example.org",))


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            ["apiVersion: kubescheduler.config.k8s.io/v1beta3 is not supported; write kubescheduler.config.k8s.io/v1"],
        ),
        ({"kind": "Policy"}, ["kind: the kind must be KubeSchedulerConfiguration, not Policy"]),
        ({"paralelism": 3}, ["paralelism: unknown field"]),
        ({"parallelism": 0}, ["parallelism: 0: should be an integer value greater than zero"]),
        ({"percentageOfNodesToScore": 101}, ["percentageOfNodesToScore: 101: not in valid range [0-100]"]),
        ({"podInitialBackoffSeconds": 0}, ["podInitialBackoffSeconds: 0: must be greater than 0"]),
        (
            {"podInitialBackoffSeconds": 20},
            ["podMaxBackoffSeconds: 10: must be greater than or equal to podInitialBackoffSeconds"],
        ),
        (
            {"profiles": [{"percentageOfNodesToScore": -1}]},
            ["profiles[0].percentageOfNodesToScore: -1: not in valid range [0-100]"],
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {}]},
            ["profiles[1].schedulerName: if there are several profiles, each needs a schedulerName"],
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            ["profiles[1].schedulerName: another profile already has the name 'a'"],
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "X"}, {"name": "X"}]}]},
            ["profiles[0].pluginConfig[1].name: 'X' is configured twice"],
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 999}}]}]},
            ["profiles[0].pluginConfig[0].args.hardPodAffinityWeight: 999: not in valid range [0, 100]"],
        ),
        (
            {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}}}]},
            [
                (
                    "profiles[0].plugins.filter.enabled[0].name: EBSLimits was removed from Kubernetes; "
                    "NodeVolumeLimits counts these volumes"
                )
            ],
        ),
        ({"profiles": [{"plugins": {"fliter": {}}}]}, ["profiles[0].plugins.fliter: unknown field"]),
        (
            {"profiles": [{"plugins": {"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}}]},
            ["profiles[0].plugins.queueSort.enabled: only one queue sort plugin can be enabled"],
        ),
        (
            {
                "profiles": [
                    {"schedulerName": "a"},
                    {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "B"}]}}},
                ]
            },
            ["profiles[1].plugins.queueSort: must be the same for all profiles"],
        ),
        (
            {
                "profiles": [
                    {
                        "schedulerName": name,
                        "plugins": {"queueSort": {"enabled": [{"name": "Mine"}]}},
                        "pluginConfig": [{"name": "Mine", "args": {"by": name}}],
                    }
                    for name in ("a", "b")
                ]
            },
            ["profiles[1].pluginConfig: the arguments of Mine must be the same for all profiles"],
        ),
        ({"extenders": [{}]}, ["extenders[0].urlPrefix: urlPrefix must be the URL of the extender"]),
        (
            {"extenders": [{"urlPrefix": "http://e", "prioritizeVerb": "p"}]},
            ["extenders[0].weight: 0: must have a positive weight applied to it"],
        ),
        (
            {"extenders": [{"urlPrefix": "http://e", "bindVerb": "b"}] * 2},
            ["extenders: found 2 extenders implementing bind, only one can"],
        ),
        (
            {
                "extenders": [
                    {
                        "urlPrefix": "http://e",
                        "managedResources": [
                            {"name": name}
                            for name in ("cpu", "storage.kubernetes.io/x", "requests.example.com/x", "bad name/x")
                        ],
                    }
                ]
            },
            [
                (
                    "extenders[0].managedResources[0].name: 'cpu' is not an extended resource: it needs a domain "
                    "other than kubernetes.io before '/'"
                ),
                (
                    "extenders[0].managedResources[1].name: 'storage.kubernetes.io/x' is not an extended "
                    "resource: it needs a domain other than kubernetes.io before '/'"
                ),
                (
                    "extenders[0].managedResources[2].name: 'requests.example.com/x' is not an extended resource: "
                    "it needs a domain other than kubernetes.io before '/'"
                ),
                "extenders[0].managedResources[3].name: 'bad name/x' is not a valid resource name",
            ],
        ),
        (
            {"extenders": [{"urlPrefix": "http://e", "managedResources": [{"name": "a.com/x"}, {"name": "a.com/x"}]}]},
            ["extenders[0].managedResources[1].name: 'a.com/x' is already managed by an extender"],
        ),
        (
            {"extenders": [{"urlPrefix": "http://e", "tlsConfig": {"caData": "%%"}}]},
            ["extenders[0].tlsConfig.caData: the value is not base64"],
        ),
    ],
)
def test_each_problem_contains_the_path_of_its_field(mapping: dict[str, Any], expected: list[str]) -> None:
    assert problems(mapping) == expected


def test_all_problems_are_reported_together() -> None:
    assert len(problems({"parallelism": -1, "podInitialBackoffSeconds": 0, "typo": 1})) == 3


def test_settings_that_only_the_real_scheduler_uses_are_skipped() -> None:
    mapping = {
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": "/k"},
        "enableProfiling": True,
        "enableContentionProfiling": False,
    }
    assert Configuration.from_mapping(mapping) == Configuration(profiles=(Profile(),))


@pytest.mark.parametrize(
    ("parsed", "kind"), [("just text", "a string"), ([1], "a list"), (7, "an integer"), (None, "nothing")]
)
def test_a_configuration_that_is_not_a_mapping_is_refused(parsed: Any, kind: str) -> None:
    with pytest.raises(ConfigurationError, match=f"a KubeSchedulerConfiguration must be a mapping, not {kind}"):
        Configuration.from_mapping(parsed)


@pytest.mark.parametrize("character", ["?", "#", " ", "\t", "\r", "\n", "\x00", "\x7f", "\x85", "\u2028"])
@pytest.mark.parametrize("field", ["urlPrefix", "filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb"])
def test_an_extender_url_with_a_query_or_white_space_is_refused(field: str, character: str) -> None:
    extender = {"urlPrefix": "http://e/p", "weight": 1, "filterVerb": "f"}
    extender[field] = f"{extender.get(field, 'verb')}{character}x"
    with pytest.raises(ConfigurationError) as refused:
        Configuration.from_mapping({"extenders": [extender]})
    (problem,) = refused.value.problems
    assert problem.startswith(
        f"extenders[0].{field}: {field} must not contain '?', '#', white space or control characters"
    )


def test_certificates_must_be_inline_if_the_configuration_may_not_name_files() -> None:
    files = {"certFile": "/c", "keyFile": "/k", "caFile": "/a"}
    content = {"certData": "eA==", "keyData": "eA==", "caData": "eA==", "serverName": "s"}
    extenders = [{"urlPrefix": "https://e", "tlsConfig": content}, {"urlPrefix": "https://f", "tlsConfig": files}]
    with pytest.raises(ConfigurationError) as refused:
        Configuration.from_mapping({"extenders": extenders}, may_name_files=False)
    assert refused.value.problems == (
        "extenders[1].tlsConfig.certFile: the field must not name a file: copy the file, as base64, into certData",
        "extenders[1].tlsConfig.keyFile: the field must not name a file: copy the file, as base64, into keyData",
        "extenders[1].tlsConfig.caFile: the field must not name a file: copy the file, as base64, into caData",
    )
    Configuration.from_mapping({"extenders": extenders[:1]}, may_name_files=False)
    Configuration.from_mapping({"extenders": extenders})
