#!/usr/bin/python3
"""PyTorch's side of bench_training: the same training iteration, as fast as PyTorch makes it.

usage: training_peer.py MODEL THREADS EVENTS PRECISION [LAYOUT PARTS]

EVENTS is the number of events per optimiser step, computed in PARTS equal parts; PRECISION is fp32,
or bf16: autocast up to the heads. Reads requests from standard input, a line each, and answers each
with a line:
  check N   "ok slot/term=loss ...": one iteration on N events, whose weights, noise, dropout masks
            and flips come from the same counters as Troupe's
  choose    "ok LAYOUT PARTS seconds, ...": an iteration of each way, the fastest first
  time N    "ok WALL PROCESSOR": seconds of N iterations
  peak      "ok KIB": the largest resident size so far
Model, inputs and heads are those of tests/oracle, which compares them with Troupe tensor by tensor.
"""

import ctypes
import os
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "oracle"))

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"missing {error} ({sys.executable})", flush=True)
    sys.exit(0)

import make_oracle  # noqa: E402
import models  # noqa: E402
import philox  # noqa: E402

EPSILON = 1e-7  # of RMSprop where it is timed; the oracle's, where losses are compared, is larger
CHECKED_BIAS = 0.01
TOLERANCE = 2e-2  # of losses between layouts, relative
LAYOUTS = {"NCDHW": torch.contiguous_format, "channels_last_3d": torch.channels_last_3d}


DEVICE = "cpu"  # card_peer.py takes a card


def to_float(tensor):
    return tensor.detach().to(DEVICE, torch.float32)


class Network:
    """A list of layers with PyTorch's own operations and kernels in PyTorch's order of axes."""

    def __init__(self, layers, input_shape, heads, number, layout, epsilon, bf16):
        self.layers, self.layout, self.bf16 = layers, layout, bf16
        shapes = models.parameter_shapes(layers, input_shape, heads)
        self.parameters, self.moving = [], []
        for index, (role, shape, kind, fan_in, fan_out) in enumerate(shapes):
            value = to_float(make_oracle.initialise(shape, kind, fan_in, fan_out, number, index))
            if role == "bias":  # as bench/training_on_troupe.cpp, which says why
                value.fill_(CHECKED_BIAS)
            if value.dim() == 5:
                value = value.permute(4, 3, 0, 1, 2).contiguous(memory_format=layout)
            self.parameters.append(value.requires_grad_())
            if role == "gamma":
                self.moving.append((torch.zeros(shape[0], device=DEVICE),
                                    torch.ones(shape[0], device=DEVICE)))
        self.optimiser = torch.optim.RMSprop(
            self.parameters, lr=make_oracle.LEARNING_RATE, alpha=make_oracle.RHO,
            eps=epsilon, foreach=True)

    def convolution(self, x, kernel, bias, o):
        size = o["kernel"]
        if not o["same"]:
            return F.conv3d(x, kernel, bias, padding=o["pad"])
        before = [(k - 1) // 2 for k in size]
        after = [k - 1 - b for k, b in zip(size, before)]
        if before == after:
            return F.conv3d(x, kernel, bias, padding=before)
        x = F.pad(x, (before[2], after[2], before[1], after[1], before[0], after[0]))
        return F.conv3d(x, kernel, bias)

    def run(self, x, training, drop):
        """The trunk's output and the parameters of the heads. drop(number of the dropout, x)."""
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=self.bf16):
            x, heads = self.trunk(x, training, drop)
        return x.float(), heads

    def trunk(self, x, training, drop):
        at, norms, drops = 0, 0, 0
        for kind, o in self.layers:
            if kind == "dense":
                x = torch.addmm(self.parameters[at + 1], x, self.parameters[at])
                at += 2
            elif kind == "reshape":
                x = x.reshape((x.shape[0],) + o["to"]).permute(0, 4, 1, 2, 3)
                x = x.contiguous(memory_format=self.layout)
            elif kind == "upsample":
                x = F.interpolate(x, scale_factor=tuple(map(float, o["factor"])), mode="nearest")
            elif kind == "conv":
                bias = self.parameters[at + 1] if o["bias"] else None
                x = self.convolution(x, self.parameters[at], bias, o)
                at += 2 if o["bias"] else 1
            elif kind == "relu":
                x = F.relu_(x)
            elif kind == "leaky":
                x = F.leaky_relu_(x, models.LEAKY)
            elif kind == "norm":
                mean, variance = self.moving[norms]
                x = F.batch_norm(x, mean, variance, self.parameters[at], self.parameters[at + 1],
                                 training, 1 - models.BN_MOMENTUM, models.BN_EPSILON)
                at, norms = at + 2, norms + 1
            elif kind == "drop":
                x = drop(drops, x) if training else x
                drops += 1
            elif kind == "pool":
                x = F.avg_pool3d(x, o["size"])
        return x, self.parameters[at:]


