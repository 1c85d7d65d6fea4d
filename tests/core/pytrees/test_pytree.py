"""Pytrees: flattening, mapping, registration, key paths, and what is said when structures differ."""
import collections
import copy
import dataclasses
import functools
import operator
import pickle

import numpy as np
import pytest
from containers import DD, OD, Fussy, Point, S, is_none

from hlotrace import tree, tree_util
from hlotrace.core.pytrees import pytree as core
from hlotrace.core.pytrees.pytree import flatten_axes, leaf_paths
from hlotrace.tree_util import DictKey, GetAttrKey, Partial, SequenceKey, keystr

pytestmark = pytest.mark.quick


def collect(*args, **kwargs):
    return args, kwargs


@tree_util.register_pytree_with_keys_class
class Pair:
    def __init__(self, a, b, tag=None):
        self.a, self.b, self.tag = a, b, tag

    def tree_flatten_with_keys(self):
        return ((GetAttrKey("a"), self.a), (GetAttrKey("b"), self.b)), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(*children, tag)


# Flattening

ROUND_TRIPS = [
    (3, [3]),
    (None, []),
    ((), []),
    ([1, (2, [3, None])], [1, 2, 3]),
    ({"b": 1, "a": 2}, [2, 1]),
    (OD([("b", 1), ("a", 2)]), [1, 2]),
    (DD(list, {"b": 1, "a": 2}), [2, 1]),
    (Point(1, [2]), [1, 2]),
    ({2: "two", 1: {"x": "one"}}, ["one", "two"]),
]


@pytest.mark.parametrize("value, leaves", ROUND_TRIPS, ids=repr)
def test_flatten_gives_leaves_in_order_and_unflatten_the_same_value(value, leaves):
    found, treedef = tree.flatten(value)
    assert found == leaves == tree.leaves(value)
    back = tree.unflatten(treedef, found)
    assert back == value and type(back) is type(value)
    assert [leaf for _, leaf in tree.leaves_with_path(value)] == leaves
    assert tree.flatten_with_path(value)[1] == treedef == tree.structure(value)


def test_defaultdict_keeps_its_factory_and_ordereddict_its_order():
    assert tree.map(lambda x: x, DD(list, a=1)).default_factory is list
    assert S(DD(list, a=1)) != S(DD(int, a=1))
    assert list(tree.map(lambda x: x, OD(b=1, a=2))) == ["b", "a"]
    assert S(OD(a=1, b=1)) != S(OD(b=1, a=1))


@pytest.mark.parametrize("kind, value", [(dict, {"a": 1}), (list, [1]), (tuple, (1,))])
def test_subclasses_of_containers_are_leaves_until_registered(kind, value):
    sub = type("Sub", (kind,), {})(value)
    assert tree.leaves(sub) == [sub] and S(sub) == S(0)


def test_a_namedtuple_class_may_be_registered_with_functions_of_its_own():
    class Sized(collections.namedtuple("Sized", "value size")):
        pass
    tree_util.register_pytree_node(Sized, lambda s: ((s.value,), s.size), lambda size, xs: Sized(xs[0], size))
    assert tree.leaves(Sized(1, 2)) == [1]
    assert tree.map(operator.neg, Sized(1, 2)) == Sized(-1, 2)


def test_is_leaf_stops_the_descent():
    value = [1, (2, 3), None]
    assert tree.leaves(value, is_leaf=lambda x: isinstance(x, tuple)) == [1, (2, 3)]
    assert tree.leaves(value, is_leaf=is_none) == [1, 2, 3, None]
    assert tree.leaves_with_path(value, is_leaf=lambda path, x: len(path) == 1, is_leaf_takes_path=True) == [
        ((SequenceKey(0),), 1), ((SequenceKey(1),), (2, 3)), ((SequenceKey(2),), None)]
    assert tree.leaves_with_path({"a": [1]}, lambda x: isinstance(x, list)) == [((DictKey("a"),), [1])]


def test_a_tree_that_contains_itself_is_a_recursion_error():
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError, match="contains itself"):
        tree.flatten(loop)


def test_errors_of_a_users_own_functions_come_through():
    class Broken(Exception):
        pass

    def fail(*_):
        raise Broken
    for call in (lambda: tree.leaves([1], is_leaf=fail), lambda: tree.map(fail, [1]),
                 lambda: tree.map(fail, [1], [2]), lambda: tree.map_with_path(fail, [1])):
        with pytest.raises(Broken):
            call()


