"""compare.py FOLDER RUN MODE CONDITIONS SIZE POWER UNITS: whether ONNX Runtime makes Troupe's showers.

FOLDER has generated.h5 (troupe generate, seed 1, energies 50, 100 and 200 GeV in turn), 3dgan.onnx,
par04.onnx, weights.h5, weights_discriminator.h5 and weights.npz, all of one checkpoint. MODE and
SIZE are those of the latent, CONDITIONS as "energy,angle". Runs RUN (a command that takes model,
input, batch and output) on the latents that Troupe has drawn, written again from their definition.
"""

import pathlib
import shlex
import subprocess
import sys

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "oracle"))
import philox  # noqa: E402

VALIDATION_STREAM = 4
ANGLE = 80.0
TOLERANCE = 1e-5


def latents(mode, conditions, size, energies):
    """Rows for both flavours."""
    own, par04 = [], []
    for event, energy in enumerate(energies):
        noise = philox.normals(size, seed=1, micro_batch=event, stream=VALIDATION_STREAM)
        noise = noise.astype(np.float32)
        values = {"energy": np.float32(energy / 100), "angle": np.float32(np.radians(ANGLE))}
        given = np.array([values[name] for name in conditions], dtype=np.float32)
        if mode == "multiply":
            own.append(noise * given[0])
        else:
            noise = noise[len(given) :]
            own.append(np.concatenate([given, noise]))
        rest = np.array([energy / 1024, ANGLE / 90, 0, 1], dtype=np.float32)
        par04.append(np.concatenate([noise, rest]))
    return np.stack(own), np.stack(par04)


def run(folder, command, model, rows, batch):
    rows.astype("<f4").tofile(folder / "input.f32")
    words = shlex.split(command)
    subprocess.run(
        [*words, folder / model, folder / "input.f32", str(batch), folder / "output.f32"], check=True
    )
    return np.fromfile(folder / "output.f32", dtype="<f4").reshape(len(rows), -1).astype(np.float64)


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


def weights_of(path):
    """As Keras reads them: by order."""
    found = []
    with h5py.File(path) as file:
        for layer in file.attrs["layer_names"]:
            for name in file[layer].attrs["weight_names"]:
                found.append(file[layer][name][...])
    return found


def check_weights(folder):
    archive = np.load(folder / "weights.npz")
    for network, name in (("generator", "weights.h5"), ("discriminator", "weights_discriminator.h5")):
        keras = sorted(weights_of(folder / name), key=lambda w: w.tobytes())
        numpy = sorted(
            (archive[key] for key in archive.files if key.startswith(network + "/")),
            key=lambda w: w.tobytes(),
        )
        same = len(keras) == len(numpy) and all(map(np.array_equal, keras, numpy))
        if not same:
            sys.exit(f"weights of the {network} differ between Keras' file and NumPy's")
        print(f"  {network}: {len(keras)} arrays are the same in both files of weights")


def main():
    folder, command, mode, conditions, size, power, units = sys.argv[1:]
    folder = pathlib.Path(folder)
    power, units = float(power), float(units)
    with h5py.File(folder / "generated.h5") as file:
        stored = file["ECAL"][...]
        energies = file["energy"][...] if "energy" in file else file["target"][:, 1]
    stored = stored.reshape(len(stored), -1).astype(np.float64)
    own, par04 = latents(mode, conditions.split(","), int(size), energies.astype(np.float64))
    for batch in (1, 64):
        cells = np.maximum(run(folder, command, "3dgan.onnx", own, batch), 0)
        check(f"3dgan, batch {batch}", worst(cells, stored**power), TOLERANCE)
        shares = run(folder, command, "par04.onnx", par04, batch)
        wanted = stored / units / energies[:, None]
        # A relative difference of a cell grows by the power that leads back to energies.
        check(f"par04, batch {batch}", worst(shares, wanted), TOLERANCE / power)
    check_weights(folder)


main()
