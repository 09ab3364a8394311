"""compare_denoiser.py FOLDER RUN CELLS POWER UNITS: whether ONNX Runtime finds Troupe's velocities.

FOLDER has generated.h5 (troupe generate --steps 1, seed 1, energies 50, 100 and 200 GeV in turn) and
network.onnx of a diffusion task that is asked for energies alone, whose images have CELLS cells along
each axis. A shower of one step is minus the velocity that is found in noise alone, at level 1. Runs RUN
as compare.py does, and reads the same with NumPy as with Keras' file.
"""

import pathlib
import sys

import h5py
import numpy as np

from compare import run, weights_of
from showers import TOLERANCE, check, noise, worst


def main():
    folder, command, cells, power, units = sys.argv[1:]
    folder, cells, power, units = pathlib.Path(folder), int(cells), float(power), float(units)
    with h5py.File(folder / "generated.h5") as file:
        stored = file["ECAL"][...].astype(np.float64)
        energies = file["target"][:, 1].astype(np.float64)
    stored = stored.reshape(len(stored), -1)
    rows = []
    for event, energy in enumerate(energies):
        asked = np.full((cells**3, 2), [1.0, energy / 100], dtype=np.float32)
        rows.append(np.column_stack([noise(cells**3, event), asked]).reshape(-1))
    for batch in (1, 64):
        found = np.maximum(-run(folder, command, "network.onnx", np.stack(rows), batch), 0)
        check(f"velocities, batch {batch}", worst(found, (stored * units) ** power), TOLERANCE)
    archive = np.load(folder / "weights.npz")
    numpy = [archive[key] for key in archive.files if key.startswith("network/")]
    keras = weights_of(folder / "weights.h5")
    if not (keras and len(keras) == len(numpy) and all(map(np.array_equal, keras, numpy))):
        sys.exit("weights of the network differ between Keras' file and NumPy's")


main()
