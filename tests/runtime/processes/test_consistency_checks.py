"""What processes say to each other of the programs that they start, and what one concludes from what another
says.

Two processes are two worlds here, in one, over one store of keys and values; tests of real ones are in
test_membership.py.
"""
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import hlotrace as jax
from hlotrace.core.config import override
from hlotrace.runtime import binding
from hlotrace.runtime.devices import client
from hlotrace.runtime.processes import consistency_checks
from hlotrace.runtime.processes.consistency_checks import (
    Company, company_of, contradiction, counts, missed, progress, strayed)

pytestmark = pytest.mark.quick


class Store:
    """The coordination service's keys and values."""

    def __init__(self):
        self.values, self.changed = {}, threading.Condition()

    def key_value_set(self, key, value, allow_overwrite=False):
        with self.changed:
            assert allow_overwrite or key not in self.values
            self.values[key] = value
            self.changed.notify_all()

    def key_value_increment(self, key, by):
        with self.changed:
            self.values[key] = self.values.get(key, 0) + by
            return self.values[key]

    def key_value_dir_get(self, folder):
        return [(key, value) for key, value in self.values.items() if key.startswith(folder)]

    def key_value_try_get(self, key):
        return self.values[key]

    def key_value_delete(self, key):
        for each in [k for k in self.values if k.startswith(key)]:
            del self.values[each]

    def blocking_key_value_get(self, key, milliseconds):
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.values, milliseconds / 1000):
                raise binding.JaxRuntimeError("DEADLINE_EXCEEDED")
            return self.values[key]


def worlds(*processes, store=None):
    """A world for each process, each in the one company of them all."""
    made = [SimpleNamespace(process_id=i, companies={}, client=store) for i in processes]
    for world in made:
        world.companies[processes] = Company(world, processes)
    return made


def ran(world, *names):
    """The world's process has started programs of these names, known before."""
    company, = world.companies.values()
    for name in names:
        company._step(name, sum(map(ord, name)))


def executable(name, text="", ids=(0, 1)):
    program = SimpleNamespace(name=name, in_avals=[jax.typeof(np.ones(3, np.float32))])
    return SimpleNamespace(lowered=SimpleNamespace(jaxpr=program, text=text), agreed=None,
                           devices=[SimpleNamespace(id=i) for i in ids])


