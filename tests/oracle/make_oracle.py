#!/usr/bin/python3
"""One whole training iteration in PyTorch float64: the judge of Troupe's model, losses and optimiser.

usage: make_oracle.py MODEL OUT.txt [--whole DIR]

Weights, noise, dropout masks and label flips come from the same counters as Troupe's (philox.py), so
both compute the same iteration. OUT.txt gets, per step of the schedule, every loss term and, per
gradient and batch-statistics tensor, its L2 norm and 8 projections on random signs; --whole also
writes each tensor as raw float64 (DIR/SLOT-NETWORK-NUMBER.f64). The dropout streams are numbered by
layer, so the zoo file is read for the places of its dropout layers and for nothing else.
"""

import argparse
import os
import re

import numpy as np
import torch

import models
import philox

SEED = 20
MICRO_BATCH = 3  # its index in the global batch: any number will do
ITERATION = 5
DATA_SEED = 77
PROJECTIONS = 8
SCHEDULE = ["d_real", "d_fake", "g", "g"]
LEARNING_RATE, RHO = 1e-3, 0.9
# Far above the default of 1e-7: with that, the first update is the sign of each gradient, so that a
# weight whose gradient is rounding noise moves by a whole step one way here and the other way there.
EPSILON = 0.1
# Events of the micro-batch. One of gan3d_51 costs as much as four of gan3d_25.
BATCHES = {"gan3d_25": 2, "gan3d_51": 1}
LATENT_STREAM, FLIP_STREAM = 1, 2
FLIP_PROBABILITY = 0.05


def dropout_layers(model):
    """Index of each dropout in the discriminator's list of layers."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "..", "config", "zoo", model + ".yaml")) as file:
        text = file.read()
    discriminator = text[text.index("discriminator:"):]
    layers = re.split(r"\n {0,2}\S", discriminator[discriminator.index("layers:"):])[0]
    items = re.findall(r"^ +- \{? *(\w+)", layers, flags=re.M)
    return [i for i, item in enumerate(items) if item == "dropout"]


def initialise(shape, kind, fan_in, fan_out, network, index):
    count = int(np.prod(shape))
    stream = 0x10000 + 0x1000 * network + index
    if kind in ("zeros", "ones"):
        return torch.full(shape, 0.0 if kind == "zeros" else 1.0, dtype=torch.float64)
    if kind == "glorot_normal":
        values = philox.normals(count, seed=SEED, stream=stream)
        redraw = 0
        while (outside := np.abs(values) > 2.0).any():
            redraw += 1
            values[outside] = philox.normals(count, seed=SEED, slot=redraw, stream=stream)[outside]
        values *= np.sqrt(2.0 / (fan_in + fan_out)) / 0.87962566103423978
    else:
        limit = np.sqrt(6.0 / (fan_in if kind == "he_uniform" else fan_in + fan_out))
        values = limit * (2.0 * philox.uniforms(count, seed=SEED, stream=stream) - 1.0)
    return torch.tensor(values.astype(np.float32).astype(np.float64).reshape(shape))


def make_events(image, batch):
    """Sparse images and conditions: not physics, only numbers both sides can make."""
    cells = int(np.prod(image))
    u = philox.uniforms(batch * cells * 2, seed=DATA_SEED, stream=9).reshape(batch * cells, 2)
    images = np.where(u[:, 0] < 0.2, 0.5 * u[:, 1], 0.0).astype(np.float32)
    c = philox.uniforms(batch * 3, seed=DATA_SEED, stream=10).reshape(batch, 3)
    return dict(
        images=torch.tensor(images.astype(np.float64).reshape((batch,) + image)),
        energy=torch.tensor((0.1 + 4.9 * c[:, 0]).astype(np.float32).astype(np.float64)),
        angle=torch.tensor((1.1 + 0.9 * c[:, 1]).astype(np.float32).astype(np.float64)),
        ecal=torch.tensor((5.0 + 100.0 * c[:, 2]).astype(np.float32).astype(np.float64)),
    )


class Network:
    def __init__(self, layers, input_shape, heads, number):
        self.layers, self.number = layers, number
        shapes = models.parameter_shapes(layers, input_shape, heads)
        self.parameters = [
            initialise(shape, kind, fan_in, fan_out, number, i).requires_grad_()
            for i, (_, shape, kind, fan_in, fan_out) in enumerate(shapes)
        ]
        self.squares = [torch.zeros_like(p) for p in self.parameters]
        self.moving = [[torch.zeros(s[0], dtype=torch.float64), torch.ones(s[0], dtype=torch.float64)]
                       for role, s, *_ in shapes if role == "gamma"]

    def apply_gradients(self, gradients):
        """Keras' RMSprop; weights are kept in float32, as in training."""
        with torch.no_grad():
            for p, v, g in zip(self.parameters, self.squares, gradients):
                v.mul_(RHO).add_((1 - RHO) * g * g)
                p.copy_((p - LEARNING_RATE * g / (torch.sqrt(v) + EPSILON)).float())

    def apply_statistics(self, statistics):
        for moving, batch in zip(self.moving, statistics):
            for i in range(2):
                moving[i] = (models.BN_MOMENTUM * moving[i]
                             + (1 - models.BN_MOMENTUM) * batch[i]).float().double()


