"""Reads a file of showers as people do today, for bench_loader to compare with.

usage: loader_peers.py FILE h5py|dataloader in_order|shuffled IDS REPEATS WORKERS warm|cold

IDS is a file with the number of an event on each line, in the order to read them. Prints one line
`checksum CELLS ENERGIES` (sums over the events read, in double precision, from a reading that is not
timed) and one line `seconds S P` per repeat: on the clock, and of processors. h5py in order takes
slices of 64 events, shuffled it takes event after event, as a Dataset of PyTorch does. The DataLoader
has WORKERS workers and batches of 64. The page cache holds the file (warm) or nothing of it (cold)
when a repeat begins.
"""

import os
import resource
import sys
import time

import h5py
import numpy

BATCH = 64


def h5py_batches(path, order, ids, _):
    with h5py.File(path, "r") as file:
        images = file["ECAL"]
        energies = file["target"][:, 1]
        for first in range(0, len(ids), BATCH):
            chosen = ids[first : first + BATCH]
            if order == "in_order":
                batch = images[chosen[0] : chosen[-1] + 1]
            else:
                batch = numpy.stack([images[i] for i in chosen])
            yield batch, energies[chosen]


def dataloader_batches(path, order, ids, workers):
    import torch

    class Showers(torch.utils.data.Dataset):
        """Opens the file in the worker that uses it, as HDF5 handles do not survive a fork."""

        def __init__(self):
            self.file = None

        def __len__(self):
            return len(ids)

        def __getitem__(self, index):
            if self.file is None:
                self.file = h5py.File(path, "r")
            return torch.from_numpy(self.file["ECAL"][index]), self.file["target"][index, 1]

    loader = torch.utils.data.DataLoader(
        Showers(), batch_size=BATCH, sampler=ids, num_workers=workers
    )
    for images, energies in loader:
        yield images.numpy(), energies.numpy()


def processor_seconds():
    """That of this process and of workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def forget_pages(path):
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def main(path, library, order, ids_path, repeats, workers, state):
    with open(ids_path, encoding="ascii") as lines:
        ids = [int(line) for line in lines]
    batches = h5py_batches if library == "h5py" else dataloader_batches
    cells = energies = 0.0
    for images, primaries in batches(path, order, ids, workers):
        cells += float(numpy.sum(images, dtype=numpy.float64))
        energies += float(numpy.sum(primaries, dtype=numpy.float64))
    print(f"checksum {cells!r} {energies!r}", flush=True)
    for _ in range(repeats):
        if state == "cold":
            forget_pages(path)
        start, processor = time.perf_counter(), processor_seconds()
        for _ in batches(path, order, ids, workers):
            pass
        print(f"seconds {time.perf_counter() - start!r} {processor_seconds() - processor!r}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]), int(sys.argv[6]), sys.argv[7])
