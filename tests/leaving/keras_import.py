"""keras_import.py TROUPE FOLDER [GENERATOR]: files as Keras writes them, imported and compared with PyTorch.

Draws weights for 3DGAN's networks, stores them in the three layouts of Keras with h5py, lets TROUPE
import each and make showers, and makes the same showers with PyTorch from the same numbers. The
networks are written here as their authors have them (3DGAN's EcalEnergyGan.py, AngleArch3dGAN.py),
not as Troupe's zoo has them. GENERATOR: a file of Keras with a generator of 25 x 25 x 25 cells,
such as the original's params_generator_epoch_049.hdf5, which is imported and compared as well.
Exit code 77: there is no PyTorch.
"""

import json
import pathlib
import subprocess
import sys

import h5py
import numpy as np

from showers import ANGLE, TOLERANCE, check, latent, worst

try:
    import torch
    import torch.nn.functional as functional
except ImportError:
    print("no PyTorch: apt-get install python3-torch", file=sys.stderr)
    sys.exit(77)

EVENTS = 6
ENERGIES = [50.0, 100.0, 200.0]
EPSILON = 1e-6  # of Troupe's batch norm; Keras' own is 1e-3

# dense UNITS | reshape SHAPE | conv FILTERS KERNEL PADDING BIAS | leaky | relu | norm | up FACTORS
# | pad AMOUNTS. Sizes are (x, y, z).
G25 = [
    ("dense", 3136), ("reshape", (7, 7, 8, 8)),
    ("conv", 64, (6, 6, 8), "same", True), ("leaky",), ("norm",), ("up", (2, 2, 2)), ("pad", (2, 2, 0)),
    ("conv", 6, (6, 5, 8), "valid", True), ("leaky",), ("norm",), ("up", (2, 2, 3)), ("pad", (1, 0, 3)),
    ("conv", 6, (3, 3, 8), "valid", True), ("leaky",),
    ("conv", 1, (2, 2, 2), "valid", False), ("relu",),
]  # fmt: skip
G51 = [
    ("dense", 5184), ("reshape", (9, 9, 8, 8)), ("up", (6, 6, 6)),
    ("conv", 8, (6, 6, 8), "valid", True), ("relu",), ("norm",), ("pad", (2, 2, 1)),
    ("conv", 6, (4, 4, 6), "valid", True), ("relu",), ("norm",), ("pad", (2, 2, 1)),
    ("conv", 6, (4, 4, 6), "valid", True), ("relu",), ("norm",), ("pad", (2, 2, 1)),
    ("conv", 6, (4, 4, 6), "valid", True), ("relu",), ("norm",), ("pad", (1, 1, 0)),
    ("conv", 6, (3, 3, 5), "valid", True), ("relu",), ("norm",), ("pad", (1, 1, 0)),
    ("conv", 6, (3, 3, 3), "valid", True), ("relu",),
    ("conv", 1, (2, 2, 2), "valid", True), ("relu",),
]  # fmt: skip
# name: layers, size of the latent, its mode and conditions, power of cells, options of generate
MODELS = {
    "gan3d_25": (G25, 200, "multiply", ["energy"], 1.0, []),
    "gan3d_51": (G51, 256, "prepend", ["energy", "angle"], 0.85, ["--angle", str(ANGLE)]),
}
CLASSES = {"dense": "dense", "conv": "conv3d", "norm": "batch_normalization"}


def draw(layers, inputs):
    """Layers of Keras with weights: name, [(weight, values)]. Activations stay near 1."""
    random = np.random.default_rng(7)
    counts, named = {}, []
    channels = inputs
    for layer in layers:
        kind = layer[0]
        if kind == "reshape":
            channels = layer[1][-1]
        if kind not in CLASSES:
            continue
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "norm":
            shape = (channels,)
            weights = [
                ("gamma", random.uniform(0.8, 1.2, shape)), ("beta", random.normal(0, 0.1, shape)),
                ("moving_mean", random.normal(0.1, 0.1, shape)),
                ("moving_variance", random.uniform(0.5, 1.5, shape)),
            ]  # fmt: skip
        else:
            shape = (channels, layer[1]) if kind == "dense" else (*layer[2], channels, layer[1])
            fan = np.prod(shape[:-1])
            weights = [("kernel", random.normal(0, np.sqrt(2 / fan), shape))]
            if kind == "dense" or layer[4]:
                weights.append(("bias", random.normal(0, 0.1, shape[-1:])))
            channels = layer[1]
        name = f"{CLASSES[kind]}_{counts[kind]}"
        named.append((name, [(role, values.astype(np.float32)) for role, values in weights]))
    return named


def names(words):
    """As Keras has them: byte strings of one length. None is an array of no numbers."""
    return np.array([word.encode() for word in words]) if words else []


