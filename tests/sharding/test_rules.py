"""Shardy rules as users write them: a text or mappings, resolved to numbered factors of the arrays' dimensions."""
import numpy as np
import pytest

from hlotrace.sharding.rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, parsed

pytestmark = pytest.mark.quick


# a rule, shapes of operands and results, factors of their dimensions, sizes of the factors
@pytest.mark.parametrize("rule, shapes, outs, operands, results, sizes", [
    (parsed("i k, k j -> i j"), [(2, 3), (3, 4)], [(2, 4)], [[(0,), (1,)], [(1,), (2,)]], [[(0,), (2,)]], [2, 3, 4]),
    (parsed("... i -> ..."), [(5, 6, 7)], [(5, 6)], [[(0,), (1,), (2,)]], [[(0,), (1,)]], [5, 6, 7]),
    (parsed("... i -> ... i"), [(7,)], [(7,)], [[(0,)]], [[(0,)]], [7]),
    (parsed("i (j k) -> j i k"), [(3, 8)], [(2, 3, 4)], [[(0,), (1, 2)]], [[(1,), (0,), (2,)]], [3, 2, 4]),
    (parsed("->i"), [()], [(3,)], [[]], [[(0,)]], [3]),
    (SdyShardingRule([(BATCHING, "i")], [(BATCHING,)]), [(2, 3)], [(2,)], [[(0,), (1,)]], [[(0,)]], [2, 3]),
    (SdyShardingRule([ArrayMapping("i", CompoundFactor("j", "k"))], [("i",)], j=2, k=2), [(3, 4)], [(3,)],
     [[(0,), (1, 2)]], [[(0,)]], [3, 2, 2])])
def test_factors_are_numbered_in_the_order_of_their_first_use(rule, shapes, outs, operands, results, sizes):
    assert rule.resolved(shapes, outs)[:3] == (operands, results, sizes)
    for given, dims in zip((*shapes, *outs), (*operands, *results)):    # each dimension has the size of its factors
        assert [int(np.prod([sizes[f] for f in factors])) for factors in dims] == list(given)


def test_kinds_are_of_numbered_factors():
    rule = parsed("i k, k j -> i j", reduction_factors=("k",), need_replication_factors=("i",), permutation_factors=("j",))
    assert rule.resolved([(2, 3), (3, 4)], [(2, 4)])[3] == {"reduction": [1], "need_replication": [0], "permutation": [2]}


@pytest.mark.parametrize("make, words", [
    (lambda: ArrayMapping("i", BATCHING), "only be used at the beginning"), (lambda: ArrayMapping(3), "got 3"),
    (lambda: CompoundFactor("i", BATCHING), "Ellipsis can't be"),
    (lambda: CompoundFactor("1", "j"), "start with a letter"),
    (lambda: parsed("i -> i", i=4), "Factor i represents a whole dimension; do not specify its size"),
    (lambda: parsed("i -> i", reduction_factors="i"), "reduction_factors must be a tuple of factors"),
    (lambda: parsed("i -> i", reduction_factors=("i",), permutation_factors=("i",)), "can only be in one of"),
    (lambda: CompoundFactor("i"), "at least two"), (lambda: SdyShardingRule([("i",)], [("i",)], k=2), "a size is said"),
    (lambda: parsed("i -> i", permutation_factors=("z",)), "a permutation is said, is not in the sharding rule"),
    (lambda: parsed("((i j) k) -> i"), r"Unknown character '\('"), (lambda: parsed("i) -> i"), r"Unknown character '\)'"),
    (lambda: parsed("i j -> i").resolved([(2,)], [(2,)]), "0th operand has rank 2"),
    (lambda: parsed("... i j -> i").resolved([(2,)], [(2,)]), "0th operand has rank 2"),
    (lambda: parsed("i -> i").resolved([(2,)], []), "has 1 results, but the operation has 0")])
def test_what_is_no_rule(make, words):
    with pytest.raises(ValueError, match=words):
        make()
