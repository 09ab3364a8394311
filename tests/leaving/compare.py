"""compare.py FOLDER RUN MODE CONDITIONS SIZE POWER UNITS: whether ONNX Runtime makes Troupe's showers.

FOLDER has generated.h5 (troupe generate, seed 1, energies 50, 100 and 200 GeV in turn; with the columns
that the generator makes, of which each has its output), 3dgan.onnx, par04.onnx, weights.h5, weights_discriminator.h5 and weights.npz, all of one checkpoint. MODE and
SIZE are those of the latent, CONDITIONS as "energy,angle". Runs RUN (a command that takes model,
input, batch, output and, of further outputs, the name) on the latents that Troupe has drawn, written again from their definition.
"""

import pathlib
import shlex
import subprocess
import sys

import h5py
import numpy as np

from showers import ANGLE, TOLERANCE, check, latent, noise, worst


def latents(mode, conditions, size, energies):
    """Rows for both flavours."""
    own, par04 = [], []
    for event, energy in enumerate(energies):
        own.append(latent(mode, conditions, size, event, energy))
        drawn = noise(size, event)[0 if mode == "multiply" else len(conditions) :]
        rest = np.array([energy / 1024, ANGLE / 90, 0, 1], dtype=np.float32)
        par04.append(np.concatenate([drawn, rest]))
    return np.stack(own), np.stack(par04)


def run(folder, command, model, rows, batch, *name):
    rows.astype("<f4").tofile(folder / "input.f32")
    words = shlex.split(command)
    subprocess.run(
        [*words, folder / model, folder / "input.f32", str(batch), folder / "output.f32", *name],
        check=True,
    )
    return np.fromfile(folder / "output.f32", dtype="<f4").reshape(len(rows), -1).astype(np.float64)


def weights_of(path):
    """As Keras reads them, by order; what is trained in front of moving statistics."""
    trained, moving = [], []
    with h5py.File(path) as file:
        for layer in file.attrs["layer_names"]:
            for name in file[layer].attrs["weight_names"]:
                (moving if b"moving_" in name else trained).append(file[layer][name][...])
    return trained + moving


def check_weights(folder):
    archive = np.load(folder / "weights.npz")
    for network, name in (("generator", "weights.h5"), ("discriminator", "weights_discriminator.h5")):
        keras = weights_of(folder / name)
        numpy = [archive[key] for key in archive.files if key.startswith(network + "/")]
        same = len(keras) == len(numpy) and all(map(np.array_equal, keras, numpy))
        if not same:
            sys.exit(f"weights of the {network} differ between Keras' file and NumPy's")
        print(f"  {network}: {len(keras)} arrays are the same, in the same order, in both files of weights")


def main():
    folder, command, mode, conditions, size, power, units = sys.argv[1:]
    folder = pathlib.Path(folder)
    power, units = float(power), float(units)
    with h5py.File(folder / "generated.h5") as file:
        stored = file["ECAL"][...]
        energies = file["energy"][...] if "energy" in file else file["target"][:, 1]
        columns = {name: file[name][...] for name in file if name.startswith("made_")}
    stored = stored.reshape(len(stored), -1).astype(np.float64)
    own, par04 = latents(mode, conditions.split(","), int(size), energies.astype(np.float64))
    for batch in (1, 64):
        cells = np.maximum(run(folder, command, "3dgan.onnx", own, batch), 0)
        check(f"3dgan, batch {batch}", worst(cells, stored**power), TOLERANCE)
        for name, made in columns.items():
            found = run(folder, command, "3dgan.onnx", own, batch, name.removeprefix("made_"))[:, 0]
            check(f"{name}, batch {batch}", np.abs((found - made) / made).max(), TOLERANCE)
        shares = run(folder, command, "par04.onnx", par04, batch)
        wanted = stored / units / energies[:, None]
        # A relative difference of a cell grows by the power that leads back to energies.
        check(f"par04, batch {batch}", worst(shares, wanted), TOLERANCE / power)
    check_weights(folder)


if __name__ == "__main__":
    main()