def test_unflatten_checks_its_arguments():
    with pytest.raises(ValueError, match="expected 2, got 1"):
        tree.unflatten(S([0, 0]), [1])
    with pytest.raises(ValueError, match="expected 2"):
        tree.unflatten(S([0, 0]), [1, 2, 3])
    with pytest.raises(TypeError, match="first argument is of type list"):
        tree.unflatten([1, 2], S([0, 0]))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_treedefs_and_partials_can_be_pickled(protocol):
    for value in ([1, {"a": (2, None)}], OD(a=1), Point(1, 2)):
        treedef = S(value)
        back = pickle.loads(pickle.dumps(treedef, protocol))
        assert back == treedef and hash(back) == hash(treedef)
        assert tree.unflatten(back, tree.leaves(value)) == value
    assert copy.deepcopy(treedef) == treedef
    again = pickle.loads(pickle.dumps(Partial(functools.partial(collect, 1), 2, k=3), protocol))
    assert type(again) is Partial and again() == ((1, 2), {"k": 3}) and tree.leaves(again) == [2, 3]


# Mapping and reducing

def test_map_over_several_trees_gives_f_the_subtrees_of_the_later_ones():
    assert tree.map(operator.add, {"a": [1, 2]}, {"a": [10, 20]}) == {"a": [11, 22]}
    assert tree.map(lambda a, b: (a, b), [1, 2], [(3, 4), {"k": 5}]) == [(1, (3, 4)), (2, {"k": 5})]
    assert tree.map(lambda a, b, c: a + b + c, (1,), (2,), (3,)) == (6,)
    assert tree.map(lambda a, b: (a, b), [None, 1], [2, 3], is_leaf=is_none) == [(None, 2), (1, 3)]


def test_map_with_path_gives_the_path_first():
    assert tree.map_with_path(lambda p, x, y: (keystr(p), x, y), {"a": [1, 2]}, {"a": [3, (4, 5)]}) == {
        "a": [("['a'][0]", 1, 3), ("['a'][1]", 2, (4, 5))]}


@pytest.mark.parametrize("first, second, words", [
    ((1, 2), (1, 2, 3), r"the first tree has a tuple of length 2, tree 2 has a tuple of length 3"),
    ({"w": 1, "v": 2}, {"w": 1, "b": 2}, r"only the first tree has 'v'; only tree 2 has 'b'"),
    ({"a": [1]}, {"a": (1,)}, r"tree\['a'\]\n.*the first tree has a list of length 1, tree 2 has a tuple"),
    ([None], [1], r"tree\[0\]\n.*the first tree has None, tree 2 has a leaf of type int \(None is an empty"),
    ({"a": 1}, OD(a=1), r"tree 2 has an OrderedDict with 1 key"),
    (Point(1, {"z": 2}), Point(1, 5), r"tree\.y\n.*the first tree has a dict with 1 key, tree 2 has a leaf"),
    (Pair(1, 2, "l"), Pair(1, 2, "r"), "static data 'l', tree 2 has a Pair .* with static data 'r'"),
])
def test_a_mismatch_in_map_says_where_and_how(first, second, words):
    with pytest.raises(ValueError, match=rf"^tree.map: tree 2 does not have [\s\S]*{words}"):
        tree.map(lambda a, b: a, first, second)
    with pytest.raises(ValueError, match=rf"^tree.map_with_path: tree 2 does not have [\s\S]*{words}"):
        tree.map_with_path(lambda p, a, b: a, first, second)
    with pytest.raises(ValueError, match="tree 3 does not"):
        tree.map(lambda a, b, c: a, first, first, second)


def test_reduce_and_all():
    assert tree.reduce(operator.sub, [1, 2, (3,)]) == -4
    assert tree.reduce(lambda a, b: (a, b), [1], None) == (None, 1)
    assert tree.all([True, 1]) and tree.all([]) and not tree.all([True, {"a": 0}])
    with pytest.raises(TypeError, match="initial"):
        tree.reduce(operator.add, [])


def test_reduce_associative_is_a_balanced_tree_of_calls():
    join = lambda a, b: f"({a}{b})"
    assert tree.reduce_associative(join, [1, 2, 3, (4, 5, 6, 7)]) == "((1(23))((45)(67)))"
    assert tree.reduce_associative(join, [1], identity="i") == 1
    assert tree.reduce_associative(join, [], identity="i") == "i"
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(join, [])


