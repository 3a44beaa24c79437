"""Integer arithmetic that all rooms share."""

from hypothesis import given
from hypothesis import strategies as st

from vdla.support.numbers import ceil_div


@given(st.integers(0, 10**6), st.integers(1, 10**4))
def test_groups_hold_all_things_and_one_fewer_does_not(a, b):
    groups = ceil_div(a, b)
    assert (groups - 1) * b < a <= groups * b or a == groups == 0
