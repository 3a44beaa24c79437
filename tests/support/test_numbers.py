"""Integer arithmetic that all rooms share."""

from hypothesis import given
from hypothesis import strategies as st

from vdla.support.numbers import ceil_div, divisors


@given(st.integers(0, 10**6), st.integers(1, 10**4))
def test_groups_hold_all_things_and_one_fewer_does_not(a, b):
    groups = ceil_div(a, b)
    assert (groups - 1) * b < a <= groups * b or a == groups == 0


@given(st.integers(1, 400), st.integers(1, 400))
def test_divisors_are_all_that_divide_up_to_a_bound(n, most):
    wanted = [d for d in range(1, n + 1) if n % d == 0]
    assert list(divisors(n)) == wanted
    assert list(divisors(n, most)) == [d for d in wanted if d <= most]
