"""What a prompt and a notebook show of the library's values."""

from __future__ import annotations

from scheduler_core import Scheduler, load_objects, removable_nodes
from scheduler_core.sentences import html_table
from scheduler_core.testing.builders import a_node, a_pod, manifests

SNAPSHOT = load_objects(manifests(a_node("n1"), a_node("n2").cordoned(), a_pod("old").on("n1")))


def test_each_value_is_one_line_at_a_prompt() -> None:
    result = Scheduler().schedule(SNAPSHOT, a_pod("new").build())
    assert repr(SNAPSHOT) == "<Snapshot nodes=2 placed=1 pending=0 problems=0>"
    assert repr(Scheduler()) == "<Scheduler kube_version='1.36' profiles=default-scheduler>"
    assert repr(result) == "<CycleResult pod='default/new' node='n1'>"
    huge = Scheduler().schedule(SNAPSHOT, a_pod("big").requesting(cpu="99").build())
    assert repr(huge).startswith("<CycleResult pod='default/big' node=None, sentence='0/2 nodes are available: ")
    assert repr(removable_nodes(Scheduler(), SNAPSHOT)) == "<Removable nodes=['n2'] kept=1>"


def test_a_notebook_shows_a_table_of_the_verdicts_and_of_the_moves() -> None:
    shown = Scheduler().schedule(SNAPSHOT, a_pod("new").build())._repr_html_()
    assert "<tr><td>n2</td><td></td><td>NodeUnschedulable</td><td>node(s) were unschedulable</td></tr>" in shown
    assert "<td>n1</td><td></td><td></td><td>fits</td>" in shown
    assert "<td>n2</td><td>goes</td><td></td>" in removable_nodes(Scheduler(), SNAPSHOT)._repr_html_()


def test_a_table_escapes_texts_and_says_how_many_rows_it_leaves_out() -> None:
    shown = html_table(("a<b",), [("<script>",)] * 203)
    assert shown.startswith("<table><tr><th>a&lt;b</th></tr><tr><td>&lt;script&gt;</td></tr>")
    assert shown.endswith("</table><p>and 3 more</p>")
    assert "<script" not in shown
