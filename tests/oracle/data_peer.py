#!/usr/bin/python3
"""data_peer.py TROUPE: files that others' programs write (h5py, Python's gzip, protobuf's runtime with crcmod) are read by
`troupe data info`, and files that `troupe data convert` writes are read by them. Shares no code with Troupe."""

import gzip
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import crcmod.predefined
import h5py
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TROUPE = sys.argv[1]
CHECKS = 0


def check(what, found, wanted):
    global CHECKS
    CHECKS += 1
    if not np.allclose(found, wanted, rtol=1e-6, atol=0):
        sys.exit(f"{what}: {found}; expected {wanted}")


def same(what, found, wanted):
    global CHECKS
    CHECKS += 1
    if not np.array_equal(found, wanted):
        sys.exit(f"{what}: differs")


def info(path, *more):
    end = subprocess.run([TROUPE, "data", "info", str(path), "--json", *more], capture_output=True, text=True)
    if end.returncode != 0:
        sys.exit(f"data info {path}: {end.stderr}")
    return json.loads(end.stdout.splitlines()[-1])


def convert(source, out, schema, *more):
    end = subprocess.run([TROUPE, "data", "convert", str(source), str(out), "--to", schema, *more],
                         capture_output=True, text=True)
    if end.returncode != 0:
        sys.exit(f"data convert {source} to {schema}: {end.stderr}")