class Iteration:
    """D on real, D on fakes, G, G, each step on `events` events in `parts` equal parts."""

    def __init__(self, name, events, layout, parts, counted, bf16=False):
        self.model, self.events, self.parts = models.MODELS[name], events, parts
        self.counted = counted
        made = make_oracle.make_events(self.model["image"], events)
        self.conditions = {k: to_float(v) for k, v in made.items()}
        self.drop_layers = make_oracle.dropout_layers(name)
        self.layout = LAYOUTS[layout]
        epsilon = make_oracle.EPSILON if counted else EPSILON
        g, d, image = self.model["generator"], self.model["discriminator"], self.model["image"]
        self.g = Network(g, (self.model["latent"],), 0, 0, self.layout, epsilon, bf16)
        self.d = Network(d, image + (1,), 2, 1, self.layout, epsilon, bf16)
        self.conditions["images"] = self.conditions["images"][:, None].contiguous(
            memory_format=self.layout)

    @staticmethod
    def position(slot, stream):
        return dict(seed=make_oracle.SEED, micro_batch=make_oracle.MICRO_BATCH,
                    iteration=make_oracle.ITERATION, slot=slot, stream=stream)

    def noise(self, slot, count):
        shape = (count, self.model["latent"])
        if not self.counted:
            return torch.randn(shape, device=DEVICE)
        where = self.position(slot, make_oracle.LATENT_STREAM)
        return torch.tensor(philox.normals(shape[0] * shape[1], **where).astype(np.float32)
                            .reshape(shape))

    def latent(self, slot, part):
        noise = self.noise(slot, len(part["energy"]))
        if self.model["mode"] == "multiply":
            return noise * part["energy"][:, None]
        noise[:, 0], noise[:, 1] = part["energy"], part["angle"]
        return noise

    def drop(self, slot):
        def random(_, x):
            return F.dropout(x, 0.2)

        def counted(i, x):
            n, c, sx, sy, sz = x.shape
            u = philox.uniforms(x.numel(), **self.position(slot, 0x2000 + self.drop_layers[i]))
            mask = torch.tensor(np.where(u >= 0.2, 1.25, 0.0).astype(np.float32)
                                .reshape(n, sx, sy, sz, c))
            return x * mask.permute(0, 4, 1, 2, 3)
        return counted if self.counted else random

    def labels(self, slot, kind, count):
        label = 0.0 if kind == "d_fake" else 1.0
        labels = torch.full((count,), label, device=DEVICE)
        if kind == "g":
            return labels
        where = self.position(slot, make_oracle.FLIP_STREAM)
        u = (torch.tensor(philox.uniforms(count, **where)) if self.counted
             else torch.rand(count, device=DEVICE))
        return torch.where(u < make_oracle.FLIP_PROBABILITY, 1 - labels, labels)

    def discriminate(self, images, part, slot, kind):
        """The unweighted loss terms by name, and the weighted total."""
        trunk, heads = self.d.run(images, True, self.drop(slot))
        flat = trunk.permute(0, 2, 3, 4, 1).reshape(len(trunk), -1)
        power = self.model["power"]
        cells = images[:, 0]
        energy = cells if power is None else torch.clamp(cells, min=0.0) ** (1.0 / power)
        outputs = dict(
            generation=torch.sigmoid(torch.addmm(heads[1], flat, heads[0]))[:, 0],
            auxiliary=torch.addmm(heads[3], flat, heads[2])[:, 0],
            angle=models.angle_head(energy) if power else None,
            ecal=energy.sum(dim=(1, 2, 3)),
        )
        targets = dict(generation=self.labels(slot, kind, len(images)), auxiliary=part["energy"],
                       angle=part["angle"], ecal=part["ecal"])
        terms = {name: models.loss(loss, outputs[name], targets[name])
                 for name, loss, _ in self.model["losses"]}
        return terms, sum(weight * terms[name] for name, _, weight in self.model["losses"])

    def images(self, part, slot, kind):
        if kind == "d_real":
            return part["images"]
        with torch.set_grad_enabled(kind == "g"):
            return self.g.run(self.latent(slot, part), kind == "g", None)[0]

    def step(self, slot, kind):
        """One optimiser step; {term: loss}."""
        updated = self.g if kind == "g" else self.d
        for weight in self.d.parameters:
            weight.requires_grad_(kind != "g")
        updated.optimiser.zero_grad(set_to_none=True)
        losses = {}
        size = self.events // self.parts
        for first in range(0, self.events, size):
            part = {k: v[first:first + size] for k, v in self.conditions.items()}
            terms, total = self.discriminate(self.images(part, slot, kind), part, slot, kind)
            (total / self.parts).backward()
            for name, value in terms.items():
                losses[name] = losses.get(name, 0.0) + value.detach() / self.parts
        updated.optimiser.step()
        return losses

    def run(self):
        """{"slot/term": loss} of the four steps."""
        return {f"{slot}/{name}": value.item()
                for slot, kind in enumerate(make_oracle.SCHEDULE)
                for name, value in self.step(slot, kind).items()}


