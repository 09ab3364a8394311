#!/usr/bin/python3
"""Steps of a GAN whose batch norms are over all micro-batches, in PyTorch float64: the judge of Troupe's.

usage: shared_norm_case.py OUT.txt

The networks are those of tests/model/shared_statistics_test.cpp; numbers come from the same counters as
there. All micro-batches are one batch here, which F.batch_norm normalises as a whole. OUT.txt gets, per
step, every loss term, and of the gradient and of the statistics that a step contributes, each as one
vector, the L2 norm and 8 projections on random signs.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F

import make_oracle
import philox
from layers_case import channels_first, convolution, line

EVENTS, MICRO_BATCHES = 6, 3
IMAGE = (2, 2, 2)
LATENT = 3
ENERGY = 0.5  # of every event, and its sum of cells
EPSILON = 1e-3

GENERATOR = [((3, 16), 3, 16), ((16,), 0, 0), ((16,), "ones", 0), ((16,), 0, 0), ((2,), "ones", 0), ((2,), 0, 0),
             ((1, 1, 1, 2, 1), 2, 1), ((1,), 0, 0)]
DISCRIMINATOR = [((2, 2, 1, 1, 2), 4, 8), ((2,), 0, 0), ((2,), "ones", 0), ((2,), 0, 0), ((4, 4), 4, 4), ((4,), 0, 0),
                 ((4,), "ones", 0), ((4,), 0, 0), ((4, 1), 4, 1), ((1,), 0, 0)]


def weights(number, tensors):
    """As training begins, with all factors of a norm different."""
    made, offset = [], 0
    more = 0.1 * philox.normals(sum(int(np.prod(shape)) for shape, *_ in tensors), seed=5)
    for i, (shape, fan_in, fan_out) in enumerate(tensors):
        kind = "ones" if fan_in == "ones" else "glorot_uniform" if fan_in else "zeros"
        value = make_oracle.initialise(shape, kind, fan_in, fan_out, number, i)
        made.append((value + torch.tensor(more[offset:offset + value.numel()].reshape(shape))).requires_grad_())
        offset += value.numel()
    return made


def norm(x, gamma, beta, statistics):
    """Over all events and cells; `statistics` gets what moving statistics become. None: these are 0 and 1."""
    if statistics is None:
        return F.batch_norm(x, torch.zeros_like(gamma), torch.ones_like(gamma), gamma, beta, eps=EPSILON)
    rows = x.transpose(0, 1).flatten(1)
    statistics += [rows.mean(dim=1), rows.var(dim=1)]
    return F.batch_norm(x, None, None, gamma, beta, True, eps=EPSILON)


def generate(p, statistics):
    latents = []
    for micro_batch in range(MICRO_BATCHES):
        events = EVENTS // MICRO_BATCHES
        noise = philox.normals(events * LATENT, seed=11, micro_batch=micro_batch, iteration=2, stream=1)
        latents.append(noise.astype(np.float32).astype(np.float64).reshape(events, LATENT))
    latent = torch.tensor(np.concatenate(latents))
    latent[:, 0] = ENERGY
    x = torch.tanh(norm(latent @ p[0] + p[1], p[2], p[3], statistics))
    x = norm(channels_first(x.reshape((EVENTS,) + IMAGE + (2,))), p[4], p[5], statistics)
    return convolution(x, p[6], p[7])


def judge(p, images, labels, statistics):
    x = torch.tanh(norm(convolution(images, p[0], p[1]), p[2], p[3], statistics))
    x = x.permute(0, 2, 3, 4, 1).flatten(1) @ p[4] + p[5]
    score = torch.tanh(norm(x, p[6], p[7], statistics)) @ p[8] + p[9]
    total = images.sum(dim=(1, 2, 3, 4))
    return dict(score=F.binary_cross_entropy_with_logits(score[:, 0], labels),
                sum=((total - ENERGY) ** 2).mean())


def step(kind, real, g, d):
    """Loss terms, and the weights that the step is of, and its statistics."""
    statistics, of_generator = [], []
    ones, zeros = torch.ones(EVENTS, dtype=torch.float64), torch.zeros(EVENTS, dtype=torch.float64)
    if kind == "g":
        return judge(d, generate(g, of_generator), ones, statistics), g, of_generator + statistics
    fakes = generate(g, None).detach()
    images = dict(d_real=real, d_fake=fakes, d_both=torch.cat([real, fakes]))[kind]
    labels = dict(d_real=ones, d_fake=zeros, d_both=torch.cat([ones, zeros]))[kind]
    return judge(d, images, labels, statistics), d, statistics


def main():
    make_oracle.SEED = 7
    cells = (3.0 + philox.normals(EVENTS * int(np.prod(IMAGE)), seed=3)).astype(np.float32).astype(np.float64)
    real = torch.tensor(cells.reshape((EVENTS, 1) + IMAGE))
    g, d = weights(0, GENERATOR), weights(1, DISCRIMINATOR)
    with open(sys.argv[1], "w") as out:
        for kind in ("d_real", "d_fake", "g", "d_both"):
            terms, parameters, statistics = step(kind, real, g, d)
            gradients = torch.autograd.grad(1.5 * terms["score"] + 0.25 * terms["sum"], parameters)
            out.write(f"slot {kind}\n")
            for term, value in terms.items():
                out.write(f"loss {term} {value.item():.15g}\n")
            out.write(line("tensor gradient 0", 0, torch.cat([part.flatten() for part in gradients])))
            out.write(line("tensor statistics 1", 1, torch.cat(statistics)))


if __name__ == "__main__":
    main()