def example_class():
    """tf.train.Example, described as feature.proto and example.proto of TensorFlow do."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="peer", syntax="proto3")

    def message(name, **fields):
        described = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields.items(), 1):
            described.field.add(name=field, number=number, **kind)
        return described

    one, many = 1, 3
    message("BytesList", value=dict(type=12, label=many))
    message("FloatList", value=dict(type=2, label=many))
    message("Int64List", value=dict(type=3, label=many))
    feature = message("Feature", bytes_list=dict(type=11, label=one, type_name=".peer.BytesList", oneof_index=0),
                      float_list=dict(type=11, label=one, type_name=".peer.FloatList", oneof_index=0),
                      int64_list=dict(type=11, label=one, type_name=".peer.Int64List", oneof_index=0))
    feature.oneof_decl.add(name="kind")
    features = message("Features", feature=dict(type=11, label=many, type_name=".peer.Features.FeatureEntry"))
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=one)
    entry.field.add(name="value", number=2, type=11, label=one, type_name=".peer.Feature")
    message("Example", features=dict(type=11, label=one, type_name=".peer.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("peer.Example"))


EXAMPLE = example_class()
CRC32C = crcmod.predefined.mkCrcFun("crc-32c")


def masked(data):
    crc = CRC32C(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def records(path):
    data = Path(path).read_bytes()
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        content = data[at + 12:at + 12 + length]
        if data[at:at + 16 + length] != record(content):
            sys.exit(f"{path}: a record with a wrong checksum")
        at += 16 + length
        yield EXAMPLE.FromString(content).features.feature


def idx(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rb") as file:
        data = file.read()
    kind, axes = data[2], data[3]
    shape = struct.unpack(f">{axes}I", data[4:4 + 4 * axes])
    types = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
    return np.frombuffer(data, types[kind], offset=4 + 4 * axes).reshape(shape)


def theirs(folder, cells, energy):
    """Files of other programs."""
    with h5py.File(folder / "nnlo.h5", "w") as file:
        file["X"] = cells[..., None]
        file["y/a"] = np.ones(len(cells))
        file["y/b"] = energy / 100
        file["y/c"] = cells.sum((1, 2, 3))
    with h5py.File(folder / "calo.h5", "w") as file:
        file.create_dataset("showers", data=1000 * cells.reshape(len(cells), -1), compression="gzip")
        file.create_dataset("incident_energies", data=1000 * energy[:, None], compression="gzip")
    with h5py.File(folder / "bytes.h5", "w") as file:
        file.create_dataset("pictures", data=(cells > 0.5).astype(np.uint8), chunks=(7, 3, 4, 5), compression="gzip",
                            shuffle=True)
        file["truth/e"] = (1000 * energy).astype(np.int64)
    with open(folder / "theirs.tfrecord", "wb") as file:
        for image, e in zip(cells, energy):
            example = EXAMPLE()
            example.features.feature["ECAL"].float_list.value.extend(image.ravel())
            example.features.feature["energy"].float_list.value.append(e)
            example.features.feature["name"].bytes_list.value.append(b"electron")
            file.write(record(example.SerializeToString()))
    with gzip.open(folder / "packed.tfrecord", "wb") as file:
        file.write((folder / "theirs.tfrecord").read_bytes())

    ecal = cells.sum((1, 2, 3), dtype=np.float64)
    for name, schema, unit in [("nnlo.h5", "nnlo", 1), ("calo.h5", "calochallenge", 1000),
                               ("theirs.tfrecord", "tfrecord", 1), ("packed.tfrecord", "tfrecord", 1)]:
        found = info(folder / name)
        same(f"schema of {name}", found["schema"], schema)
        check(name, [found["events"], found["bad_events"], found["energy_gev"]["mean"], found["ecal"]["mean"]],
              [len(cells), 0, energy.mean(), unit * ecal.mean()])
    found = info(folder / "bytes.h5", "--image", "pictures", "--energy", "truth/e", "--energy-unit", "0.001")
    check("bytes.h5", [found["energy_gev"]["max"], found["ecal"]["mean"]],
          [np.trunc(1000 * energy).max() / 1000, (cells > 0.5).sum((1, 2, 3)).mean()])


def packed(folder, cells, energy):
    """Files of h5py whose chunks are packed as those of the field are, converted: every cell is the one that was written."""
    count = len(cells)
    layouts = {
        "gzip": dict(compression="gzip"), "light": dict(compression="gzip", compression_opts=1),
        "tight": dict(compression="gzip", compression_opts=9, shuffle=True),
        "one": dict(compression="gzip", chunks=(1, *cells.shape[1:])),
        # As dataset 2 of CaloChallenge, whose chunks hold a part of many events (391 x 51 of 100000 x 6480).
        "parts": dict(compression="gzip", chunks=(37, 2, 3, 2)),
        "ends": dict(compression="gzip", chunks=(count - 1, 2, 4, 4), shuffle=True),
        "checked": dict(compression="gzip", fletcher32=True),
        "grown": dict(compression="gzip", maxshape=(None, *cells.shape[1:])),
        "plain": dict(chunks=(5, 3, 4, 5)),
    }
    for name, how in layouts.items():
        for kind in ("<f4", "<f8", ">f4", ">f8", "<f2"):
            stored = cells.astype(kind)
            with h5py.File(folder / "p.h5", "w") as file:
                file.create_dataset("ECAL", data=stored, **how)
                file["target"] = np.stack([np.full(count, 11, np.float32), energy], 1)
            found = info(folder / "p.h5")
            check(f"{name} {kind}", [found["events"], found["bad_events"], found["ecal"]["mean"]],
                  [count, 0, stored.astype("f8").sum((1, 2, 3)).mean()])
            convert(folder / "p.h5", folder / "q.h5", "nnlo", "--force")
            with h5py.File(folder / "q.h5") as file:
                same(f"cells of {name} {kind}", file["X"][..., 0], stored.astype("f4"))
                check(f"energies of {name} {kind}", file["y/b"][:], energy / 100)
    # A filter that only h5py has.
    with h5py.File(folder / "p.h5", "w") as file:
        file.create_dataset("ECAL", data=cells, compression="lzf")
        file["target"] = np.stack([np.full(count, 11, np.float32), energy], 1)
    end = subprocess.run([TROUPE, "data", "info", str(folder / "p.h5")], capture_output=True, text=True)
    check("lzf", [end.returncode, "it is stored with lzf" in end.stderr], [4, True])
    # And as whole files: vectors of double precision in chunks that hold parts of events.
    rows = 1000 * cells.reshape(count, -1).astype("f8")
    with h5py.File(folder / "v.h5", "w") as file:
        file.create_dataset("showers", data=rows, chunks=(39, 51), compression="gzip")
        file.create_dataset("incident_energies", data=1000 * energy[:, None].astype("f8"), compression="gzip")
    convert(folder / "v.h5", folder / "w.tfrecord", "tfrecord")
    found = list(records(folder / "w.tfrecord"))
    check("voxels", [list(each["ECAL"].float_list.value) for each in found], rows / 1000)


def ours(folder, cells, energy):
    """Files of `data convert`, from one of h5py."""
    with h5py.File(folder / "a.h5", "w") as file:
        file["ECAL"] = cells
        file["target"] = np.stack([np.full(len(cells), 11, np.float32), energy], 1)
    for schema, name in [("nnlo", "n.h5"), ("lcd-angle", "l.h5"), ("tfrecord", "t.tfrecord"),
                         ("idx", "images-idx4-float")]:
        convert(folder / "a.h5", folder / name, schema)
    with h5py.File(folder / "n.h5") as file:
        same("X", file["X"][..., 0], cells)
        check("y/b", file["y/b"][:], energy / 100)
        check("y/c", file["y/c"][:], cells.sum((1, 2, 3)))
    with h5py.File(folder / "l.h5") as file:
        check("ECAL", file["ECAL"][:], 50 * cells)
        same("energy", file["energy"][:], energy)
        check("theta", file["theta"][:], np.full(len(cells), np.pi / 2))
        same("source", bytes(file.attrs["source"]), b"a.h5")
    found = list(records(folder / "t.tfrecord"))
    same("records", [list(each["shape"].int64_list.value) for each in found], [[3, 4, 5]] * len(cells))
    same("ECAL", [list(each["ECAL"].float_list.value) for each in found], cells.reshape(len(cells), -1))
    same("energy", [each["energy"].float_list.value[0] for each in found], energy)
    same("images", idx(folder / "images-idx4-float"), cells)
    check("labels", idx(folder / "labels-idx1-float") + 1.0, energy.astype(np.float64) / 10)
    origin = json.loads((folder / "t.tfrecord.origin.json").read_text())
    same("source schema", origin["source_schema"], "lcd-fixed")
    # And back.
    convert(folder / "t.tfrecord", folder / "b.h5", "lcd-fixed")
    with h5py.File(folder / "b.h5") as file:
        same("ECAL", file["ECAL"][:], cells)
        same("energy", file["target"][:, 1], energy)


def real(folder):
    """The files of Fashion-MNIST as Debian packs them, where they are, and of MNIST where TROUPE_MNIST names their folder."""
    import os
    folders = [Path("/usr/share/datasets/fashion-mnist")]
    if "TROUPE_MNIST" in os.environ:
        folders.append(Path(os.environ["TROUPE_MNIST"]))
    for source in folders:
        for path in sorted(source.glob("*images-idx3-ubyte*")):
            images = idx(path)
            labels = idx(str(path).replace("images-idx3", "labels-idx1"))
            found = info(path)
            sums = images.sum((1, 2), dtype=np.float64)
            check(str(path), [found["events"], found["bad_events"], found["ecal"]["mean"], found["ecal"]["max"],
                              found["energy_gev"]["mean"]],
                  [len(images), 0, sums.mean(), sums.max(), 10 * (labels.mean() + 1)])
            print(f"{path}: {len(images)} events")
    path = folders[0] / "t10k-images-idx3-ubyte.gz"
    if path.exists():
        convert(path, folder / "t10k-images-idx3-ubyte", "idx")
        same("images", idx(folder / "t10k-images-idx3-ubyte"), idx(path))
        same("labels", idx(folder / "t10k-labels-idx1-ubyte"), idx(folders[0] / "t10k-labels-idx1-ubyte.gz"))


def main():
    random = np.random.default_rng(1)
    cells = random.uniform(-0.5, 1, (50, 3, 4, 5)).clip(0).astype(np.float32)
    energy = random.uniform(10, 500, 50).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        theirs(Path(name), cells, energy)
        packed(Path(name), cells, energy)
        ours(Path(name), cells, energy)
        real(Path(name))
    print(f"{CHECKS} of {CHECKS} checks agree")


main()
