"""Networks of Troupe's language in PyTorch, with its own operations and order of axes.

A description is the content of a network in a topology file: {input, layers, outputs, conditions}. What
a layer leaves out has the default of docs/topology.md. Parameters are made in Troupe's order and Keras'
shapes, and handed out in PyTorch's; images are (events, channels, cells...).
"""

import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "oracle"))

import models  # noqa: E402

# The option that a layer's short form gives.
SHORT = dict(dense="units", activation="kind", dropout="rate", pad="amount", crop="amount",
             upsample="factor", average_pool="size", max_pool="size", reshape="to", permute="order",
             add="with", multiply="with", concatenate="with", group_norm="groups",
             attention="heads", power="exponent")
LAYOUTS = {"contiguous": {}, "channels_last": {2: torch.channels_last, 3: torch.channels_last_3d}}
CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
AVERAGE_POOLS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
BATCH_NORM_EPSILON, MOMENTUM, EPSILON, SLOPE = 1e-6, 0.99, 1e-3, 0.3


def zoo(model):
    with open(os.path.join(HERE, "..", "config", "zoo", model + ".yaml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


class Layer:
    """A layer's kind, options, and the places of its parameters."""

    def __init__(self, written, number):
        if isinstance(written, str):
            written = {written: {}}
        (self.kind, options), = written.items()
        if not isinstance(options, dict):
            options = {SHORT[self.kind]: options}
        self.options, self.number = options, number
        self.name, self.input = options.get("name"), options.get("input")
        self.others = options.get("with", [])
        if isinstance(self.others, str):
            self.others = [self.others]
        self.parameters, self.norm = slice(0, 0), None  # the number of a batch norm

    def __getitem__(self, option):
        return self.options[option]

    def get(self, option, default):
        return self.options.get(option, default)


def cells_last(x):
    """(events, channels, cells...) with channels last; features as they are."""
    return x if x.dim() == 2 else x.permute(0, *range(2, x.dim()), 1)


def channels_first(x):
    return x if x.dim() == 2 else x.permute(0, x.dim() - 1, *range(1, x.dim() - 1))


def spread(features, x):
    """Features beside an image with as many channels."""
    return features if features.dim() == x.dim() else features.reshape(
        features.shape + (1,) * (x.dim() - 2))


def both_ends(amount):
    """Cells before an axis and behind it, of one number or two."""
    return amount if isinstance(amount, list) else [amount, amount]


class Network:
    def __init__(self, description, layout="contiguous", dtype=torch.float32, device="cpu"):
        self.input_shape = tuple(description["input"])
        self.conditions = description.get("conditions", [])
        self.layers = [Layer(written, i) for i, written in enumerate(description["layers"])]
        self.places = {layer.name: i for i, layer in enumerate(self.layers) if layer.name}
        self.outputs = [self.places[name] for name in description.get("outputs", [])] or [
            len(self.layers) - 1]
        self.layout, self.dtype, self.device = LAYOUTS[layout], dtype, device
        self.shapes, self.tensors = [], []  # per layer in Keras' order; (role, shape, kind, fans)
        self.norm_sizes = []
        for layer in self.layers:
            self.infer(layer)
        self.moving = [(torch.zeros(size, dtype=dtype, device=device),
                        torch.ones(size, dtype=dtype, device=device)) for size in self.norm_sizes]
        self.parameters = []

    # Shapes and parameters.

    def shape_read(self, number, name):
        if name == "input" or (name is None and number == 0):
            return self.input_shape
        if name == "conditions":
            return (len(self.conditions),)
        return self.shapes[number - 1 if name is None else self.places[name]]

    def infer(self, layer):
        shape = self.shape_read(layer.number, layer.input)
        before = len(self.tensors)
        self.shapes.append(tuple(int(n) for n in self.shape_behind(layer, shape)))
        layer.parameters = slice(before, len(self.tensors))

    def parameter(self, role, shape, kind="zeros", fan_in=0, fan_out=0):
        self.tensors.append((role, tuple(int(n) for n in shape), kind, fan_in, fan_out))

    def kernel(self, layer, shape, fan_in, fan_out, units):
        self.parameter("kernel", shape, layer.get("initialiser", "glorot_uniform"), fan_in, fan_out)
        if layer.get("bias", True):
            self.parameter("bias", (units,))

    def shape_behind(self, layer, shape):
        cells, channels = np.array(shape[:-1], dtype=int), shape[-1]
        kind = layer.kind
        if kind == "dense":
            inputs = int(np.prod(shape))
            self.kernel(layer, (inputs, layer["units"]), inputs, layer["units"], layer["units"])
            return (layer["units"],)
        if kind in ("convolution", "transposed_convolution"):
            kernel, filters = np.array(layer["kernel"]), layer["filters"]
            taps, groups = int(np.prod(kernel)), layer.get("groups", 1)
            stride = np.array(layer.get("stride", [1] * len(kernel)))
            window = (kernel - 1) * np.array(layer.get("dilation", [1] * len(kernel))) + 1
            same = layer.get("padding", "valid") == "same"
            if kind == "convolution":
                own = channels // groups
                self.kernel(layer, (*kernel, own, filters), taps * own, taps * filters, filters)
                behind = -(-cells // stride) if same else (cells - window) // stride + 1
            else:
                own = filters // groups
                self.kernel(layer, (*kernel, own, channels), taps * own, taps * channels, filters)
                behind = cells * stride + (0 if same else np.maximum(window - stride, 0))
                if "pads" in layer.options or "output_padding" in layer.options:
                    none = [0] * len(kernel)
                    pads = np.array([sum(both_ends(n)) for n in layer.get("pads", none)])
                    behind = ((cells - 1) * stride + window - pads +
                              np.array(layer.get("output_padding", none)))
            return (*behind, filters)
        if kind.endswith("_norm"):
            self.parameter("gamma", (channels,), "ones")
            self.parameter("beta", (channels,))
            if kind == "batch_norm":
                layer.norm = len(self.norm_sizes)
                self.norm_sizes.append(channels)
            return shape
        if kind == "embedding":
            self.parameter("kernel", (layer["classes"], layer["units"]),
                           layer.get("initialiser", "glorot_uniform"), layer["classes"],
                           layer["units"])
            return (layer["units"],)
        return self.shape_moved(layer, shape, cells, channels)

    def shape_moved(self, layer, shape, cells, channels):
        kind = layer.kind
        if kind == "attention":
            return (*cells, channels // 3)
        if kind in ("pad", "crop"):
            amount = np.array([sum(both_ends(n)) for n in layer["amount"]])
            return (*(cells + amount if kind == "pad" else cells - amount), channels)
        if kind == "upsample":
            return (*(cells * np.array(layer["factor"])), channels)
        if kind in ("average_pool", "max_pool"):
            size = np.array(layer["size"])
            stride = np.array(layer.get("stride", size))
            same = layer.get("padding", "valid") == "same"
            return (*(-(-cells // stride) if same else (cells - size) // stride + 1), channels)
        if kind in ("global_average_pool", "global_max_pool"):
            return (channels,)
        if kind == "reshape":
            return layer["to"]
        if kind == "flatten":
            return (np.prod(shape),)
        if kind in ("sum", "angle"):
            return (1,)
        if kind == "slice":
            axis = self.axis_of(layer, len(shape)) - 1  # of PyTorch's, without events
            cut = list(shape)
            cut[axis - 1 if axis else len(shape) - 1] = layer["count"]
            return cut
        if kind == "permute":
            return [shape["xyz".find(axis)] for axis in layer["order"]]  # channels are the last
        if kind == "concatenate":
            return (*shape[:-1], channels + sum(self.shape_read(layer.number, name)[-1]
                                                for name in layer.others))
        return shape  # element by element

    @staticmethod
    def axis_of(layer, rank):
        """PyTorch's number of the axis."""
        axis = layer.get("axis", "channels")
        return 1 if axis == "channels" or rank == 1 else 2 + "xyz".index(axis)

    def take(self, values):
        """`values`: arrays in Keras' shapes, one for each of `tensors`."""
        self.parameters = [self.placed(torch.as_tensor(v).to(self.device, self.dtype), role)
                           .detach().requires_grad_()
                           for v, (role, *_) in zip(values, self.tensors)]

    def placed(self, value, role):
        if role != "kernel" or value.dim() == 2:
            return value
        rank = value.dim() - 2
        return self.laid_out(value.permute(rank + 1, rank, *range(rank)))

    @staticmethod
    def in_order_of_keras(value, role):
        """A parameter, or its gradient, back again."""
        if role != "kernel" or value.dim() == 2:
            return value
        return value.permute(*range(2, value.dim()), 1, 0)

    def laid_out(self, x):
        return x.contiguous(memory_format=self.layout.get(x.dim() - 2, torch.contiguous_format))

    def image(self, values):
        """An input in Troupe's order of axes."""
        return self.laid_out(channels_first(torch.as_tensor(values).to(self.device, self.dtype)))

    # The layers.

    def run(self, x, training=True, drop=None, conditions=None):
        """The outputs. drop(number of the layer, its rate, x) takes the place of dropout."""
        self.training, self.drop = training, drop
        made = []
        of = {"input": x, "conditions": conditions}

        def read(number, name):
            if name is None:
                return made[number - 1] if number else x
            return of[name] if name in of else made[self.places[name]]
        for layer in self.layers:
            here = read(layer.number, layer.input)
            others = [read(layer.number, name) for name in layer.others]
            own = self.parameters[layer.parameters]
            made.append(getattr(self, layer.kind)(layer, here, *own, *others))
        return [made[i] for i in self.outputs]

    def flatten(self, layer, x):
        return cells_last(x).reshape(len(x), -1)

    def dense(self, layer, x, kernel, bias=None):
        flat = self.flatten(layer, x)
        return flat @ kernel if bias is None else torch.addmm(bias, flat, kernel)

    def convolution(self, layer, x, kernel, bias=None):
        rank = x.dim() - 2
        stride, dilation = layer.get("stride", [1] * rank), layer.get("dilation", [1] * rank)
        padding = [0] * rank
        if layer.get("padding", "valid") == "same":
            behind = []
            for i, (cells, k, s, d) in enumerate(zip(x.shape[2:], kernel.shape[2:], stride, dilation)):
                total = max((-(-cells // s) - 1) * s + (k - 1) * d + 1 - cells, 0)
                padding[i] = total // 2
                behind.append(total - 2 * (total // 2))
            if any(behind):  # one more behind
                x = F.pad(x, [n for more in reversed(behind) for n in (0, more)])
        return CONVOLUTIONS[rank](x, kernel, bias, stride, padding, dilation, layer.get("groups", 1))

    def transposed_convolution(self, layer, x, kernel, bias=None):
        rank = x.dim() - 2
        stride, dilation = layer.get("stride", [1] * rank), layer.get("dilation", [1] * rank)
        padding, cut, more = [0] * rank, [], []
        for i, (cells, k, s, d) in enumerate(zip(x.shape[2:], kernel.shape[2:], stride, dilation)):
            window = (k - 1) * d + 1
            full = (cells - 1) * s + window
            same = layer.get("padding", "valid") == "same"
            wanted = cells * s + (0 if same else max(window - s, 0))
            before = max(window - s, 0) // 2 if same else 0
            if "pads" in layer.options or "output_padding" in layer.options:
                before, behind = both_ends(layer.get("pads", [0] * rank)[i])
                wanted = full - before - behind + layer.get("output_padding", [0] * rank)[i]
            after = full - before - wanted
            padding[i] = max(min(before, after), 0)
            cut.append((before - padding[i], max(after, 0) - padding[i]))
            more.append(max(-after, 0))  # cells that no window reaches
        spread_by = stride, padding, 0, layer.get("groups", 1), dilation
        y = TRANSPOSED[rank](x, kernel, bias, *spread_by)
        if any(more):
            if bias is not None:
                y = TRANSPOSED[rank](x, kernel, None, *spread_by)
            y = F.pad(y, [n for extra in reversed(more) for n in (0, extra)])
            y = y if bias is None else y + spread(bias[None], y)
        for axis, (before, after) in enumerate(cut):
            if before or after:
                y = y.narrow(2 + axis, before, y.shape[2 + axis] - before - after)
        return y

    def batch_norm(self, layer, x, gamma, beta):
        mean, variance = self.moving[layer.norm]
        return F.batch_norm(x, mean, variance, gamma, beta, self.training,
                            1 - layer.get("momentum", MOMENTUM),
                            float(layer.get("epsilon", BATCH_NORM_EPSILON)))

    # Norms of samples take one type alone, which autocast does not see to.
    def group_norm(self, layer, x, gamma, beta):
        return F.group_norm(x.to(gamma.dtype), layer["groups"], gamma, beta, float(layer.get("epsilon", EPSILON)))

    def instance_norm(self, layer, x, gamma, beta):
        return F.instance_norm(x.to(gamma.dtype), weight=gamma, bias=beta, eps=float(layer.get("epsilon", EPSILON)))

    def layer_norm(self, layer, x, gamma, beta):
        return channels_first(F.layer_norm(cells_last(x.to(gamma.dtype)), gamma.shape, gamma, beta,
                                           float(layer.get("epsilon", EPSILON))))

    def attention(self, layer, x):
        heads, (n, channels) = layer["heads"], x.shape[:2]
        width = channels // 3 // heads
        query, key, value = (cells_last(x).reshape(n, -1, 3, heads, width)
                             .permute(2, 0, 3, 1, 4).unbind(0))
        weights = torch.softmax(query @ key.transpose(-1, -2) * width ** -0.5, dim=-1)
        looked = (weights @ value).transpose(1, 2)
        return channels_first(looked.reshape(n, *x.shape[2:], heads * width))

    def embedding(self, layer, x, kernel):
        return F.embedding(x.long()[:, 0], kernel)

    def activation(self, layer, x):
        kind = layer["kind"]
        if kind == "leaky_relu":
            return F.leaky_relu(x, layer.get("slope", SLOPE))
        if kind == "gelu":
            return F.gelu(x, approximate="tanh")
        return getattr(F if kind in ("relu", "softplus", "silu", "elu") else torch, kind)(x)

    def softmax(self, layer, x):
        return torch.softmax(x, dim=1)

    def dropout(self, layer, x):
        if not self.training:
            return x
        return self.drop(layer.number, layer["rate"], x) if self.drop else F.dropout(x, layer["rate"])

    def power(self, layer, x):
        return torch.clamp(x, min=0.0) ** layer["exponent"]

    def windows(self, layer, x):
        """Size and stride of a pool, and cells around the image in the order of F.pad."""
        size, around = layer["size"], []
        stride = layer.get("stride", size)
        if layer.get("padding", "valid") == "same":
            for cells, k, s in reversed(list(zip(x.shape[2:], size, stride))):
                total = max((-(-cells // s) - 1) * s + k - cells, 0)
                around += [total // 2, total - total // 2]
        return size, stride, around

    def average_pool(self, layer, x):
        size, stride, around = self.windows(layer, x)
        pool = AVERAGE_POOLS[x.dim() - 2]
        if not any(around):
            return pool(x, size, stride)
        inside = pool(F.pad(torch.ones_like(x[:1, :1]), around), size, stride)
        return pool(F.pad(x, around), size, stride) / inside

    def max_pool(self, layer, x):
        size, stride, around = self.windows(layer, x)
        return MAX_POOLS[x.dim() - 2](F.pad(x, around, value=-np.inf) if any(around) else x, size, stride)

    def global_average_pool(self, layer, x):
        return x.mean(dim=tuple(range(2, x.dim())))

    def global_max_pool(self, layer, x):
        return torch.amax(x, dim=tuple(range(2, x.dim())))

    def upsample(self, layer, x):
        return F.interpolate(x, scale_factor=tuple(map(float, layer["factor"])), mode="nearest")

    def pad(self, layer, x):
        return F.pad(x, [n for amount in reversed(layer["amount"]) for n in both_ends(amount)])

    def crop(self, layer, x):
        return F.pad(x, [-n for amount in reversed(layer["amount"]) for n in both_ends(amount)])

    def reshape(self, layer, x):
        return self.laid_out(channels_first(cells_last(x).reshape(len(x), *layer["to"])))

    def permute(self, layer, x):
        *cells, channels = [2 + "xyz".find(axis) for axis in layer["order"]]  # channels are number 1
        return self.laid_out(x.permute(0, channels, *cells))

    def slice(self, layer, x):
        return x.narrow(self.axis_of(layer, x.dim() - 1), layer.get("begin", 0), layer["count"])

    def add(self, layer, x, *others):
        for other in others:
            x = x + spread(other, x) if x.dim() >= other.dim() else spread(x, other) + other
        return x

    def multiply(self, layer, x, other):
        return x * spread(other, x) if x.dim() >= other.dim() else spread(x, other) * other

    def concatenate(self, layer, x, *others):
        return torch.cat([x, *others], dim=self.axis_of(layer, x.dim() - 1))

    def angle(self, layer, x):
        return models.angle_head(x[:, 0])[:, None]

    def sum(self, layer, x):
        return x.flatten(1).sum(dim=1, keepdim=True)