def test_transpose_swaps_outer_and_inner():
    value = [(1, 2, 3), (4, 5, 6)]
    assert tree.transpose(S([0, 0]), S((0, 0, 0)), value) == ([1, 4], [2, 5], [3, 6])
    assert tree.transpose(S([0, 0]), None, value) == ([1, 4], [2, 5], [3, 6])
    assert tree.transpose(S([]), S((0, {"a": 0})), []) == ([], {"a": []})
    assert tree.transpose(S([0]), S(()), [()]) == ()
    with pytest.raises(TypeError, match=r"at \[1\]: .* of length 3, the given tree has a tuple of length 2"):
        tree.transpose(S([0, 0]), None, [(1, 2, 3), (4, 5)])
    with pytest.raises(ValueError, match="inner_treedef must be given"):
        tree.transpose(S([]), None, [])


class Flat:
    """Holds the leaves of a tree, and its structure as its own data."""

    def __init__(self, value, structure=None):
        self.leaves, self.structure = (value, structure) if structure else tree.flatten(value)


tree_util.register_pytree_node(Flat, lambda f: (f.leaves, f.structure), lambda structure, xs: Flat(list(xs), structure))


def test_transpose_of_a_class_that_holds_its_leaves_flat():
    outer, inner = S(Flat({"a": 0, "b": 0})), S([0, 0])
    first, second = tree.transpose(outer, inner, Flat({"a": [1, 2], "b": [3, 4]}))
    assert (first.leaves, second.leaves) == ([1, 3], [2, 4]) and first.structure == S({"a": 0, "b": 0})
    for wrong in Flat({"a": [1], "b": [2]}), [1, 2, 3, 4]:
        with pytest.raises(TypeError, match="not an outer tree"):
            tree.transpose(outer, inner, wrong)


def test_broadcast_repeats_each_leaf_of_a_prefix():
    assert tree.broadcast([1, 2], [(7, 8), {"a": 9}]) == [(1, 1), {"a": 2}]
    assert tree.broadcast([None, 2], [None, {"a": 3}]) == [None, {"a": 2}]
    assert tree.broadcast([None, 2], [(1, 2), {"a": 3}], is_leaf=is_none) == [(None, None), {"a": 2}]
    assert tree.broadcast(1, [None, 2], is_leaf=is_none) == [None, 1]  # is_leaf is for the prefix
    assert core.broadcast_prefix(0, [1, None, (2,)]) == [0, 0]
    with pytest.raises(ValueError, match=r"prefix_tree\['k'\]\n.* a list of length 2, the value has a list of"):
        tree.broadcast({"k": [1, 2]}, {"k": [1, 2, 3]})


# Structures

def test_treedef_helpers():
    assert tree_util.treedef_children(S([1, (2, 3)])) == [S(0), S((0, 0))]
    assert tree_util.treedef_tuple(S(x) for x in (1, [1])) == S((1, [1]))
    assert [tree_util.treedef_is_leaf(S(x)) for x in (1, None, [], [1])] == [True, True, True, False]
    assert [tree_util.treedef_is_strict_leaf(S(x)) for x in (1, None, [], [1])] == [True, False, False, False]
    assert tree_util.build_tree(S({"a": 0, "b": [0]}), [1, [2]]) == {"a": 1, "b": [2]}
    assert str(S([1, None, {"a": (2, Point(3, 4))}])) == (
        "PyTreeDef([*, None, {'a': (*, CustomNode(namedtuple[Point], [*, *]))}])")
    assert isinstance(S(0), tree_util.PyTreeDef)


def test_all_leaves():
    assert tree_util.all_leaves([1, "a", np.zeros(2)]) and tree_util.all_leaves([])
    assert not tree_util.all_leaves([1, [2]]) and not tree_util.all_leaves([None])
    assert tree_util.all_leaves([1, [2]], is_leaf=lambda x: isinstance(x, list))
    assert not tree_util.all_leaves([1, (2,)], is_leaf=lambda x: isinstance(x, list))


# Registration

def test_register_pytree_node_with_and_without_keys():
    class Box:
        def __init__(self, *items):
            self.items = items
    unflatten = lambda _, xs: Box(*xs)
    tree_util.register_pytree_node(Box, lambda b: (b.items, None), unflatten)
    assert leaf_paths({"k": Box(1, [2])}) == ["['k'][<flat index 0>]", "['k'][<flat index 1>][0]"]
    assert tree.map(operator.neg, Box(1, 2)).items == (-1, -2)

    class Named(Box):
        pass
    assert tree.leaves(box := Named(1)) == [box]  # a subclass is not registered with its base
    tree_util.register_pytree_with_keys(Named, lambda b: (enumerate(b.items), None), unflatten)
    assert tree.leaves_with_path(Named(7, 8)) == [((0,), 7), ((1,), 8)]
    assert tree.leaves(Named(7, 8)) == [7, 8]


