"""What Troupe draws for its showers, written again from the definition, and how showers are compared."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "oracle"))
import philox  # noqa: E402

VALIDATION_STREAM = 4
ANGLE = 80.0
TOLERANCE = 1e-5


def noise(size, event):
    """Of an event of `troupe generate` with seed 1."""
    return philox.normals(size, seed=1, micro_batch=event, stream=VALIDATION_STREAM).astype(np.float32)


def latent(mode, conditions, size, event, energy):
    """What the network is given: multiply is noise times the condition, prepend puts conditions first."""
    values = {"energy": np.float32(energy / 100), "angle": np.float32(np.radians(ANGLE))}
    given = np.array([values[name] for name in conditions], dtype=np.float32)
    drawn = noise(size, event)
    if mode == "multiply":
        return drawn * given[0]
    return np.concatenate([given, drawn[len(given) :]])


def worst(found, wanted):
    """The largest difference of a cell, in units of the hottest cell of its shower.

    A generator that has hardly been trained makes empty showers, too, though not many.
    """
    hottest = np.abs(wanted).max(axis=1)
    if (hottest == 0).mean() > 0.5:
        sys.exit("most showers are empty: there is nothing to compare")
    hottest[hottest == 0] = hottest.max()
    return (np.abs(found - wanted).max(axis=1) / hottest).max()


def check(what, value, most):
    print(f"  {what}: {value:.2g}")
    if not value <= most:
        sys.exit(f"{what}: {value} is more than {most}")
