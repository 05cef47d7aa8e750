"""Writes the oracle's Go files for another release of Kubernetes, with what that release names otherwise.

    python -m tests.oracle.releases 1.34 DIRECTORY

`RELEASES` has the patch release of each minor one, with the version of Go's modules that were tried.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
RELEASES = {
    "1.32": "1.32.13",
    "1.33": "1.33.13",
    "1.34": "1.34.4",
    "1.35": "1.35.4",
    "1.36": "1.36.3",
    "1.37": "1.37.2",
}


def write(release: str, out: Path) -> None:  # noqa: C901  a list of what changed
    """`release`: such as 1.34.4. Writes into an empty or new directory."""
    minor = int(release.split(".")[1])
    out.mkdir(parents=True, exist_ok=True)
    text = {}
    for path in sorted(HERE.glob("*.go")):
        text[path.name] = path.read_text()
    text["go.mod"] = (HERE / "go.mod").read_text()
    (here,) = re.findall(r"k8s\.io/kubernetes v1\.([0-9.]+)", text["go.mod"])

    def change(name: str, pattern: str, new: str, flags: re.RegexFlag = re.DOTALL) -> None:
        text[name] = re.sub(pattern, new, text[name], flags=flags)

    def drop(name: str, pattern: str) -> None:
        change(name, rf"^.*{pattern}.*\n", "", re.MULTILINE)

    change("go.mod", re.escape(here), release.removeprefix("1."))
    if release.removeprefix("1.") != here:  # everything else as the release itself asks for it
        change("go.mod", r"require \(.*?\n\)\n", "")
        text["go.mod"] += f"\nrequire k8s.io/kubernetes v{release}\n"
    if minor == 37:
        change("cluster.go", r"cache\.New\(ctx, nil, false\)", "cache.New(ctx, nil, false, false)")
        change(
            "profile.go",
            r"(\t\tframeworkruntime\.WithSnapshotSharedLister\(snapshot\),\n)",
            r"\1\t\tframeworkruntime.WithMutableSnapshotLister(snapshot),\n",
        )
        change("profile.go", r"V1beta2\(\)\.DeviceTaintRules", "V1().DeviceTaintRules")
        drop("profile.go", r"tracked\.ClassInformer")
        drop("main.go", "OpportunisticBatching")  # locked
    if minor <= 35:
        change(
            "cluster.go",
            r"cache\.New\(ctx, nil, false\)",
            "cache.New(ctx, 0, nil)" if minor >= 34 else "cache.New(ctx, 0)",
        )
        change("profile.go", r"V1beta2\(\)\.DeviceTaintRules", "V1alpha3().DeviceTaintRules")
        drop("profile.go", r"frameworkruntime\.WithPodsInPreBind")
        change("profile.go", r"waiting\.Add\(ctx, pod\)", "waiting.Add(klog.FromContext(ctx), pod)")
        change(
            "informers.go",
            r'cache\.WaitFor\(ctx, "", registration\.HasSyncedChecker\(\)\)',
            "cache.WaitForCacheSync(ctx.Done(), registration.HasSynced)",
        )
        change("configurations.go", r"events\.EventRecorderLogger", "events.EventRecorder")
    if minor <= 34:
        drop("main.go", "OpportunisticBatching")
        drop("profile.go", 'extendedresourcecache"')
        change(
            "profile.go",
            r"\tif utilfeature\.DefaultFeatureGate\.Enabled\(features\.DRAExtendedResource\) "
            r"\{.*?\n\t\}\n(?=\treturn &handles)",
            "",
        )
        change(
            "profile.go",
            r"EnableDeviceTaintRules:   utilfeature\.DefaultFeatureGate\.Enabled\(features\.DRADeviceTaintRules\)",
            "EnableDeviceTaints: utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaints)",
        )
        change("profile.go", r"tracked\.EnableDeviceTaintRules", "tracked.EnableDeviceTaints")
        drop("profile.go", r"frameworkruntime\.WithSharedCSIManager")
        drop("profile.go", 'plugins/nodevolumelimits"')
        drop("profile.go", r'fwk "k8s\.io/kube-scheduler/framework"')
        for name in text:
            change(name, r"fwk\.(Handle|Plugin|NodePluginScores)\b", r"framework.\1")
    if minor <= 33:  # without devices: the plugin is off by default
        for name in text:
            drop(name, r'fwk "k8s\.io/kube-scheduler/framework"')
            change(name, r"\[\]fwk\.NodeInfo", "[]*framework.NodeInfo")
            change(name, r"state fwk\.CycleState", "state *framework.CycleState")
            change(name, r"\bfwk\.", "framework.")
        change("profile.go", r"\tclaims := assumecache.*?\n(?=\treturn &handles)", "")
        for gone in (
            r"frameworkruntime\.WithSharedDRAManager",
            "resourceslicetracker",
            'plugins/dynamicresources"',
            'util/assumecache"',
            'kubernetes/pkg/features"',
        ):
            drop("profile.go", gone)
        change(
            "profile.go",
            r"p\.preemption = preemption\n",
            "p.preemption, _ = preemption.(*defaultpreemption.DefaultPreemption)\n",
        )
        change("informers.go", r"\tput\(&resourceapi\..*?\n\t\}\)\n", "")
        for gone in ('resourceapi "', 'resourceinformers "'):
            drop("informers.go", gone)
        change(
            "profile.go",
            r"plfeature\.NewSchedulerFeaturesFromGates\(utilfeature\.DefaultFeatureGate\)",
            "plfeature.Features{}",
        )
        drop("profile.go", r'utilfeature "')
    if minor == 32:
        change("informers.go", r"func \(r \*recordedInformer\) AddEventHandlerWithOptions.*?\n}\n", "")
    for name, content in text.items():
        (out / name).write_text(content)
    if minor == 36 and release == here:
        shutil.copy(HERE / "go.sum", out)


if __name__ == "__main__":
    write(RELEASES[sys.argv[1]], Path(sys.argv[2]))
