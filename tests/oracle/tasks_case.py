#!/usr/bin/python3
"""An iteration of each task and of the losses besides 3DGAN's, in PyTorch float64: the judge of Troupe's.

usage: tasks_case.py OUT.txt

The topologies are those of tests/training/tasks_oracle_test.cpp; numbers come from the same counters as
there. OUT.txt gets, per step, every loss term, and of the gradient and of the weights after the step, each
as one vector, the L2 norm and 8 projections on random signs. A gradient penalty is a second-order pass
here, and a difference of first-order ones in Troupe.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F

import philox
from layers_case import channels_first, convolution, line, transposed
from make_oracle import DATA_SEED, ITERATION, MICRO_BATCH, SEED, make_events

BATCH = 5
IMAGE = (4, 4, 2)
RATE = 0.05
FLIP_PROBABILITY = 0.3
LATENT = 6
CLASSES = 3


def position(slot, stream):
    return dict(seed=SEED, micro_batch=MICRO_BATCH, iteration=ITERATION, slot=slot, stream=stream)


def column(number):
    return philox.uniforms((number + 1) * BATCH, seed=DATA_SEED, stream=11)[number * BATCH:]


class Network:
    """A flat vector of weights, cut into tensors of these Keras shapes."""

    def __init__(self, number, shapes, largest=0.8):
        self.shapes = shapes
        self.sizes = [int(np.prod(shape)) for shape in shapes]
        u = philox.uniforms(sum(self.sizes), seed=SEED, stream=40 + number)
        self.take((largest * (2.0 * u - 1.0)).astype(np.float32))

    def take(self, values):
        self.weights = torch.tensor(values.astype(np.float64), requires_grad=True)

    def parts(self):
        return [part.reshape(shape) for part, shape in
                zip(torch.split(self.weights, self.sizes), self.shapes)]

    def update(self, gradient):
        """Plain descent; weights are kept in float32, as in training."""
        self.take((self.weights.detach() - RATE * gradient).numpy().astype(np.float32))


def flat(image):
    """(n, c, x, y, z) in the order of Troupe's cells."""
    return image.permute(0, 2, 3, 4, 1).reshape(image.shape[0], -1)


class Gan:
    """One whose critic has a score and tells the energy."""

    def __init__(self, kind, penalty, schedule):
        self.kind, self.penalty, self.schedule = kind, penalty, schedule
        self.events = make_events(IMAGE, BATCH)
        cells = int(np.prod(IMAGE))
        self.g = Network(0, [(LATENT, cells), (cells,)])
        self.d = Network(1, [(2, 2, 2, 1, 3), (3,), (27, 1), (1,), (27, 1), (1,)])

    def latents(self, slot):
        noise = philox.normals(BATCH * LATENT, **position(slot, 1)).astype(np.float32)
        latents = torch.tensor(noise.astype(np.float64).reshape(BATCH, LATENT))
        latents[:, 0] = self.events["energy"]
        return latents

    def fakes(self, slot):
        kernel, bias = self.g.parts()
        return torch.tanh(self.latents(slot) @ kernel + bias).reshape((BATCH,) + IMAGE)

    def real(self):
        return self.events["images"]

    def judge(self, images):
        kernel, bias, score, score_bias, energy, energy_bias = self.d.parts()
        features = flat(F.silu(convolution(images[:, None], kernel, bias)))
        return (features @ score + score_bias)[:, 0], (features @ energy + energy_bias)[:, 0]

    def labels(self, slot, values):
        labels = torch.tensor(values, dtype=torch.float64)
        u = philox.uniforms(len(values), **position(slot, 2))
        return torch.where(torch.tensor(u < FLIP_PROBABILITY), 1.0 - labels, labels)

    def score_loss(self, score, labels, of_judge=False):
        if self.kind == "least_squares":
            return F.mse_loss(score, labels)
        margin = (2.0 * labels - 1.0) * score
        return (F.relu(1.0 - margin) if self.kind == "hinge" and of_judge else -margin).mean()

    def slopes(self, slot, fakes):
        u = torch.tensor(philox.uniforms(BATCH, **position(slot, 8))).reshape(BATCH, 1, 1, 1)
        points = (fakes + u * (self.real() - fakes)).requires_grad_()
        gradient, = torch.autograd.grad(self.judge(points)[0].sum(), points, create_graph=True)
        return torch.sqrt((gradient ** 2).sum(dim=(1, 2, 3)))

    def step(self, slot):
        kind = self.schedule[slot]
        fakes = self.fakes(slot)
        terms = {}
        if kind == "g":
            network, images, scale = self.g, fakes, 1
            score, energy = self.judge(images)
            terms["score"] = self.score_loss(score, torch.ones(BATCH, dtype=torch.float64))
        else:
            network, fakes = self.d, fakes.detach()
            scale = 2 if kind == "d_both" else 1
            images = {"d_real": self.real(), "d_fake": fakes,
                      "d_both": torch.cat([self.real(), fakes])}[kind]
            labels = {"d_real": [1.0] * BATCH, "d_fake": [0.0] * BATCH,
                      "d_both": [1.0] * BATCH + [0.0] * BATCH}[kind]
            score, energy = self.judge(images)
            terms["score"] = self.score_loss(score, self.labels(slot, labels), True)
        total = 2.0 * terms["score"]
        if self.penalty and kind in ("d_fake", "d_both"):
            terms["score_penalty"] = ((self.slopes(slot, fakes) - 1.0) ** 2).mean()
            total = total + self.penalty * terms["score_penalty"]
        terms["energy"] = ((energy - self.events["energy"].repeat(scale)) ** 2).mean()
        return network, terms, total + 0.1 * terms["energy"]


