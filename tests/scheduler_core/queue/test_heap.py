"""Tests the heap: it returns the smallest item first, finds items by key, and keeps the order of Go's
container/heap."""

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.queue.heap import KeyedHeap

Item = tuple[str, int]


def heap_of(*items: Item) -> KeyedHeap[Item]:
    heap: KeyedHeap[Item] = KeyedHeap(lambda item: item[0], lambda one, other: one[1] < other[1])
    for item in items:
        heap.put(item)
    return heap


def drained(heap: KeyedHeap[Item]) -> list[Item]:
    items = []
    while (item := heap.pop()) is not None:
        items.append(item)
    return items


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 5), st.booleans()), max_size=60))
def test_the_heap_returns_items_in_order_after_any_changes(steps: list[tuple[str, int, bool]]) -> None:
    heap, model = heap_of(), {}
    for key, rank, removes in steps:
        if removes:
            assert heap.remove(key) == (None if key not in model else (key, model.pop(key)))
        else:
            heap.put((key, rank))
            model[key] = rank
    assert {key: heap.get(key) for key in model} == {key: (key, rank) for key, rank in model.items()}
    assert len(heap) == len(model)
    assert [rank for _, rank in drained(heap)] == sorted(model.values())


def test_the_heap_returns_equal_items_in_gos_order() -> None:
    # container/heap: the last item takes the place of the first, so equals do not come out first in, first out.
    assert [key for key, _ in drained(heap_of(*((key, 1) for key in "abcdef")))] == ["a", "f", "e", "d", "c", "b"]


def test_an_empty_heap_returns_none() -> None:
    heap = heap_of()
    assert (heap.pop(), heap.peek(), heap.get("a"), heap.remove("a"), len(heap)) == (None, None, None, None, 0)


def test_an_item_that_takes_the_place_of_a_removed_one_in_another_branch_moves_up() -> None:
    heap = heap_of(("a", 0), ("b", 10), ("c", 1), ("d", 11), ("e", 12), ("f", 2), ("g", 3))
    heap.remove("d")
    assert [number for _, number in heap] == [0, 3, 1, 10, 12, 2]