def timed(iteration):
    start = time.perf_counter()
    losses = iteration.run()
    assert all(np.isfinite(v) for v in losses.values()), losses
    return time.perf_counter() - start


class Peer:
    def __init__(self, model, threads, events, precision, layout="channels_last_3d", parts="1"):
        torch.set_num_threads(int(threads))
        self.model, self.events, self.bf16 = model, int(events), precision == "bf16"
        self.layout, self.parts, self.iteration = layout, int(parts), None

    def check(self, events):
        """Every layout computes what is compared; the answer is that of the last one."""
        # Without AVX-512 PyTorch rounds within a convolution's sums, so that its bf16 is no measure
        # of others: there its fp32 is compared.
        bf16 = self.bf16 and has_avx512()
        answers = [Iteration(self.model, events, layout, 1, True, bf16).run()
                   for layout in LAYOUTS]
        for name, value in answers[0].items():
            # With bf16 weights differ after the first step.
            tolerance = 0.5 if bf16 and not name.startswith("0/") else TOLERANCE
            if abs(answers[1][name] - value) > tolerance * abs(value):
                return f"error {name} is {value} or {answers[1][name]}, by layout"
        return "ok " + " ".join(f"{name}={value:.9g}" for name, value in answers[1].items())

    def choose(self):
        seconds = {}
        for layout in LAYOUTS:
            for parts in (1, 2):
                if self.events % parts == 0:
                    iteration = Iteration(self.model, self.events, layout, parts, False,
                                          self.bf16)
                    timed(iteration)  # the first call chooses kernels and allocates
                    seconds[f"{layout} {parts}"] = timed(iteration)
        ranking = sorted(seconds, key=seconds.get)
        return "ok " + ", ".join(f"{way} {seconds[way]:.2f} s" for way in ranking)

    def time(self, iterations):
        if self.iteration is None:
            self.iteration = Iteration(self.model, self.events, self.layout, self.parts, False,
                                       self.bf16)
        start, processor = time.perf_counter(), time.process_time()
        for _ in range(iterations):
            timed(self.iteration)
        return f"ok {time.perf_counter() - start:.6f} {time.process_time() - processor:.6f}"

    def answer(self, request):
        words = request.split()
        if words[0] == "check":
            return self.check(int(words[1]))
        if words[0] == "choose":
            return self.choose()
        if words[0] == "time":
            return self.time(int(words[1]))
        if words[0] == "peak":
            return f"ok {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}"
        return "error what is " + request


def has_avx512():
    """Whether oneDNN has what its convolutions in bfloat16 need."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    return {"avx512bw", "avx512vl", "avx512dq"} <= set(flags)


def keep_memory():
    """glibc would give large blocks back after each use, and every operation meet fresh pages."""
    libc = ctypes.CDLL(None)
    mmap_max, trim_threshold = -4, -1
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, 2**31 - 1)


def version():
    lines = torch.__config__.show().split("\n")
    library = [line.split("(Git")[0].strip(" -") for line in lines if "MKL-DNN" in line]
    return f"PyTorch {torch.__version__}, " + ", ".join(library)


def main():
    keep_memory()
    peer = Peer(*sys.argv[1:])
    print("ok " + version(), flush=True)
    for request in sys.stdin:
        print(peer.answer(request), flush=True)


if __name__ == "__main__":
    main()