class ConditionalGan(Gan):
    """The same, whose critic is told the energy that it judges by."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.d = Network(1, [(1, 3), (3,), (2, 2, 2, 1, 3), (3,), (31, 1), (1,), (31, 1), (1,)])

    def judge(self, images):
        asked, asked_bias, kernel, bias, score, score_bias, energy, energy_bias = self.d.parts()
        told = self.events["energy"].repeat(len(images) // BATCH)[:, None]
        features = torch.cat([flat(F.silu(convolution(images[:, None], kernel, bias))),
                              F.silu(told @ asked + asked_bias), told], dim=1)
        return (features @ score + score_bias)[:, 0], (features @ energy + energy_bias)[:, 0]


class ColumnGan(Gan):
    """One whose generator makes two columns, which its critic reads with the image, in another order.

    An event is a row: its cells, then its columns.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.g = Network(0, [(LATENT, 7), (7,), (7, 1), (1,), (7, 1), (1,), (7, 32), (32,)])
        self.d = Network(1, [(2, 3), (3,), (2, 2, 2, 1, 3), (3,), (32, 1), (1,), (32, 1), (1,)])

    def fakes(self, slot):
        bend, bend_bias, leak, leak_bias, depth, depth_bias, kernel, bias = self.g.parts()
        bent = torch.tanh(self.latents(slot) @ bend + bend_bias)
        return torch.cat([torch.tanh(bent @ kernel + bias), F.softplus(bent @ depth + depth_bias),
                          bent @ leak + leak_bias], dim=1)

    def real(self):
        columns = [torch.tensor(column(i).astype(np.float32).astype(np.float64)) for i in (0, 1)]
        return torch.cat([self.events["images"].reshape(BATCH, -1), torch.stack(columns, dim=1)],
                         dim=1)

    def judge(self, rows):
        read, read_bias, kernel, bias, score, score_bias, energy, energy_bias = self.d.parts()
        images, columns = rows[:, :-2].reshape((-1, 1) + IMAGE), rows[:, -2:]
        features = torch.cat([flat(F.silu(convolution(images, kernel, bias))),
                              F.silu(columns @ read + read_bias), columns], dim=1)
        return (features @ score + score_bias)[:, 0], (features @ energy + energy_bias)[:, 0]


