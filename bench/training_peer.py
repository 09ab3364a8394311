#!/usr/bin/python3
"""PyTorch's side of bench_training: the same training iteration, as fast as PyTorch makes it.

usage: training_peer.py MODEL THREADS EVENTS PRECISION [LAYOUT PARTS]

EVENTS is the number of events per optimiser step, computed in PARTS equal parts; PRECISION is fp32,
or bf16: autocast up to the heads. Reads requests from standard input, a line each, and answers each
with a line:
  check N   "ok slot/term=loss ...": one iteration on N events, two of a task with one step, whose
            weights, noise, dropout masks and flips come from the same counters as Troupe's
  choose    "ok LAYOUT PARTS seconds, ...": an iteration of each way, the fastest first
  time N    "ok WALL PROCESSOR": seconds of N iterations
  peak      "ok KIB": the largest resident size so far
Networks are read from Troupe's zoo, schedules and optimisers from its topologies.
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
    import yaml
except ImportError as error:
    print(f"missing {error} ({sys.executable})", flush=True)
    sys.exit(0)

import make_oracle  # noqa: E402
import models  # noqa: E402
import philox  # noqa: E402
import torch_network  # noqa: E402
from torch_network import LAYOUTS  # noqa: E402

EPSILON = 1e-7  # of RMSprop where it is timed; the oracle's, where losses are compared, is larger
LEARNING_RATE, RHO = make_oracle.LEARNING_RATE, make_oracle.RHO
CHECKED_BIAS = 0.01
TOLERANCE = 2e-2  # of losses between layouts, relative
FLIP_PROBABILITY = 0.05
LEVEL_STREAM, NOISE_STREAM = 9, 10
TOPOLOGIES = dict(gan3d_12="quickstart")  # where it is not called as its model is
HEAD_UNITS = 16  # at most, of a dense layer that autocast leaves alone
ONLY_SLOTS = dict(supervised="fit", diffusion="denoise")

DEVICE = "cpu"  # card_peer.py takes a card
DTYPE = torch.float32  # tests/oracle/zoo_case.py takes float64


def of_type(tensor):
    return tensor.detach().to(DEVICE, DTYPE)


def train_section(model):
    path = os.path.join(HERE, "..", "config", "topologies", TOPOLOGIES.get(model, model) + ".yaml")
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)["train"]


class Network(torch_network.Network):
    """With its initial weights and its optimiser."""

    def __init__(self, description, number, layout, optimiser=None, epsilon=EPSILON, bf16=False):
        super().__init__(description, layout, DTYPE, DEVICE)
        self.number, self.bf16 = number, bf16
        values = [make_oracle.initialise(shape, kind, fan_in, fan_out, number, index)
                  for index, (_, shape, kind, fan_in, fan_out) in enumerate(self.tensors)]
        for value, (role, *_) in zip(values, self.tensors):
            if role == "bias":  # as bench/training_on_troupe.cpp, which says why
                value.fill_(CHECKED_BIAS)
        self.take(values)
        self.optimiser = make_optimiser(self.parameters, optimiser, epsilon)

    def run(self, x, training=True, drop=None, conditions=None):
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=self.bf16):
            return [output.to(DTYPE) for output in super().run(x, training, drop, conditions)]

    def dense(self, layer, x, kernel, bias=None):
        """Heads in float."""
        if not self.bf16 or kernel.shape[1] > HEAD_UNITS:
            return super().dense(layer, x, kernel, bias)
        with torch.autocast(DEVICE, enabled=False):
            return super().dense(layer, x.float(), kernel, bias)


def make_optimiser(parameters, written, epsilon):
    """`written`: as in a topology; RMSprop where losses are compared."""
    written = written if isinstance(written, dict) else dict(kind=written)
    if not parameters:
        return None
    if written["kind"] == "adam":
        return torch.optim.Adam(parameters, lr=LEARNING_RATE, eps=epsilon, foreach=True,
                                betas=(written.get("beta_1", 0.9), written.get("beta_2", 0.999)))
    return torch.optim.RMSprop(parameters, lr=LEARNING_RATE, alpha=RHO, eps=epsilon, foreach=True)


def loss(kind, output, target):
    if kind == "cross_entropy":
        return F.cross_entropy(output, target.long())
    if output.dim() == 2 and output.shape[1] == 1:
        output = output[:, 0]
    if kind == "mse":
        return F.mse_loss(output, target)
    return F.huber_loss(output, target) if kind == "huber" else models.loss(kind, output, target)


class Iteration:
    """All steps of the schedule, each on `events` events in `parts` equal parts."""

    def __init__(self, name, events, layout, parts, counted, bf16=False):
        self.model, self.train = torch_network.zoo(name), train_section(name)
        self.task = self.model.get("task", "gan")
        self.events, self.parts, self.counted, self.layout = events, parts, counted, layout
        self.iteration = 0
        if self.task == "gan":
            self.latent_options = self.model["generator"]["latent"]
            size = self.latent_options["size"]
            self.g = self.made(dict(self.model["generator"], input=[size]), 0, "g", bf16)
            self.d = self.made(self.model["discriminator"], 1, "d", bf16)
            self.schedule = self.train["schedule"]
        else:
            self.g, self.d = None, self.made(self.model["network"], 1, "network", bf16)
            self.schedule = [ONLY_SLOTS[self.task]]
        self.make_data()

    def made(self, description, number, optimiser, bf16):
        written = "rmsprop" if self.counted else self.train["optimiser"][optimiser]
        epsilon = make_oracle.EPSILON if self.counted else EPSILON
        return Network(description, number, self.layout, written, epsilon, bf16)

    def make_data(self):
        """Numbers of the events, and their images in PyTorch's order."""
        cells = self.d.input_shape[:-1]
        made = make_oracle.make_events(cells, self.events)
        self.data = {k: of_type(v) for k, v in made.items()}
        self.data["images"] = self.d.image(self.data["images"][..., None])
        columns = [l for l in self.model["losses"].values() if self.classes_of(l)]
        for number, written in enumerate(columns):
            u = philox.uniforms((number + 1) * self.events, seed=make_oracle.DATA_SEED, stream=11)
            classes = np.floor(u[number * self.events:] * self.classes_of(written))
            self.data[written["target"]] = torch.tensor(classes, dtype=DTYPE, device=DEVICE)

    def classes_of(self, written):
        """How many classes a loss term tells; 0: none."""
        if written["kind"] != "cross_entropy":
            return 0
        term = next(name for name, other in self.model["losses"].items() if other is written)
        return self.d.shapes[self.d.places[term]][-1]

    def position(self, slot, stream):
        return dict(seed=make_oracle.SEED, micro_batch=make_oracle.MICRO_BATCH,
                    iteration=make_oracle.ITERATION + self.iteration, slot=slot, stream=stream)

    def uniforms(self, slot, stream, count):
        if not self.counted:
            return torch.rand(count, device=DEVICE)
        return torch.tensor(philox.uniforms(count, **self.position(slot, stream)))

    def normals(self, slot, stream, *shape):
        if not self.counted:
            return torch.randn(shape, device=DEVICE)
        values = philox.normals(int(np.prod(shape)), **self.position(slot, stream))
        return torch.tensor(values.astype(np.float32).reshape(shape))

    def latent(self, slot, part):
        noise = self.normals(slot, make_oracle.LATENT_STREAM, len(part["energy"]),
                             self.latent_options["size"])
        conditions = self.latent_options.get("conditions", [])
        if self.latent_options.get("mode") == "multiply":
            return of_type(noise * part[conditions[0]].float()[:, None])
        for i, condition in enumerate(conditions):
            noise[:, i] = part[condition]
        return of_type(noise)

    def drop(self, slot, network):
        def counted(layer, rate, x):
            last = torch_network.cells_last(x)
            stream = 0x1000 + 0x1000 * network.number + layer
            u = philox.uniforms(x.numel(), **self.position(slot, stream))
            mask = torch.tensor(np.where(u >= rate, 1.0 / (1.0 - rate), 0.0), dtype=DTYPE)
            mask = mask.reshape(last.shape)
            return x * torch_network.channels_first(mask)
        return counted if self.counted else None

    def labels(self, slot, kind, count):
        label = 0.0 if kind == "d_fake" else 1.0
        labels = torch.full((count,), label, dtype=DTYPE, device=DEVICE)
        probability = self.train.get("flip_probability", FLIP_PROBABILITY)
        if kind == "g" or probability == 0:
            return labels
        u = self.uniforms(slot, make_oracle.FLIP_STREAM, count)
        return torch.where(u < probability, 1 - labels, labels)

    def conditions_of(self, part):
        names = self.d.conditions
        return torch.stack([part[name] for name in names], dim=1) if names else None

    def judge(self, images, part, slot, targets):
        """The unweighted loss terms by name, and the weighted total."""
        outputs = self.d.run(images, True, self.drop(slot, self.d), self.conditions_of(part))
        terms, total = {}, 0.0
        for name, output in zip(self.names, outputs):
            written = self.model["losses"].get(name)
            if written is None:
                continue
            terms[name] = loss(written["kind"], output, targets[written["target"]])
            total = total + written.get("weight", 1.0) * terms[name]
        return terms, total

    @property
    def names(self):
        return (self.model.get("discriminator") or self.model["network"])["outputs"]

    def images(self, part, slot, kind):
        if kind in ("d_real", "fit"):
            return part["images"]
        with torch.set_grad_enabled(kind == "g"):
            return self.g.run(self.latent(slot, part), kind == "g")[0]

    def noisy(self, slot, part):
        """The network's input, and the velocity that it learns."""
        images = part["images"]
        level = self.uniforms(slot, LEVEL_STREAM, len(images))
        angle = of_type(np.pi / 2 * level ** 2)
        view = (-1,) + (1,) * (images.dim() - 1)
        signal, share = torch.cos(angle).view(view), torch.sin(angle).view(view)
        last = torch_network.cells_last(images)
        noise = of_type(torch_network.channels_first(self.normals(slot, NOISE_STREAM, *last.shape)))
        told = [of_type(level.float())] + [part[name] for name
                                            in self.model["diffusion"]["conditions"]]
        planes = [value.view(view).expand_as(images) for value in told]
        inputs = torch.cat([signal * images + share * noise, *planes], dim=1)
        return self.d.laid_out(inputs), signal * noise - share * images

    def learn(self, slot, kind, part):
        if kind == "denoise":
            inputs, velocity = self.noisy(slot, part)
            return self.judge(inputs, part, slot, dict(velocity=velocity))
        targets = dict(part, label=self.labels(slot, kind, len(part["images"])))
        return self.judge(self.images(part, slot, kind), part, slot, targets)

    def step(self, slot, kind):
        """One optimiser step; {term: loss}."""
        updated = self.g if kind == "g" else self.d
        for weight in self.d.parameters:
            weight.requires_grad_(kind != "g")
        updated.optimiser.zero_grad(set_to_none=True)
        losses = {}
        size = self.events // self.parts
        for first in range(0, self.events, size):
            part = {k: v[first:first + size] for k, v in self.data.items()}
            terms, total = self.learn(slot, kind, part)
            (total / self.parts).backward()
            for name, value in terms.items():
                losses[name] = losses.get(name, 0.0) + value.detach() / self.parts
        updated.optimiser.step()
        return losses

    def run(self):
        """{"number of the step/term": loss} of an iteration."""
        first = self.iteration * len(self.schedule)
        losses = {f"{first + slot}/{name}": value.item()
                  for slot, kind in enumerate(self.schedule)
                  for name, value in self.step(slot, kind).items()}
        self.iteration += 1
        return losses

    def checked(self):
        """The losses that are compared: of two steps at least."""
        losses = self.run()
        return losses if len(self.schedule) > 1 else {**losses, **self.run()}


def timed(iteration):
    start = time.perf_counter()
    losses = iteration.run()
    assert all(np.isfinite(v) for v in losses.values()), losses
    return time.perf_counter() - start


class Peer:
    def __init__(self, model, threads, events, precision, layout="channels_last", parts="1"):
        torch.set_num_threads(int(threads))
        self.model, self.events, self.bf16 = model, int(events), precision == "bf16"
        self.layout, self.parts, self.iteration = layout, int(parts), None

    def check(self, events):
        """Every layout computes what is compared; the answer is that of the last one."""
        # Without AVX-512 PyTorch rounds within a convolution's sums, so that its bf16 is no measure
        # of others: there its fp32 is compared.
        bf16 = self.bf16 and has_avx512()
        answers = [Iteration(self.model, events, layout, 1, True, bf16).checked()
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