def test_register_by_class_methods():
    assert leaf_paths([Pair(1, {"k": 2})]) == ["[0].a", "[0].b['k']"]
    assert tree.map(operator.neg, Pair(1, 2, "t")).tag == "t"
    assert S(Pair(1, 2, "s")) != S(Pair(1, 2, "t"))
    assert tree.leaves(Fussy(1)) == [1.0]
    for register in tree_util.register_pytree_node_class, tree_util.register_pytree_with_keys_class:
        with pytest.raises(AttributeError, match="needs a method `tree_flatten"):
            register(type("Bare", (), {"tree_unflatten": None}))


def test_register_static_makes_an_instance_part_of_the_structure():
    @tree_util.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str
    assert tree.leaves([Mode("a"), 1]) == [1]
    assert S(Mode("a")) == S(Mode("a")) != S(Mode("b"))
    assert tree.map(operator.neg, [Mode("a"), 1]) == [Mode("a"), -1]


def test_wrong_registrations():
    with pytest.raises(ValueError, match="Duplicate.*Pair"):
        tree_util.register_static(Pair)
    with pytest.raises(TypeError, match="only a class"):
        tree_util.register_pytree_node(3, lambda x: ((), None), lambda a, c: 3)


def test_register_dataclass_reads_the_fields_off_the_class():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Model:
        w: list
        n: int = tree.static(default=4, metadata={"unit": "m"})
    assert dataclasses.fields(Model)[1].metadata == {"unit": "m", "static": True}
    assert tree.leaves(Model([1, 2])) == [1, 2]
    assert leaf_paths(Model([1, 2])) == [".w[0]", ".w[1]"]
    assert tree.map(operator.neg, Model([1], 5)) == Model([-1], 5)
    assert S(Model([1], 5)) != S(Model([1], 6))


def test_register_dataclass_with_named_fields():
    @functools.partial(tree_util.register_dataclass,
                       data_fields=["w"], meta_fields=["n"], drop_fields=["cache"])
    @dataclasses.dataclass
    class Model:
        w: float
        n: int
        cache: object = None
    assert tree.leaves(Model(1, 2, 3)) == [1]
    assert tree.map(operator.neg, Model(1, 2, 3)) == Model(-1, 2, None)

    class Plain:
        def __init__(self, a, b):
            self.a, self.b = a, b
    assert tree_util.register_dataclass(Plain, ["a"], ["b"]) is Plain
    assert tree.leaves(Plain(1, 2)) == [1]


@pytest.mark.parametrize("kwargs, error, words", [
    (dict(data_fields=["w"]), TypeError, "data_fields and meta_fields must both be specified"),
    (dict(data_fields=["w"], meta_fields=[]), ValueError, r"Missing fields: {'n'}"),
    (dict(data_fields=["w", "q"], meta_fields=["n"]), ValueError, r"Unexpected fields: {'q'}"),
    (dict(data_fields=["w", "n"], meta_fields=["n"]), ValueError, r"must not overlap. Overlapping fields: \{'n'\}"),
    (dict(data_fields=["w"], meta_fields=["n"], drop_fields=["n"]), ValueError, r"Unexpected fields: {'n'}"),
])
def test_register_dataclass_refuses_fields_that_do_not_fit(kwargs, error, words):
    cls = dataclasses.make_dataclass("Model", [("w", float), ("n", int)])
    with pytest.raises(error, match=words):
        tree_util.register_dataclass(cls, **kwargs)
    tree_util.register_dataclass(cls)  # nothing was left half registered


def test_register_dataclass_needs_names_for_what_init_does_not_take_or_what_is_no_dataclass():
    fields = [("w", float), ("cache", float, dataclasses.field(init=False, default=0.))]
    cls = dataclasses.make_dataclass("Model", fields)
    with pytest.raises(ValueError, match=r"Unexpected fields: {'cache'}"):
        tree_util.register_dataclass(cls)
    assert tree.leaves(tree_util.register_dataclass(cls, drop_fields=["cache"])(1.)) == [1.]
    with pytest.raises(TypeError, match="not a dataclass"):
        tree_util.register_dataclass(type("Plain", (), {}))


def test_a_second_registry_can_follow_ours():
    other = core.pytree.PyTreeRegistry(enable_none=True, enable_tuple=True, enable_namedtuple=True,
                                       enable_list=True, enable_dict=True)
    before = len(core._registries)
    core.mirror(other)
    try:
        later = tree_util.register_static(type("Later", (), {}))
        assert other.flatten([OD(a=1), Pair(2, 3), later()])[0] == [1, 2, 3]
    finally:
        del core._registries[before:]