class Supervised:
    """Every loss of a supervised task."""

    schedule = ["fit"]

    def __init__(self):
        self.events = make_events(IMAGE, BATCH)
        self.network = Network(1, [(2, 2, 2, 1, 3), (3,)] + [(27, CLASSES), (CLASSES,)]
                               + [(27, 1), (1,)] * 5)

    def step(self, slot):
        kernel, bias, kind, kind_bias, *heads = self.network.parts()
        features = flat(torch.tanh(convolution(self.events["images"][:, None], kernel, bias)))
        energy, share, angle, ecal, pion = [
            (features @ heads[2 * i] + heads[2 * i + 1])[:, 0] for i in range(5)]
        classes = torch.tensor((column(0) * CLASSES).astype(np.int64))
        numbers = [torch.tensor(column(i).astype(np.float32).astype(np.float64)) for i in (1, 2)]
        terms = dict(
            kind=F.cross_entropy(features @ kind + kind_bias, classes),
            energy=F.huber_loss(energy, self.events["energy"]),
            share=F.mse_loss(share, numbers[0]),
            angle=F.l1_loss(angle, self.events["angle"]),
            ecal=100.0 * ((ecal - self.events["ecal"]).abs() / self.events["ecal"]).mean(),
            is_pion=F.binary_cross_entropy_with_logits(pion, numbers[1]),
        )
        weights = dict(kind=0.7, share=2.0, ecal=0.1)
        return self.network, terms, sum(weights.get(k, 1.0) * v for k, v in terms.items())


class Diffusion:
    """The velocity of noise that is drawn for each event at a level of its own."""

    schedule = ["denoise", "denoise"]

    def __init__(self):
        self.events = make_events(IMAGE, BATCH)
        self.network = Network(1, [(4, 3), (3,), (3, 3, 3, 5, 3), (3,), (2, 2, 2, 3, 4), (4,), (4,),
                                   (4,), (2, 2, 2, 3, 4), (3,), (3, 3, 3, 6, 1), (1,)], 0.25)

    def velocity_of(self, noisy, asked):
        p = self.network.parts()
        planes = asked.reshape(BATCH, 4, 1, 1, 1).expand(BATCH, 4, *IMAGE)
        features = F.silu(asked @ p[0] + p[1]).reshape(BATCH, 3, 1, 1, 1)
        fine = convolution(torch.cat([noisy[:, None], planes], dim=1), p[2], p[3], same=True)
        coarse = convolution(fine, p[4], p[5], stride=(2, 2, 2))
        coarse = F.silu(F.group_norm(coarse, 2, p[6], p[7], 1e-3))
        up = transposed(coarse, p[8], p[9], (2, 2, 2), same=False) + features
        return convolution(torch.cat([up, fine], dim=1), p[10], p[11], same=True)[:, 0]

    def step(self, slot):
        level = philox.uniforms(BATCH, **position(slot, 9))
        angle = torch.tensor(np.pi / 2 * level ** 2).reshape(BATCH, 1, 1, 1)
        noise = philox.normals(BATCH * int(np.prod(IMAGE)), **position(slot, 10)).astype(np.float32)
        noise = torch.tensor(noise.astype(np.float64).reshape((BATCH,) + IMAGE))
        noisy = torch.cos(angle) * self.events["images"] + torch.sin(angle) * noise
        velocity = torch.cos(angle) * noise - torch.sin(angle) * self.events["images"]
        asked = torch.stack([torch.tensor(level.astype(np.float32).astype(np.float64)),
                             self.events["energy"], self.events["angle"],
                             torch.tensor(column(0).astype(np.float32).astype(np.float64))], dim=1)
        loss = F.mse_loss(self.velocity_of(noisy, asked), velocity)
        return self.network, dict(velocity=loss), 0.7 * loss


CASES = dict(
    least_squares=lambda: Gan("least_squares", 0.0, ["d_real", "d_fake", "d_both", "g"]),
    hinge=lambda: Gan("hinge", 0.0, ["d_real", "d_fake", "d_both", "g"]),
    wasserstein=lambda: Gan("wasserstein", 5.0, ["d_real", "d_fake", "d_both", "g"]),
    conditional=lambda: ConditionalGan("wasserstein", 5.0, ["d_real", "d_fake", "d_both", "g"]),
    columns=lambda: ColumnGan("hinge", 0.0, ["d_real", "d_fake", "d_both", "g"]),
    supervised=Supervised,
    diffusion=Diffusion,
)


def main():
    with open(sys.argv[1], "w") as out:
        for name, case in CASES.items():
            model = case()
            for slot, kind in enumerate(model.schedule):
                network, terms, total = model.step(slot)
                gradient, = torch.autograd.grad(total, network.weights)
                network.update(gradient)
                out.write(f"slot {name} {slot} {kind}\n")
                for term, value in terms.items():
                    out.write(f"loss {term} {value.item():.12g}\n")
                out.write(line("tensor gradient 0", 0, gradient))
                out.write(line("tensor weights 1", 1, network.weights))


if __name__ == "__main__":
    main()