class Iteration:
    def __init__(self, name):
        self.model = models.MODELS[name]
        self.batch = BATCHES[name]
        self.events = make_events(self.model["image"], self.batch)
        self.schedule = SCHEDULE
        self.drop_layers = dropout_layers(name)
        self.g = Network(self.model["generator"], (self.model["latent"],), 0, 0)
        self.d = Network(self.model["discriminator"], self.model["image"] + (1,), 2, 1)

    def position(self, slot, stream):
        return dict(seed=SEED, micro_batch=MICRO_BATCH, iteration=ITERATION, slot=slot, stream=stream)

    def latent(self, slot):
        size = self.model["latent"]
        noise = philox.normals(self.batch * size, **self.position(slot, LATENT_STREAM)).astype(np.float32)
        noise = noise.reshape(self.batch, size)
        if self.model["mode"] == "multiply":
            noise = noise * self.events["energy"].numpy().astype(np.float32)[:, None]
        else:
            noise[:, 0] = self.events["energy"].numpy()
            noise[:, 1] = self.events["angle"].numpy()
        return torch.tensor(noise.astype(np.float64))

    def drop_mask(self, slot):
        def mask(i, shape):
            stream = 0x2000 + self.drop_layers[i]
            u = philox.uniforms(int(np.prod(shape)), **self.position(slot, stream))
            return torch.tensor(np.where(u >= 0.2, 1.0 / 0.8, 0.0).reshape(shape))
        return mask

    def generate(self, slot, training, statistics):
        x, _ = models.run(self.g.layers, self.g.parameters, self.latent(slot), training,
                          self.g.moving, None, statistics)
        return x[:, 0]

    def discriminate(self, images, slot, label, flip, statistics):
        """The unweighted loss terms by name, and the weighted total."""
        trunk, heads = models.run(self.d.layers, self.d.parameters, images[:, None], True,
                                  self.d.moving, self.drop_mask(slot), statistics)
        flat = trunk.permute(0, 2, 3, 4, 1).reshape(self.batch, -1)
        power = self.model["power"]
        energy_image = images if power is None else torch.clamp(images, min=0.0) ** (1.0 / power)
        outputs = dict(
            generation=torch.sigmoid(flat @ heads[0] + heads[1])[:, 0],
            auxiliary=(flat @ heads[2] + heads[3])[:, 0],
            angle=models.angle_head(energy_image) if power else None,
            ecal=energy_image.sum(dim=(1, 2, 3)),
        )
        labels = torch.full((self.batch,), label, dtype=torch.float64)
        if flip:
            u = philox.uniforms(self.batch, **self.position(slot, FLIP_STREAM))
            labels = torch.where(torch.tensor(u < FLIP_PROBABILITY), 1 - labels, labels)
        targets = dict(generation=labels, auxiliary=self.events["energy"],
                       angle=self.events["angle"], ecal=self.events["ecal"])
        terms = {name: models.loss(kind, outputs[name], targets[name])
                 for name, kind, _ in self.model["losses"]}
        return terms, sum(weight * terms[name] for name, _, weight in self.model["losses"])

    def step(self, slot):
        """Returns ({term: loss}, [(network name, number, tensor)]) and applies the update."""
        kind = self.schedule[slot]
        statistics, g_statistics = [], []
        if kind == "g":
            images = self.generate(slot, True, g_statistics)
            terms, total = self.discriminate(images, slot, 1.0, False, statistics)
            network, name = self.g, "generator"
        else:
            with torch.no_grad():
                images = (self.events["images"] if kind == "d_real"
                          else self.generate(slot, False, None))
            terms, total = self.discriminate(images, slot, 1.0 if kind == "d_real" else 0.0, True,
                                             statistics)
            network, name = self.d, "discriminator"
        gradients = torch.autograd.grad(total, network.parameters)
        tensors = [(name, i, g) for i, g in enumerate(gradients)]
        for owner, found in (("generator-moving", g_statistics), ("discriminator-moving", statistics)):
            flat = [t for pair in found for t in pair]
            tensors += [(owner, i, t) for i, t in enumerate(flat)]
        network.apply_gradients(gradients)
        self.g.apply_statistics(g_statistics)
        self.d.apply_statistics(statistics)
        return {k: v.item() for k, v in terms.items()}, tensors


def projections(tensor, number):
    flat = tensor.detach().numpy().reshape(-1)
    for j in range(PROJECTIONS):
        bits = philox.words(flat.size, seed=99, micro_batch=j, stream=number) & 1
        yield float(np.dot(flat, np.where(bits == 1, 1.0, -1.0)))


def write_fixture(description, batches, iteration_of):
    """A script of MODEL OUT.txt [--whole DIR]; `iteration_of` makes a model's: schedule and step()."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model", choices=sorted(batches))
    parser.add_argument("out")
    parser.add_argument("--whole", metavar="DIR")
    arguments = parser.parse_args()
    iteration = iteration_of(arguments.model)
    with open(arguments.out, "w") as out:
        out.write(f"oracle 1 {arguments.model} batch {batches[arguments.model]} seed {SEED} micro_batch {MICRO_BATCH} "
                  f"iteration {ITERATION} data_seed {DATA_SEED}\n")
        for slot, kind in enumerate(iteration.schedule):
            terms, tensors = iteration.step(slot)
            out.write(f"slot {slot} {kind}\n")
            for name, value in terms.items():
                out.write(f"loss {name} {value:.17g}\n")
            for network, number, tensor in tensors:
                values = " ".join(f"{p:.9g}" for p in projections(tensor, number))
                out.write(f"tensor {network} {number} {tensor.numel()} "
                          f"{torch.linalg.norm(tensor).item():.9g} {values}\n")
                if arguments.whole:
                    os.makedirs(arguments.whole, exist_ok=True)
                    tensor.detach().numpy().astype("<f8").tofile(
                        os.path.join(arguments.whole, f"{slot}-{network}-{number}.f64"))
            print(f"{arguments.model} slot {slot} {kind}: {terms}", flush=True)


if __name__ == "__main__":
    write_fixture(__doc__, BATCHES, Iteration)
