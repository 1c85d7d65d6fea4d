"""Jobs in which a process is killed, or does something else than the others: all of them end."""

import re
import signal
import sys
import threading
import time

import numpy as np
import pytest
from job_of_processes import HEARTBEAT, Job, on, run_task, table

import hlotrace as jax
import hlotrace.numpy as jnp


@pytest.mark.parametrize(("task", "count", "devices", "victim"),
                         [("endless", 2, 1, 0),
                          ("reading", 4, 2, 2),
                          ("compiling", 2, 1, 0),
                          ("calling", 2, 1, 1),
                          ("endless", 8, 1, 5)])
def test_when_a_process_is_killed_all_others_end(tmp_path, task, count, devices, victim):
    # 10 s more than the heartbeats is what `distributed.initialize` promises.
    with Job(__file__, tmp_path, task, count, devices) as job:
        job.wait(lambda i: "running" in job.said(i), 90)
        job.processes[victim].send_signal(signal.SIGKILL)
        statuses = job.end(HEARTBEAT + 10)
        for i in set(range(count)) - {victim}:
            assert statuses[i] in (1, 3), job.said(i)
            assert "hlotrace: process " in job.said(i), job.said(i)
            assert f"status {statuses[i]}" in job.said(i), job.said(i)


@pytest.mark.parametrize(("task", "words"),
                         [("one_leaves",
                           "process 1 has ended, by itself and without an error, when 5 programs had run"),
                          ("one_repeats",
                           "as number 6 of what processes 0, 1 do .* had run before|numbers \\d to \\d of"),
                          ("one_swaps",
                           r"numbers \d+ to \d+ of what processes 0, 1 do together were not the same")])
def test_a_process_that_does_something_else_ends_all(tmp_path, task, words):
    with Job(__file__, tmp_path, task, 2, 1) as job:
        said = {status: job.said(i) for i, status in enumerate(job.end(90))}
        assert {3} <= set(said) <= {1, 3} and re.search(words, said[3]), said  # 1: a collective broke off first


# --- what a process of a job does: this file is its program ---


def endless(between=lambda w, i: w.block_until_ready()):
    """Steps with a collective, for ever."""
    x = jax.device_put(np.ones((64, 256), np.float32), on(("p", "d")))
    w = jax.device_put(np.zeros((256, 256), np.float32), on())
    advance = jax.jit(lambda w, x: w + 1e-9 * (x.T @ x), out_shardings=on())
    for i in range(10**9):
        w = advance(w, x)
        between(w, i)
        time.sleep(0.005)       # the others are killed, or notice it, at any place of a step
        if i == 3:
            print("running", flush=True)


def one_leaves():
    total, x = jax.jit(jnp.sum), jax.device_put(table(), on("p"))
    for _ in range(4 if jax.process_index() else 10**9):
        total(x).block_until_ready()
    sys.exit(0)


def one_repeats():
    total, x = jax.jit(jnp.sum), jax.device_put(table(), on("p"))
    for _ in range(4 + jax.process_index()):
        total(x).block_until_ready()
    jax.jit(jnp.max)(x)


def one_swaps():
    total, least, x = jax.jit(jnp.sum), jax.jit(jnp.min), jax.device_put(table(), on("p"))
    for i in range(10**9):
        for f in (least, total) if i == 20 and jax.process_index() else (total, least):
            f(x).block_until_ready()


def reading():
    """The same, with values read, as a checkpoint does, also from another thread."""
    latest = []

    def read():
        while True:
            for value in latest:
                np.asarray(value)
            time.sleep(0.001)

    threading.Thread(target=read).start()
    endless(lambda w, i: latest.__setitem__(slice(1), [w]) or np.asarray(w))


def compiling():
    """The same, with a new program in each step."""

    jax.config.update("jax_explain_cache_misses", False)

    def other(w, i):
        def deep(v):
            for n in range(6):
                v = jnp.sin(v @ v) * (n + i)
            return v

        jax.jit(deep, out_shardings=on())(w).block_until_ready()

    endless(other)


def calling():
    """The same, with a callback that takes its time."""

    def slow(v):
        time.sleep(0.1)
        return v

    call = jax.jit(lambda w: jax.pure_callback(slow, w, w), out_shardings=on())
    endless(lambda w, i: call(w).block_until_ready())


if __name__ == "__main__":
    run_task(globals())
