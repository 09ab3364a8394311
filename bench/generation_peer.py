#!/usr/bin/python3
"""generation_peer.py MODEL FOLDER: PyTorch's side of bench_generation.

bench_generation.cpp says what is read, asked and answered. The network is that of training_peer.py.
"""

import pathlib
import sys
import time

import training_peer  # ends with "missing ..." without PyTorch
from training_peer import make_oracle, np, torch

BATCHES = (1, 8, 32)


class Generator:
    def __init__(self, model, folder, layout):
        description = training_peer.models.MODELS[model]
        self.network = training_peer.Network(
            description["generator"], (description["latent"],), 0, 0,
            training_peer.LAYOUTS[layout], make_oracle.EPSILON, False)
        self.load(folder)

    def load(self, folder):
        """Both files have the order of Keras, the moving statistics mean and variance in turn."""
        weights = np.fromfile(folder / "weights.f32", dtype="<f4")
        moving = np.fromfile(folder / "moving.f32", dtype="<f4")
        network, at = self.network, 0
        for parameter in network.parameters:
            shape = tuple(parameter.shape)
            if len(shape) == 5:  # (out, in, x, y, z), in the file (x, y, z, in, out)
                shape = shape[2:] + (shape[1], shape[0])
            count = int(np.prod(shape))
            values = torch.tensor(weights[at:at + count].reshape(shape))
            if values.dim() == 5:
                values = values.permute(4, 3, 0, 1, 2)
            with torch.no_grad():
                parameter.copy_(values)
            at += count
        assert at == len(weights), (at, len(weights))
        at = 0
        for pair in network.moving:
            for statistic in pair:
                statistic.copy_(torch.tensor(moving[at:at + len(statistic)]))
                at += len(statistic)
        assert at == len(moving), (at, len(moving))

    def make(self, latents, batch):
        with torch.inference_mode():
            return [self.network.run(some, False, None)[0] for some in latents.split(batch)]


class Peer:
    def __init__(self, model, folder):
        torch.set_num_threads(1)
        self.folder = pathlib.Path(folder)
        size = training_peer.models.MODELS[model]["latent"]
        latents = np.fromfile(self.folder / "latents.f32", dtype="<f4").reshape(-1, size)
        self.latents = torch.tensor(latents)
        self.generators = {layout: Generator(model, self.folder, layout)
                           for layout in training_peer.LAYOUTS}
        self.way = next(iter(self.generators)), BATCHES[0]

    def make(self):
        layout, batch = self.way
        return self.generators[layout].make(self.latents, batch)

    def seconds(self):
        start = time.process_time()
        self.make()
        return time.process_time() - start

    def choose(self):
        found = {}
        for layout in self.generators:
            for batch in BATCHES:
                self.way = layout, batch
                self.seconds()  # the first call chooses kernels and allocates
                found[self.way] = self.seconds()
        ranking = sorted(found, key=found.get)
        self.way = ranking[0]
        return ", ".join(f"{layout} batches of {batch} {found[layout, batch]:.2f} s"
                         for layout, batch in ranking)

    def answer(self, request):
        if request == "choose":
            return f"ok {self.choose()}"
        if request == "time":
            return f"ok {self.seconds()}"
        if request != "make":
            return f"error what is {request}"
        showers = torch.cat([part[:, 0] for part in self.make()])
        showers.contiguous().numpy().astype("<f4").tofile(self.folder / "showers.f32")
        return "ok"


def main():
    training_peer.keep_memory()
    peer = Peer(*sys.argv[1:])
    print("ok " + training_peer.version(), flush=True)
    for request in sys.stdin:
        print(peer.answer(request.strip()), flush=True)


main()
