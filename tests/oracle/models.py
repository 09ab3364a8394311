"""gan3d_25 and gan3d_51 in PyTorch, float64, with the names, order and shapes of Keras.

Written from the tables of the published models, sharing nothing with the C++ or its zoo files.
A network is a list of (kind, options); parameters are made in the order of the list.
"""

import numpy as np
import torch
import torch.nn.functional as F

LEAKY = 0.3
BN_EPSILON = 1e-6
BN_MOMENTUM = 0.99


def conv(filters, kernel, pad=(0, 0, 0), same=False, bias=True, init="glorot_uniform"):
    return ("conv", dict(filters=filters, kernel=kernel, pad=pad, same=same, bias=bias, init=init))


def relu():
    return ("relu", {})


def leaky():
    return ("leaky", {})


def norm():
    return ("norm", {})


def drop(rate=0.2):
    return ("drop", dict(rate=rate))


MODELS = {
    "gan3d_51": dict(
        image=(51, 51, 25),
        latent=256,
        mode="prepend",
        generator=[
            ("dense", dict(units=5184)),
            ("reshape", dict(to=(9, 9, 8, 8))),
            ("upsample", dict(factor=(6, 6, 6))),
            conv(8, (6, 6, 8), init="he_uniform"), relu(), norm(),
            conv(6, (4, 4, 6), pad=(2, 2, 1), init="he_uniform"), relu(), norm(),
            conv(6, (4, 4, 6), pad=(2, 2, 1), init="he_uniform"), relu(), norm(),
            conv(6, (4, 4, 6), pad=(2, 2, 1), init="he_uniform"), relu(), norm(),
            conv(6, (3, 3, 5), pad=(1, 1, 0), init="he_uniform"), relu(), norm(),
            conv(6, (3, 3, 3), pad=(1, 1, 0), init="he_uniform"), relu(),
            conv(1, (2, 2, 2), init="glorot_normal"), relu(),
        ],
        discriminator=[
            conv(16, (5, 6, 6), same=True), leaky(), drop(),
            conv(8, (5, 6, 6), pad=(0, 0, 1)), leaky(), norm(), drop(),
            conv(8, (5, 6, 6), pad=(0, 0, 1)), leaky(), norm(), drop(),
            conv(8, (5, 6, 6)), leaky(), norm(), drop(),
            ("pool", dict(size=2)),
        ],
        power=0.85,
        losses=[("generation", "bce", 3.0), ("auxiliary", "mape", 0.1), ("angle", "mae", 25.0),
                ("ecal", "mape", 0.1)],
    ),
    "gan3d_25": dict(
        image=(25, 25, 25),
        latent=200,
        mode="multiply",
        generator=[
            ("dense", dict(units=3136)),
            ("reshape", dict(to=(7, 7, 8, 8))),
            conv(64, (6, 6, 8), same=True, init="he_uniform"), leaky(), norm(),
            ("upsample", dict(factor=(2, 2, 2))),
            conv(6, (6, 5, 8), pad=(2, 2, 0), init="he_uniform"), leaky(), norm(),
            ("upsample", dict(factor=(2, 2, 3))),
            conv(6, (3, 3, 8), pad=(1, 0, 3), init="he_uniform"), leaky(),
            conv(1, (2, 2, 2), bias=False, init="glorot_normal"), relu(),
        ],
        discriminator=[
            conv(32, (5, 5, 5), same=True), leaky(), drop(),
            conv(8, (5, 5, 5), pad=(2, 2, 2)), leaky(), norm(), drop(),
            conv(8, (5, 5, 5), pad=(2, 2, 2)), leaky(), norm(), drop(),
            conv(8, (5, 5, 5), pad=(1, 1, 1)), leaky(), norm(), drop(),
            ("pool", dict(size=2)),
        ],
        power=None,
        losses=[("generation", "bce", 2.0), ("auxiliary", "mape", 0.1), ("ecal", "mape", 0.1)],
    ),
}


