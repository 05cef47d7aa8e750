"""A soft reboot restarts the host's processes and keeps the boot id. If careen is configured to count soft reboots, a
higher count proves that the node rebooted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.phases import Phase
from careen.core.facts.progress import SOFT_REBOOTS, boot_id_of, is_same_boot
from careen.core.facts.reasons import Code
from tests.careen.core.builders import (
    BOOT,
    NO,
    a_progress,
    ago,
    an_entry,
    decided,
    held,
    remembering,
    the_patch,
    the_record,
)

NONE, ONE, TWO = (f"{BOOT}{SOFT_REBOOTS}{count}" for count in range(3))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (BOOT, BOOT, True),
        (BOOT, "boot-9", False),
        (NONE, NONE, True),
        (NONE, ONE, False),
        (ONE, f"boot-9{SOFT_REBOOTS}1", False),
        (BOOT, ONE, True),  # the setting was switched on during a claim
        (TWO, BOOT, True),  # the setting was switched off during a claim
        (f"{BOOT}{SOFT_REBOOTS}", f"{BOOT}{SOFT_REBOOTS}", True),
        ("a+1", "a+2", False),  # a configured file may contain any text
    ],
)
def test_the_comparison_of_two_boot_ids_includes_their_counters_of_soft_reboots(
    one: str, other: str, is_same: bool
) -> None:
    assert (is_same_boot(one, other), is_same_boot(other, one)) == (is_same, is_same)
    assert boot_id_of(ONE) == BOOT


def rebooting(left: str, now: str, **changes: Any) -> Decision:
    return decided(a_progress(Phase.REBOOTING, boot_left=left, announced=ago(20, left)), boot_id=now, **changes)


def test_one_more_soft_reboot_is_treated_as_a_new_boot() -> None:
    made = rebooting(NONE, ONE)
    assert (made.phase, made.reason.code) == (Phase.VERIFYING, Code.REBOOTED)
    assert the_record(made).verify_started == ago(0, ONE)


@pytest.mark.parametrize(("left", "now"), [(NONE, NONE), (BOOT, ONE), (ONE, BOOT)])
def test_an_unchanged_counter_of_soft_reboots_or_a_changed_setting_does_not_prove_a_reboot(left: str, now: str) -> None:
    assert rebooting(left, now).phase is Phase.REBOOTING


def test_a_soft_reboot_is_verified_and_its_report_contains_the_proof() -> None:
    progress = a_progress(Phase.VERIFYING, boot_left=NONE, verify_started=ago(10, ONE))
    made = decided(progress, boot_id=ONE, need=NO)
    assert made.phase is Phase.SETTLING
    report = json.loads(the_patch(made).annotations[keys.LAST_REBOOT] or "")
    assert (report["proof"], report["bootLeft"], report["boot"]) == ("soft-reboots", NONE, ONE)


def test_the_report_of_a_full_reboot_contains_no_proof_of_a_soft_reboot() -> None:
    for left, now in (("boot-0", BOOT), (f"boot-0{SOFT_REBOOTS}3", NONE)):
        made = decided(a_progress(Phase.VERIFYING, boot_left=left, verify_started=ago(10, now)), boot_id=now, need=NO)
        assert "proof" not in json.loads(the_patch(made).annotations[keys.LAST_REBOOT] or "")


def test_a_claim_without_a_progress_record_is_taken_over_after_a_soft_reboot() -> None:
    started = {"need": NO, "memory": remembering(is_reconciled=False), "lock": held(an_entry(boot=NONE))}
    assert decided(boot_id=ONE, **started).reason.code is Code.ENTRY_ADOPTED
    assert decided(boot_id=NONE, **started).phase is not Phase.VERIFYING
