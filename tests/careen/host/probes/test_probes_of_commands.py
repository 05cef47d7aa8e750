"""Tests probes that run a tool of the host: which output and exit codes of the tool mean that the host needs a reboot,
as the tool's source defines them."""

from __future__ import annotations

import pytest

from careen.core.facts.observation import NeedAnswer
from careen.host.commands import Exited, NotFollowed, NotStarted, Outcome, TimedOut
from careen.host.probes import PROBES, HostAccess, running

YES, NO, UNKNOWN = NeedAnswer.YES, NeedAnswer.NO, NeedAnswer.UNKNOWN

# rpm-software-management/dnf-plugins-core, plugins/needs_restarting.py: NeedsRestartingCommand.run. DNF 5 prints the
# same: rpm-software-management/dnf5, dnf5-plugins/needs_restarting_plugin/needs_restarting.cpp.
DNF_YES = """\
Core libraries or services have been updated since boot-up:
  * glibc
  * kernel-core
  * systemd

Reboot is required to fully utilize these updates.
More information: https://access.redhat.com/solutions/27943
"""
DNF_NO = """\
No core libraries or services have been updated since boot-up.
Reboot should not be necessary.
"""
# yum-utils of RHEL and CentOS 7, needs-restarting.py, as its users print it.
YUM_YES = """\
Core libraries or services have been updated:
  kernel -> 3.10.0-1160.25.1.el7
  openssl-libs -> 1:1.0.2k-21.el7_9

Reboot is required to ensure that your system benefits from these updates.

More information:
https://access.redhat.com/solutions/27943
"""
YUM_NO = """\
No core libraries or services have been updated.
Reboot is probably not necessary.
"""
# openSUSE/zypper, src/commands/needs-rebooting.cc: NeedsRebootingCmd::execute; ZYPPER_EXIT_INF_REBOOT_NEEDED is 102 in
# zypper(8). An unknown option or command exits with 2, a lock that is held with 7.
ZYPPER_YES = """\
Core libraries or services have been updated.
Reboot is required to ensure that your system benefits from these updates.
"""
# The lines of `update_engine_client -status`, which Chromium's autotest parses (client/common_lib/cros/autoupdater.py:
# check_update_status); the states are of update_engine's UpdateStatus and of flatcar/flatcar-linux-update-operator.
FLATCAR = """\
LAST_CHECKED_TIME=1695801200
PROGRESS=0.000000
CURRENT_OP={state}
NEW_VERSION={version}
NEW_SIZE=282041956
"""


def exited(code: int, output: str = "", errors: str = "") -> Outcome:
    # `host/commands.py` returns the output without white space at both ends.
    return Exited(code=code, output=output.strip(), errors=errors.strip())


@pytest.mark.parametrize(
    ("probe", "outcome", "answer", "words"),
    [
        (
            "needs-restarting",
            exited(1, DNF_YES),
            YES,
            "says that a reboot is required, for glibc, kernel-core, systemd",
        ),
        ("needs-restarting", exited(0, DNF_NO), NO, "says that no reboot is necessary"),
        ("needs-restarting", exited(1, YUM_YES), YES, "says that a reboot is required, for kernel, openssl-libs"),
        ("needs-restarting", exited(0, YUM_NO), NO, "says that no reboot is necessary"),
        # DNF exits with 1 for every error, and yum-utils for a traceback.
        ("needs-restarting", exited(1, "", "Error: Failed to download metadata for repo 'baseos'"), UNKNOWN, "baseos"),
        ("needs-restarting", exited(1, DNF_NO), UNKNOWN, "exited with 1 and did not say whether a reboot is needed"),
        ("needs-restarting", exited(0, DNF_YES), UNKNOWN, "exited with 0 and did not say whether a reboot is needed"),
        ("needs-restarting", exited(0), UNKNOWN, "the command printed nothing"),
        ("zypper", exited(102, ZYPPER_YES), YES, "exited with 102"),
        ("zypper", exited(0, "Reboot is probably not necessary."), NO, "exited with 0"),
        ("zypper", exited(2, "", "Unknown command 'needs-rebooting'"), UNKNOWN, "Unknown command"),
        ("zypper", exited(7, "", "System management is locked"), UNKNOWN, "exited with 7"),
        ("zypper", exited(1, ZYPPER_YES), UNKNOWN, "exited with 1"),
        (
            "flatcar",
            exited(0, FLATCAR.format(state="UPDATE_STATUS_UPDATED_NEED_REBOOT", version="3815.2.0")),
            YES,
            "version 3815.2.0",
        ),
        (
            "flatcar",
            exited(0, "CURRENT_OP=UPDATE_STATUS_UPDATED_NEED_REBOOT"),
            YES,
            "the update engine has written an update",
        ),
        ("flatcar", exited(0, FLATCAR.format(state="UPDATE_STATUS_IDLE", version="0.0.0")), NO, "UPDATE_STATUS_IDLE"),
        ("flatcar", exited(0, FLATCAR.format(state="UPDATE_STATUS_DOWNLOADING", version="1")), NO, "DOWNLOADING"),
        ("flatcar", exited(1, "CURRENT_OP=UPDATE_STATUS_UPDATED_NEED_REBOOT"), UNKNOWN, "exited with 1"),
        ("flatcar", exited(0, "CURRENT_OP="), UNKNOWN, "did not say"),
    ],
)
def test_each_tools_exit_code_and_output_say_whether_a_reboot_is_needed(
    probe: str, outcome: Outcome, answer: NeedAnswer, words: str
) -> None:
    need = running(probe).judge(outcome)
    assert (need.answer, words in need.detail) == (answer, True), need


COMMANDS = [name for name, reach in PROBES.items() if reach is HostAccess.COMMAND]


@pytest.mark.parametrize("probe", COMMANDS)
@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (exited(127, "", "env: 'x': No such file or directory"), "which the probe runs"),
        (exited(-9), "exited with -9"),
        (exited(137), "exited with 137"),
        (TimedOut(60.0), "did not end within 1m"),
        (NotStarted("nsenter: cannot open /proc/1/ns/mnt: Permission denied"), "Permission denied"),
        (NotFollowed("can't start new thread"), "can't start new thread"),
    ],
)
def test_a_tool_that_gives_no_result_leaves_the_need_for_a_reboot_unknown(
    probe: str, outcome: Outcome, words: str
) -> None:
    need = running(probe).judge(outcome)
    assert (need.answer, words in need.detail) == (UNKNOWN, True), need


def test_the_reason_lists_five_updated_packages_and_counts_the_rest() -> None:
    names = [f"  * package-{number}" for number in range(40)]
    output = "\n".join([DNF_YES.splitlines()[0], *names, "Reboot is required to fully utilize these updates."])
    detail = running("needs-restarting").judge(exited(1, output)).detail
    assert detail.endswith("for package-0, package-1, package-2, package-3, package-4 and 35 more")