def parameter_shapes(layers, input_shape, heads):
    """[(role, Keras shape, initialiser, fan in, fan out)] in order, and the flat size of the trunk."""
    shapes = []
    shape = tuple(input_shape)  # (features,) or (x, y, z, c)
    for kind, o in layers:
        if kind == "dense":
            fan_in, units = shape[-1], o["units"]
            shapes += [("kernel", (fan_in, units), "glorot_uniform", fan_in, units),
                       ("bias", (units,), "zeros", 0, 0)]
            shape = (units,)
        elif kind == "reshape":
            shape = o["to"]
        elif kind == "upsample":
            shape = tuple(s * f for s, f in zip(shape, o["factor"])) + shape[3:]
        elif kind == "conv":
            k = o["kernel"]
            cells = int(np.prod(k))
            shapes.append(("kernel", k + (shape[3], o["filters"]), o["init"], cells * shape[3],
                           cells * o["filters"]))
            if o["bias"]:
                shapes.append(("bias", (o["filters"],), "zeros", 0, 0))
            if o["same"]:
                shape = shape[:3] + (o["filters"],)
            else:
                shape = tuple(s + 2 * p - n + 1 for s, p, n in zip(shape, o["pad"], k)) + (o["filters"],)
        elif kind == "norm":
            shapes += [("gamma", (shape[3],), "ones", 0, 0), ("beta", (shape[3],), "zeros", 0, 0)]
        elif kind == "pool":
            shape = tuple(s // o["size"] for s in shape[:3]) + shape[3:]
    for _ in range(heads):  # generation and auxiliary: one unit each on the flattened trunk
        flat = int(np.prod(shape))
        shapes += [("kernel", (flat, 1), "glorot_uniform", flat, 1), ("bias", (1,), "zeros", 0, 0)]
    return shapes


def run(layers, parameters, x, training, moving, drop_mask, statistics):
    """Applies the layers. x: (n, features) or (n, c, x, y, z). `moving`: [(mean, variance)] per norm.

    In training, batch statistics are appended to `statistics`; drop_mask(i, n_elements_shape) gives
    the multiplier of the i-th dropout in channels-last order.
    """
    at, norms, drops = 0, 0, 0
    for kind, o in layers:
        if kind == "dense":
            x = x @ parameters[at] + parameters[at + 1]
            at += 2
        elif kind == "reshape":
            x = x.reshape((x.shape[0],) + o["to"]).permute(0, 4, 1, 2, 3)
        elif kind == "upsample":
            for axis, f in enumerate(o["factor"]):
                x = x.repeat_interleave(f, dim=2 + axis)
        elif kind == "conv":
            kernel = parameters[at].permute(4, 3, 0, 1, 2)
            bias = parameters[at + 1] if o["bias"] else None
            at += 2 if o["bias"] else 1
            if o["same"]:
                before = [(k - 1) // 2 for k in o["kernel"]]
                after = [k - 1 - b for k, b in zip(o["kernel"], before)]
            else:
                before = after = list(o["pad"])
            x = F.pad(x, (before[2], after[2], before[1], after[1], before[0], after[0]))
            x = F.conv3d(x, kernel, bias)
        elif kind == "relu":
            x = F.relu(x)
        elif kind == "leaky":
            x = F.leaky_relu(x, LEAKY)
        elif kind == "norm":
            gamma, beta = parameters[at], parameters[at + 1]
            at += 2
            if training:
                mean = x.mean(dim=(0, 2, 3, 4))
                variance = x.var(dim=(0, 2, 3, 4), unbiased=False)
                count = x.numel() // x.shape[1]
                statistics.append((mean.detach(), variance.detach() * count / (count - 1)))
            else:
                mean, variance = moving[norms]
            norms += 1
            view = (1, -1, 1, 1, 1)
            x = (x - mean.view(view)) / torch.sqrt(variance.view(view) + BN_EPSILON)
            x = x * gamma.view(view) + beta.view(view)
        elif kind == "drop":
            if training:
                n, c, sx, sy, sz = x.shape
                mask = drop_mask(drops, (n, sx, sy, sz, c))
                x = x * mask.permute(0, 4, 1, 2, 3)
            drops += 1
        elif kind == "pool":
            x = F.avg_pool3d(x, o["size"])
    return x, parameters[at:]


def angle_head(image):
    """image (n, x, y, z) -> (n,): the incidence angle in rad."""
    n, sx, sy, sz = image.shape
    cx = torch.arange(sx, dtype=image.dtype, device=image.device) + 0.5
    cy = torch.arange(sy, dtype=image.dtype, device=image.device) + 0.5
    cz = torch.arange(sz, dtype=image.dtype, device=image.device) + 0.5
    total = image.sum(dim=(1, 2, 3))
    has_energy = total > 0
    safe = torch.where(has_energy, total, torch.ones_like(total))
    xb = (image.sum(dim=(2, 3)) * cx).sum(1) / safe
    yb = (image.sum(dim=(1, 3)) * cy).sum(1) / safe
    zb = (image.sum(dim=(1, 2)) * cz).sum(1) / safe
    layer = image.sum(dim=(1, 2))
    filled = layer > 0
    safe_layer = torch.where(filled, layer, torch.ones_like(layer))
    zero = torch.zeros_like(layer)
    x_z = torch.where(filled, (image.sum(dim=2) * cx.view(1, -1, 1)).sum(1) / safe_layer, zero)
    y_z = torch.where(filled, (image.sum(dim=1) * cy.view(1, -1, 1)).sum(1) / safe_layer, zero)
    zproj = torch.sqrt(torch.clamp((x_z - xb[:, None]) ** 2 + (cz - zb[:, None]) ** 2, min=1e-7))
    m = (y_z - yb[:, None]) / zproj
    m = torch.where(cz < zb[:, None], -m, m)
    a = torch.where(filled, np.pi / 2 - torch.atan(m), zero)
    weight = cz * filled
    angle = (a * weight).sum(1) / torch.where(has_energy, weight.sum(1), torch.ones_like(total))
    return torch.where(has_energy, angle, torch.full_like(angle, 100.0))


def loss(kind, output, target):
    if kind == "bce":
        p = torch.clamp(output, 1e-7, 1 - 1e-7)
        return (-target * torch.log(p) - (1 - target) * torch.log(1 - p)).mean()
    if kind == "mae":
        return (target - output).abs().mean()
    return 100.0 * ((target - output).abs() / torch.clamp(target.abs(), min=1e-7)).mean()