# Partial

def test_partial_is_a_tree_of_its_arguments():
    p = Partial(collect, 1, k=[2])
    assert tree.leaves(p) == [1, 2] and p(3) == ((1, 3), {"k": [2]})
    assert leaf_paths(p) == ["[<flat index 0>][0]", "[<flat index 1>]['k'][0]"]
    q = tree.map(operator.neg, p)
    assert type(q) is Partial and (q.func, q.args, q.keywords) == (collect, (-1,), {"k": [-2]})
    assert S(p) == S(q) != S(Partial(print, 1, k=[2]))
    with pytest.raises(TypeError, match="callable"):
        Partial(3)


def test_partial_of_a_partial_keeps_the_inner_arguments_static():
    inner = functools.partial(collect, 1)
    p = Partial(inner, 2)
    assert tree.leaves(p) == [2] and p(3) == ((1, 2, 3), {})
    assert S(p) == S(Partial(inner, 5))
    assert tree.leaves(Partial(Partial(collect, 1), self=2)) == [2]


# Prefixes and mismatches

@pytest.mark.parametrize("axes, value, flat", [
    (0, (1, {"a": 2}), [0, 0]),
    (None, (1, 2), [None, None]),
    ((0, None), ((1, 2), [3]), [0, 0, None]),
    ((0, {"a": None, "b": 1}), (1, {"a": [2, 3], "b": 4}), [0, None, None, 1]),
    ((0, None), (1, None), [0]),
    ((0, (1, 2)), (1, (None, 5)), [0, 2]),
    (Point(0, 1), Point(5, (6, 7)), [0, 1, 1]),
    ([0, 1], [[Fussy(1)], Fussy(2)], [0, 1]),
    ((), (), []),
])
def test_flatten_axes_repeats_each_axis_over_what_it_covers(axes, value, flat):
    assert flatten_axes("vmap in_axes", S(value), axes) == flat


@pytest.mark.parametrize("axes, value, words", [
    (({"a": 0}, 0), ({"b": 1}, 2), r"in_axes\[0\]\n.*; only vmap in_axes has 'a'; only the value has 'b'"),
    (([0, 0], 0), ((1, 2), 3), r"in_axes\[0\]\n.*vmap in_axes has a list of length 2, the value has a tuple of"),
    ((0, 0, 0), (1, 2), r"vmap in_axes has a tuple of length 3, the value has a tuple of length 2"),
    (((0, None),), ({"x": 1},), r"in_axes\[0\]\n.*vmap in_axes has a tuple of length 2, the value has a dict"),
    (((0,),), (1,), r"in_axes\[0\]\n.*vmap in_axes has a tuple of length 1, the value has a leaf"),
    (((0,),), (None,), r"the value has None \(None is an empty container"),
    ((0, 0), (Fussy(1),), r"vmap in_axes is PyTreeDef\(\(\*, \*\)\)"),
])
def test_flatten_axes_names_the_place_that_does_not_fit(axes, value, words):
    with pytest.raises(ValueError, match=rf"^vmap in_axes specification must be a tree prefix of [\s\S]*{words}"):
        flatten_axes("vmap in_axes", S(value), axes)


def test_public_names_are_the_same_functions():
    assert tree.map.__name__ == "map" and tree_util.tree_map.__name__ == "tree_map"
    assert tree.flatten.__code__ is tree_util.tree_flatten.__code__
    for name in ("tree_all", "tree_broadcast", "tree_flatten_with_path", "tree_leaves_with_path", "tree_reduce",
                 "tree_reduce_associative", "tree_structure", "tree_transpose"):
        short = getattr(tree, name.removeprefix("tree_"))
        assert short.__code__ is getattr(tree_util, name).__code__ and f"tree_{short.__name__}" == name
    assert tree_util.default_registry is core.registry
    for module in tree, tree_util:
        assert all(hasattr(module, name) for name in module.__all__)


def test_partials_of_equal_functions_are_equal():
    assert Partial(max, 1, key=len) == Partial(max, 1, key=len) and hash(Partial(max, 1)) == hash(Partial(max, 1))
    assert Partial(max, 1) != Partial(max, 2) and Partial(max) != Partial(min) and Partial(max, 1) != Partial(max, key=1)
    array = np.arange(2)
    assert Partial(max, array) == Partial(max, array) and Partial(max, array) != Partial(max, array.copy())
    assert isinstance(hash(Partial(max, array)), int)
