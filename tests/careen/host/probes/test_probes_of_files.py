"""Tests probes that read files of the host (a newer kernel, SUSE's reboot-needed file, a staged OSTree deployment), and
the uptime probe."""

from __future__ import annotations

from pathlib import Path

import pytest

from careen.core.facts.observation import Need, NeedAnswer
from careen.host.probes import HostFacts, looking

YES, NO, UNKNOWN = NeedAnswer.YES, NeedAnswer.NO, NeedAnswer.UNKNOWN


def ask(name: str, root: Path, *, release: str = "", uptime: float = 0.0, longest: float = 0.0) -> Need:
    facts = HostFacts(root=root, release=release, uptime_seconds=uptime, longest_uptime_seconds=longest)
    return looking(name)(facts)


def with_files(root: Path, *paths: str) -> Path:
    for path in paths:
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return root


# Releases as the distributions' packages name them: linux-image-* of Debian and Ubuntu, kernel-core of RHEL,
# kernel-default of SUSE, linux of Arch.
@pytest.mark.parametrize(
    ("running", "installed", "answer", "words"),
    [
        ("6.1.0-18-amd64", ["6.1.0-18-amd64", "6.1.0-21-amd64"], YES, "kernel 6.1.0-21-amd64 is installed"),
        ("6.1.0-9-amd64", ["6.1.0-9-amd64", "6.1.0-10-amd64"], YES, "6.1.0-10-amd64"),
        ("6.1.0-21-amd64", ["6.1.0-18-amd64", "6.1.0-21-amd64"], NO, "no newer kernel"),
        ("6.1.0-18-amd64", ["6.1.0-18-amd64", "6.1.0-21-rt-amd64"], NO, "no newer kernel"),
        ("4.18.0-553.5.1.el8_10", ["4.18.0-553.el8_10", "4.18.0-553.5.1.el8_10"], NO, "no newer kernel"),
        ("4.18.0-553.el8_10", ["4.18.0-553.el8_10", "4.18.0-553.5.1.el8_10"], YES, "553.5.1.el8_10 is installed"),
        ("5.15.0-105-generic", ["5.15.0-105-generic", "5.15.0-1058-aws"], NO, "no newer kernel"),
        (
            "5.14.0-362.8.1.el9_3.x86_64",
            ["5.14.0-362.8.1.el9_3.x86_64", "5.14.0-427.13.1.el9_4.x86_64", "0-rescue-8a2f3b"],
            YES,
            "5.14.0-427.13.1.el9_4.x86_64",
        ),
        ("5.14.0-427.13.1.el9_4.x86_64", ["5.14.0-427.13.1.el9_4.x86_64+debug"], UNKNOWN, "no installed kernel"),
        ("6.4.0-150600.21-default", ["6.4.0-150600.23.25-default"], YES, "6.4.0-150600.23.25-default"),
        ("6.9.1-arch1-1", ["6.9.1-arch1-2"], YES, "6.9.1-arch1-2"),
        ("6.1.0-18-amd64", [], UNKNOWN, "no installed kernel of the same kind as the running kernel 6.1.0-18-amd64"),
        ("6.1.0-18-amd64", ["6.1.0-21-amd64.old"], UNKNOWN, "no installed kernel"),
    ],
)
@pytest.mark.parametrize("place", ["/boot/vmlinuz-{}", "/usr/lib/modules/{}/vmlinuz"])
def test_a_newer_kernel_of_the_same_flavour_needs_a_reboot(
    tmp_path: Path, place: str, running: str, installed: list[str], answer: NeedAnswer, words: str
) -> None:
    (tmp_path / "lib").symlink_to("/usr/lib")  # as on every merged-usr host; taken literally it leads out of the root
    with_files(tmp_path, *(place.format(release) for release in installed))
    need = ask("kernel", tmp_path, release=running)
    assert (need.answer, words in need.detail) == (answer, True), need


def test_a_kernel_with_modules_but_without_an_image_is_not_treated_as_installed(tmp_path: Path) -> None:
    """`dkms` and removed kernel packages leave folders with modules behind."""
    with_files(tmp_path, "/boot/vmlinuz-6.1.0-18-amd64", "/lib/modules/6.1.0-21-amd64/updates/dkms/x.ko")
    assert ask("kernel", tmp_path, release="6.1.0-18-amd64").answer is NO


def test_an_unreadable_folder_of_kernels_leaves_the_need_for_a_reboot_unknown(tmp_path: Path) -> None:
    with_files(tmp_path, "/boot")
    need = ask("kernel", tmp_path, release="6.1.0-18-amd64")
    assert (need.answer, "the installed kernels cannot be listed" in need.detail) == (UNKNOWN, True)


def test_the_suse_probe_checks_the_same_file_as_zypper(tmp_path: Path) -> None:
    """openSUSE/zypp-boot-plugin writes `/run/reboot-needed`. zypper's needs-rebooting.cc reads the same file through
    the link `/var/run`.
    """
    assert ask("suse", tmp_path).answer is UNKNOWN, "if /run is missing, the host's files may not be mounted"
    (tmp_path / "run").mkdir()
    assert ask("suse", tmp_path).answer is NO
    with_files(tmp_path, "/run/reboot-needed")
    assert ask("suse", tmp_path) == Need(answer=YES, detail="the sentinel file /run/reboot-needed exists")


@pytest.mark.parametrize(
    ("files", "answer", "words"),
    [
        # ostreedev/ostree, src/boot/ostree-finalize-staged.path: PathExists=/run/ostree/staged-deployment
        (["/run/ostree-booted", "/run/ostree/staged-deployment"], YES, "/run/ostree/staged-deployment"),
        (["/run/ostree-booted"], NO, "no OS deployment is staged"),
        # coreos/rpm-ostree, rpmostree-sysroot-core.h: _OSTREE_SYSROOT_RUNSTATE_STAGED_LOCKED
        (
            ["/run/ostree-booted", "/run/ostree/staged-deployment", "/run/ostree/staged-deployment-locked"],
            NO,
            "but locked, so a reboot would not start this deployment",
        ),
        # bootc-dev/bootc, its composefs backend: write_composefs_state
        (["/run/composefs/staged-deployment"], YES, "/run/composefs/staged-deployment"),
        (["/run/composefs/other"], NO, "no OS deployment is staged"),
        (["/run/other"], UNKNOWN, "no /run/ostree-booted"),
        ([], UNKNOWN, "no /run/ostree-booted"),
    ],
)
def test_the_staged_deployment_probe_tells_whether_a_staged_update_needs_a_reboot(
    tmp_path: Path, files: list[str], answer: NeedAnswer, words: str
) -> None:
    need = ask("staged-deployment", with_files(tmp_path, *files))
    assert (need.answer, words in need.detail) == (answer, True), need


def test_an_unreadable_staged_deployment_leaves_the_need_for_a_reboot_unknown(tmp_path: Path) -> None:
    need = ask("staged-deployment", with_files(tmp_path, "/run"))
    assert (need.answer, "the agent cannot look for a staged OS deployment" in need.detail) == (UNKNOWN, True)


@pytest.mark.parametrize(("uptime", "answer"), [(0.0, NO), (29.9 * 86400, NO), (30.0 * 86400, YES), (1e9, YES)])
def test_a_host_that_exceeds_its_maximum_uptime_needs_a_reboot(
    tmp_path: Path, uptime: float, answer: NeedAnswer
) -> None:
    need = ask("uptime", tmp_path, uptime=uptime, longest=30.0 * 86400)
    assert (need.answer, "30.0" in need.detail) == (answer, True), need
