"""A Bayesian regression, in NumPyro: what blood and body say of the course of diabetes, with NUTS.

    python -m hlotrace.as_jax examples/libraries/regression.py

The program is JAX's: without `-m hlotrace.as_jax` it runs on JAX.  The data are those of Efron et al., Least Angle
Regression (2004), which scikit-learn ships: 442 patients, ten measurements, the progress of the disease after a year.
"""
import argparse
import time

import jax
import numpyro
import numpyro.distributions as dist
import psutil
from numpyro.infer import MCMC, NUTS
from sklearn.datasets import load_diabetes


def model(measured, progress=None):
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    weights = numpyro.sample("weights", dist.Normal(0.0, scale).expand([measured.shape[1]]).to_event(1))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    numpyro.sample("progress", dist.Normal(measured @ weights, noise), obs=progress)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=500)
    asked = parser.parse_args()

    patients = load_diabetes()
    measured = (patients.data - patients.data.mean(0)) / patients.data.std(0)
    progress = (patients.target - patients.target.mean()) / patients.target.std()

    # the first step: the density and its gradient, compiled and run once
    density = jax.jit(jax.value_and_grad(lambda z: numpyro.infer.util.potential_energy(
        model, (measured,), {"progress": progress}, z)))
    start, _ = density({"scale": 0.0, "weights": jax.numpy.zeros(10), "noise": 0.0})
    print(f"seconds to the first step: {time.time() - psutil.Process().create_time():.2f}")
    print(f"step 0: loss {start:.4f}")

    mcmc = MCMC(NUTS(model), num_warmup=asked.samples, num_samples=asked.samples, progress_bar=False)
    mcmc.run(jax.random.key(0), measured, progress)
    samples = mcmc.get_samples()
    for name, mean, spread in zip(patients.feature_names, samples["weights"].mean(0), samples["weights"].std(0)):
        print(f"{name:>4}: {mean:6.3f} +- {spread:.3f}")
    print(f"noise {samples['noise'].mean():.3f}, divergences {int(mcmc.get_extra_fields()['diverging'].sum())}")


if __name__ == "__main__":
    main()