def together(*calls):
    """What calls in threads of their own return, or the errors that they raise."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except RuntimeError as error:
            results[i] = error
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return results


def companies(store):
    return [world.companies[0, 1] for world in worlds(0, 1, store=store)]


# --- before a program runs for the first time

def test_the_same_programs_are_agreed_on_once():
    store = Store()
    pair = companies(store)
    programs = [executable("f", "text loc(#loc1)\n#loc1 = x\n"),
                executable("f", "text loc(#loc7)\n#loc7 = y\n")]
    assert together(*(lambda c=c, p=p: c.start(p) for c, p in zip(pair, programs))) == [None, None]
    assert programs[0].agreed == programs[1].agreed is not None     # where lines are does not matter
    before = dict(store.values)
    again = executable("f", "text\n")
    pair[0].start(again)
    # nothing is asked for what is known
    assert again.agreed == programs[0].agreed and store.values == before
    assert [c.count for c in pair] == [2, 1] and pair[0].last == "f"


@pytest.mark.parametrize("one, other, words", [
    (executable("f", "f\nb"), executable("g", "g\nb"),
     r"process 0 runs f\(float32\[3\]\) over devices 0, 1 .*process 1 runs g\("),
    (executable("f", "a\nb\nc"), executable("f", "a\nB\nc"),
     "differ first in `b` of process 0 and `B` of process 1"),
    (executable("f", "a"), executable("f", "a", (0, 2)), r"over devices 0, 1 .*over devices 0, 2")])
def test_programs_that_differ_are_refused_in_all_processes(one, other, words):
    errors = together(*(lambda c=c, p=p: c.start(p) for c, p in zip(companies(Store()), (one, other))))
    for error in errors:
        with pytest.raises(RuntimeError,
                           match=f"(?s)as number 1 of what processes 0, 1 do together.*{words}"):
            raise error


def test_values_that_differ_are_refused_by_name():
    errors = together(*(lambda c=c, x=x: c.same("a value", ["same" * 4, x * 16], lambda: ["w", "b"])
                        for c, x in zip(companies(Store()), "xy")))
    for error in errors:
        with pytest.raises(RuntimeError,
                           match=f"`b of digest {'x' * 16}` of process 0 and `b of digest {'y' * 16}`"):
            raise error


def test_without_checks_programs_are_only_counted():
    company = companies(None)[0]
    with override("hlotrace_check_processes", False):
        company.start(executable("f"))
    assert (company.count, company.last) == (1, "f")


# --- what others say

def waiting(processes, number, words="runs f()"):
    return json.dumps([processes, number, words])


def test_what_another_waits_for_and_will_not_come():
    world, _ = worlds(0, 1)
    ran(world, "f", "g")
    assert contradiction(world, 1, waiting([0, 1], 3)) is None          # this one may come there
    assert contradiction(world, 1, waiting([1, 2], 1)) is None          # no business of this one
    assert "something that had run before; it is at number 2, g" in contradiction(world, 1,
                                                                                  waiting([0, 1], 2))
    company, = world.companies.values()
    # it was compared, and is being waited for
    company.met.add(2)
    assert contradiction(world, 1, waiting([0, 1], 2)) is None
    company.waits = "runs h()"
    assert contradiction(world, 1,
                         waiting([0, 1, 2], 1)).endswith("process 0 runs h(): each waits for the other")
    # who waits for a company without this other
    assert contradiction(world, 5, waiting([0, 5], 1)) is None


def test_who_leaves_early_is_missed():
    here, leaving = worlds(0, 1)
    ran(leaving, "f")
    said = counts(leaving)
    ran(here, "f")
    assert missed(here, 1, said) is None
    ran(here, "g")
    assert "when 1 programs had run on processes 0, 1, and process 0 is at number 2, g" in missed(here, 1,
                                                                                                  said)
    assert missed(here, 2, said) is None                                # a process that it does nothing with


@pytest.mark.parametrize("mine, theirs, differ", [
    ("fgh", "fgh", False), ("fgh", "fg", False), ("fg", "fgh", False), ("fgh", "fxh", True),
    ("fgh", "gf", True)])
def test_programs_in_another_order_are_seen(mine, theirs, differ):
    here, other = worlds(0, 1)
    ran(here, *mine)
    ran(other, *theirs)
    found = strayed(here, 1, counts(other))
    assert (found is not None) == differ
    if differ:
        assert f"numbers 1 to {len(theirs)} of" in found and f"at number 3, {mine[-1]}" in found


def test_what_is_said_early_is_checked_when_it_is_reached():
    here, other = worlds(0, 1)
    ran(other, "f", "g")
    assert strayed(here, 1, counts(other)) is None
    ran(here, "f", "x")
    assert "were not the same" in strayed(here, 1, "{}")


def test_the_first_process_says_how_far_it_is_when_that_is_news():
    first, second = worlds(0, 1)
    assert progress(first) is None
    ran(first, "f")
    ran(second, "f")
    assert json.loads(progress(first)) == json.loads(counts(first))
    assert progress(first) is None and progress(second) is None


def test_whose_company_devices_are(monkeypatch):
    devices = [SimpleNamespace(process_index=i) for i in (1, 0, 1)]
    assert company_of(devices) is None                  # one process alone
    world, = worlds(0)
    monkeypatch.setattr(client, "world", world)
    company = company_of(devices)
    assert company.processes == (0, 1) and company_of(devices[::-1]) is company
    assert company_of(devices[1:2]) is None             # it does that alone
    assert company_of([SimpleNamespace(process_index=i) for i in (1, 2)]) is None
    assert consistency_checks.Company(world, (0, 1)).key == company.key != Company(world, (0, 2)).key
