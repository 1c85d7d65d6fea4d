"""Key paths, names of arguments, and the words for where two structures differ."""
import functools

import pytest
from containers import DD, OD, Fussy, Point, S, is_none

from hlotrace import tree, tree_util
from hlotrace.core.pytrees.pytree import arg_names, arg_paths, leaf_paths, prefix_errors, structure_mismatch
from hlotrace.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, Partial, SequenceKey, keystr

pytestmark = pytest.mark.quick


def test_keys_without_an_order_are_refused_with_path_and_types():
    for flatten in tree.flatten, tree.flatten_with_path, tree.leaves, tree.structure:
        words = r"dict at \[0\]\['p'\] cannot be sorted.*types int, str.*OrderedDict"
        with pytest.raises(ValueError, match=words):
            flatten([{"p": {1: 2, "a": 3}}])
    with pytest.raises(ValueError, match="cannot be sorted"):
        tree.flatten(DD(int, {1: 2, "a": 3}))
    assert tree.leaves(OD([(1, 2), ("a", 3)])) == [2, 3]


def test_one_level():
    assert tree_util.flatten_one_level({"b": 1, "a": [2]}) == (([2], 1), ("a", "b"))
    with_keys = tree_util.flatten_one_level_with_keys
    assert with_keys([5, [6]]) == (((SequenceKey(0), 5), (SequenceKey(1), [6])), None)
    assert with_keys(Point(5, None))[0] == ((GetAttrKey("x"), 5), (GetAttrKey("y"), None))
    assert with_keys(None) == ((), None)
    for one_level in tree_util.flatten_one_level, with_keys:
        with pytest.raises(ValueError, match="type: <class 'int'> is a pytree leaf"):
            one_level(3)
    nodes = (list, dict, tuple, type(None), OD, DD, Partial, Point)
    assert all(map(tree_util.is_tree_node, nodes)) and not tree_util.is_tree_node(int)


# Paths

def test_keys_and_keystr_print_as_in_jax():
    keys = (DictKey("a"), SequenceKey(1), GetAttrKey("x"), FlattenedIndexKey(3), DictKey((1, 2)), "z")
    assert list(map(str, keys)) == ["['a']", "[1]", ".x", "[<flat index 3>]", "[(1, 2)]", "z"]
    assert repr(keys[:4]) == ("(DictKey(key='a'), SequenceKey(idx=1), GetAttrKey(name='x'), "
                              "FlattenedIndexKey(key=3))")
    assert keystr(keys) == "['a'][1].x[<flat index 3>][(1, 2)]z"
    assert keystr(keys, simple=True, separator="/") == "a/1/x/3/(1, 2)/z"
    assert keystr(keys[:2], separator=" ") == "['a'] [1]"
    assert keystr(()) == ""
    match keys[0]:
        case DictKey(name):
            assert name == "a"


def test_leaf_paths_of_trees_and_treedefs():
    value = {"w": [1, Point(2, None)], "b": 3}
    assert leaf_paths(value) == leaf_paths(S(value)) == ["['b']", "['w'][0]", "['w'][1].x"]
    assert leaf_paths(value, is_leaf=lambda x: isinstance(x, list), prefix="p") == ["p['b']", "p['w']"]
    assert leaf_paths(S([Fussy(1)])) == ["[<flat index 0>]"]  # Fussy takes no placeholders


def f(params, x, /, y=0, *rest, scale=1.0, **more):
    return params, x, y, rest, scale, more


class Layer:
    def apply(self, x, y):
        return x, y


@pytest.mark.parametrize("fun, args, kwargs, names", [
    (f, ({"w1": [1, 2]}, 3), {"scale": 2.0}, ["params['w1'][0]", "params['w1'][1]", "x", "scale"]),
    (f, (1, 2, 3, [4], 5), {"z": (6,)}, ["params", "x", "y", "rest[0][0]", "rest[1]", "more['z'][0]"]),
    (f, (1, 2), {"y": 3, "x": 4}, ["params", "x", "more['x']", "y"]),
    (lambda x: x, (1, [2]), {"k": 3}, ["x", "args[1][0]", "kwargs['k']"]),
    (lambda a, *args: a, (1, 2), {}, ["a", "args[0]"]),
    (Layer().apply, (1,), {"y": 2}, ["x", "y"]),
    (functools.partial(f, 0), (1,), {}, ["x"]),
    (dict.fromkeys, ((1,), 2), {}, ["iterable[0]", "value"]),
    (min, (1, 2), {"key": 3}, ["args[0]", "args[1]", "kwargs['key']"]),
    (None, (1, None, 2), {}, ["args[0]", "args[2]"]),
])
def test_arg_paths_name_each_leaf_as_the_caller_would(fun, args, kwargs, names):
    assert arg_paths(fun, args, kwargs) == names


def test_arg_paths_never_raise():
    assert arg_paths(f, ({1: 1, "a": 2},), {}) == []
    assert arg_paths(f, (1,), {3: 1}) == ["params", "more[3]"]
    assert arg_paths(f, ()) == []
    import inspect
    assert arg_names(inspect.signature(f), 1, ["y"]) == (["params"], {"y": "y"})


def test_prefix_errors():
    assert prefix_errors([1, {"a": 2}], [(1, 2), {"a": [3]}]) == []
    assert prefix_errors([None, (1,)], [5, (1, 2)], is_leaf=is_none, names=("specs", "args")) == [
        "pytree structure error: different lengths of tuple at key path\n    the tree[1]\n"
        "At that key path, specs has a tuple of length 1, args has a tuple of length 2"]
    assert len(prefix_errors([(1,), (1,)], [(), ()])) == 2


def test_structure_mismatch_lists_the_places():
    names = ("the input carry", "the output carry")
    old, new = {"h": (1, 2), "n": 0, "s": [1]}, {"h": (1, 2, 3), "n": None, "t": [1]}
    text = structure_mismatch("scan: the carry changed its structure", old, new, names).split("\n")
    assert text == [
        "scan: the carry changed its structure:",
        "  the input carry has a dict with 3 keys, the output carry has a dict with 3 keys; "
        "only the input carry has 's'; only the output carry has 't' (Dict key mismatch)",
        "  at ['h']: the input carry has a tuple of length 2, the output carry has a tuple of length 3",
        "  at ['n']: the input carry has a leaf of type int, the output carry has None "
        "(None is an empty container, not a leaf)",
    ]
    assert structure_mismatch("w", S(old), S(new)).count("\n") == 3
    assert structure_mismatch("w", 1, [2]) == (
        "w:\n  the first has a leaf of type int, the second has a list of length 1")
    assert structure_mismatch("same", [1], [2]) == "same"


def test_long_reports_are_cut():
    text = structure_mismatch("w", [(1,)] * 20, [()] * 20)
    assert text.count("\n") == 9 and text.endswith("and at 12 more places")
    keys = structure_mismatch("w", {f"k{i}": 0 for i in range(9)}, {})
    assert "only the first has 'k0', 'k1', 'k2', 'k3' and 5 more" in keys
