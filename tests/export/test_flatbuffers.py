"""Our FlatBuffers as the `flatbuffers` package reads them, and what it writes as we read it."""
import random

import flatbuffers
import numpy as np
import pytest
from flatbuffers import number_types
from flatbuffers.table import Table as Reader

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import export
from hlotrace.export.flatbuffers import Table, read, write

FLAGS = {"B": number_types.Uint8Flags, "H": number_types.Uint16Flags, "I": number_types.Uint32Flags,
         "Q": number_types.Uint64Flags, "d": number_types.Float64Flags}


def root(data):
    return Reader(data, flatbuffers.encode.Get(number_types.UOffsetTFlags.packer_type, data, 0))


def place(table, slot):
    """Where a slot of a table is, from the start of the buffer; None where it is not there."""
    offset = table.Offset(4 + 2 * slot)
    return table.Pos + offset if offset else None


def number(table, slot, kind):
    at = place(table, slot)
    return table.Get(FLAGS[kind], at), at


def vector(table, slot, kind):
    """The numbers of a vector, and where the first one is."""
    offset = table.Offset(4 + 2 * slot)
    at, flags = table.Vector(offset), FLAGS[kind]
    return [table.Get(flags, at + i * flags.bytewidth) for i in range(table.VectorLen(offset))], at


@pytest.mark.parametrize("kind", FLAGS)
@pytest.mark.parametrize("before", range(9))
def test_numbers_and_vectors_are_at_multiples_of_their_size(kind, before):
    """Whatever was written before them: `before` bytes and slots shift all that follows."""
    schema = Table(raw=bytes, text=str, flag="B", one=kind, many=[kind], inner=Table(small="B", one=kind))
    value = {"raw": b"x" * before, "text": "y" * (before // 2), "flag": 1, "one": 7, "many": [1, 2, 3],
             "inner": {"small": 5, "one": 9}}
    for left_out in ([], ["text"], ["flag", "text"], ["raw", "flag", "text"]):
        given = {k: v for k, v in value.items() if k not in left_out}
        table = root(write(given, schema))
        one, at_one = number(table, 3, kind)
        many, at_many = vector(table, 4, kind)
        inner = Reader(table.Bytes, table.Indirect(place(table, 5)))
        deep, at_deep = number(inner, 1, kind)
        assert (one, many, deep) == (7, [1, 2, 3], 9)
        size = FLAGS[kind].bytewidth
        assert [at_one % size, at_many % size, at_deep % size] == [0, 0, 0]
        assert (at_many - 4) % 4 == 0       # the length in front of them
        assert read(table.Bytes, schema)["many"] == [1, 2, 3]


def test_the_package_reads_strings_and_tables():
    schema = Table(text=str, words=[str], raw=bytes, tables=[Table(name=str, size="Q")], absent=str)
    table = root(write({"text": "grün", "words": ["", "b"], "raw": b"\0\1\2",
                        "tables": [{"name": "x", "size": 1 << 40}, {}]}, schema))
    assert table.String(place(table, 0)) == "grün".encode()
    words = table.Vector(table.Offset(6))
    assert [table.String(words + 4 * i) for i in range(table.VectorLen(table.Offset(6)))] == [b"", b"b"]
    assert vector(table, 2, "B")[0] == [0, 1, 2]
    first = Reader(table.Bytes, table.Indirect(table.Vector(table.Offset(10))))
    assert (first.String(place(first, 0)), number(first, 1, "Q")[0]) == (b"x", 1 << 40)
    assert place(table, 4) is None


@pytest.mark.parametrize("seed", range(4))
def test_what_the_package_writes_is_read(seed):
    chosen = random.Random(seed)
    numbers = [chosen.randrange(1 << 63) for _ in range(chosen.randrange(5))]
    text, small = "z" * chosen.randrange(9), chosen.randrange(200)
    builder = flatbuffers.Builder(0)
    where = builder.CreateNumpyVector(np.array(numbers, np.uint64))
    string = builder.CreateString(text)
    builder.StartObject(4)
    builder.PrependUint8Slot(0, small, 0)
    builder.PrependUOffsetTRelativeSlot(1, where, 0)
    builder.PrependUOffsetTRelativeSlot(2, string, 0)
    builder.PrependUint64Slot(3, 1 << 50, 0)
    builder.Finish(builder.EndObject())
    schema = Table(small="B", numbers=["Q"], text=str, large="Q")
    assert read(builder.Output(), schema) == {"small": small, "numbers": numbers, "text": text,
                                              "large": 1 << 50}


def test_the_package_reads_an_exported_function():
    def scaled(x):
        return 2 * x
    exported = export.export(jax.jit(scaled))(jax.ShapeDtypeStruct((3,), jnp.float32))
    table = root(bytes(exported.serialize()))
    assert table.String(place(table, 1)) == b"scaled"
    assert len(vector(table, 13, "B")[0]) == len(exported.mlir_module_serialized)
