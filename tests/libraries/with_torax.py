"""TORAX: a tokamak's plasma over three seconds, from its own configuration of an example."""
import numpy as np
import torax
from torax.examples import basic_config


def test_simulation():
    config = basic_config.CONFIG | {"numerics": basic_config.CONFIG["numerics"] | {"t_final": 3}}
    output, history = torax.run_simulation(torax.ToraxConfig.from_dict(config), progress_bar=False)
    assert history.sim_error is torax.SimError.NO_ERROR
    temperatures = output.profiles.T_e.values
    np.testing.assert_allclose(temperatures[-1, [0, -2, -1]], [21.785, 1.2792, 1], rtol=1e-3)
