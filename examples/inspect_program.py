"""Prints one function at every stage: its program, StableHLO, HLO, what XLA made of it, and what that costs."""
import hlotrace as jax
import hlotrace.numpy as jnp


def attention(q, k, v):
    """Scaled dot-product attention of one head."""
    weights = jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1]))
    return weights @ v


def show(title, text):
    print(f"\n======== {title} ========\n{text}")


# No data is needed: a type stands for each argument.
queries = jax.ShapeDtypeStruct((8, 16), jnp.float32)
keys = values = jax.ShapeDtypeStruct((32, 16), jnp.float32)

traced = jax.jit(attention).trace(queries, keys, values)
show("jaxpr: what was traced", traced.jaxpr)
show("result", traced.out_info)

lowered = traced.lower()
show("StableHLO: what is handed to the compiler", lowered.as_text())
show("StableHLO, with the Python lines it came from", lowered.as_text(debug_info=True))
show("HLO: what XLA reads", lowered.as_text("hlo"))

compiled = lowered.compile()
show("optimized HLO: what runs", compiled.as_text())
cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
show("cost", f"{cost['flops']:.0f} flops, {cost['bytes accessed']:.0f} bytes read and written")
show("memory", f"{memory.argument_size_in_bytes} bytes of arguments, {memory.output_size_in_bytes} of results, "
               f"{memory.temp_size_in_bytes} in between")