def store(group, layers):
    """Layers in groups of their own: name, [(name of the weight, values)]."""
    group.attrs["layer_names"] = names([name for name, _ in layers])
    group.attrs["backend"] = b"tensorflow"
    group.attrs["keras_version"] = b"2.2.4"
    for name, weights in layers:
        own = group.create_group(name)
        own.attrs["weight_names"] = names([weight for weight, _ in weights])
        for weight, values in weights:
            own.create_dataset(weight, data=values)


def with_paths(layers):
    return [(name, [(f"{name}/{role}:0", values) for role, values in weights]) for name, weights in layers]


def nested(file, layers):
    """save_weights() of a model around a Sequential: one group, moving statistics last."""
    all_weights = [weight for _, weights in with_paths(layers) for weight in weights]
    trained = [weight for weight in all_weights if "moving_" not in weight[0]]
    moving = [weight for weight in all_weights if "moving_" in weight[0]]
    store(file, [("input_1", []), ("sequential_1", trained + moving)])


def flat(file, layers):
    """save_weights() of a model that is not nested: a group for each layer, most without weights."""
    store(file, [("input_1", []), *with_paths(layers), ("activation_1", [])])


def whole(file, layers):
    """save(): the same below model_weights, beside what else Keras keeps."""
    file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": []}).encode()
    store(file.create_group("model_weights"), [*with_paths(layers), ("up_sampling3d_1", [])])
    optimiser = file.create_group("optimizer_weights")
    optimiser.attrs["weight_names"] = names(["training/RMSprop/iterations:0"])
    optimiser.create_dataset("training/RMSprop/iterations:0", data=np.int64(7))


def stored_in(path):
    """All weights of a file in the order in which Keras reads them."""
    with h5py.File(path) as file:
        return [
            (name.decode(), file[layer][name][...])
            for layer in file.attrs["layer_names"]
            for name in file[layer].attrs["weight_names"]
        ]


def showers(layers, weights, latents):
    """By PyTorch, in its order of channels. `weights`: iterators over trained ones and moving statistics."""
    trained, moving = (iter([torch.from_numpy(w) for w in part]) for part in weights)
    x = torch.from_numpy(latents)
    for layer in layers:
        kind = layer[0]
        if kind == "dense":
            x = x @ next(trained) + next(trained)
        elif kind == "reshape":
            x = x.reshape(-1, *layer[1]).permute(0, 4, 1, 2, 3)
        elif kind == "conv":
            if layer[3] == "same":
                pads = [(k - 1) // 2 if first else k - 1 - (k - 1) // 2
                        for k in reversed(layer[2]) for first in (True, False)]  # fmt: skip
                x = functional.pad(x, pads)
            kernel = next(trained).permute(4, 3, 0, 1, 2).contiguous()
            x = functional.conv3d(x, kernel, next(trained) if layer[4] else None)
        elif kind == "norm":
            gamma, beta, mean, variance = next(trained), next(trained), next(moving), next(moving)
            x = functional.batch_norm(x, mean, variance, gamma, beta, False, 0.0, EPSILON)
        elif kind == "leaky":
            x = functional.leaky_relu(x, 0.3)
        elif kind == "relu":
            x = functional.relu(x)
        elif kind == "up":
            for axis, factor in enumerate(layer[1]):
                x = x.repeat_interleave(factor, dim=2 + axis)
        else:
            x = functional.pad(x, [n for amount in reversed(layer[1]) for n in (amount, amount)])
    return x.reshape(len(latents), -1).double().numpy()


def compare(troupe, folder, model, path, weights):
    """Imports a file and compares showers with those of `weights`: trained ones, moving statistics."""
    layers, size, mode, conditions, power, options = MODELS[model]
    imported, made = folder / "imported.h5", folder / "made.h5"
    subprocess.run([troupe, "import", path, "--model", model, "--out", imported, "--force"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    subprocess.run([troupe, "generate", imported, "--energy", ",".join(map(str, ENERGIES)), "--events",
                    str(EVENTS), "--out", made, "--force", *options],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    with h5py.File(made) as file:
        stored = file["ECAL"][...].reshape(EVENTS, -1).astype(np.float64)
    latents = np.stack([latent(mode, conditions, size, i, ENERGIES[i % 3]) for i in range(EVENTS)])
    wanted = showers(layers, weights, latents)
    check(f"{model}, {path.name}", worst(stored**power, wanted), TOLERANCE)


def in_two(named):
    """Trained ones, and moving statistics, of weights in the order of Keras."""
    parts = [values for name, values in named if "moving_" not in name]
    return parts, [values for name, values in named if "moving_" in name]


def main():
    troupe, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    torch.set_num_threads(1)
    for model, (layers, size, *_) in MODELS.items():
        drawn = draw(layers, size)
        flattened = [(role, values) for _, weights in drawn for role, values in weights]
        for layout in (nested, flat, whole):
            path = folder / f"{layout.__name__}.h5"
            with h5py.File(path, "w") as file:
                layout(file, drawn)
            compare(troupe, folder, model, path, in_two(flattened))
    for path in map(pathlib.Path, sys.argv[3:]):
        compare(troupe, folder, "gan3d_25", path, in_two(stored_in(path)))


main()
