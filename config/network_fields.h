#pragma once

// The model language: networks layer by layer. A layer is written as its kind with its options,
//
//   - convolution: {filters: 8, kernel: [5, 6, 6], padding: same}
//   - activation: leaky_relu        # the short form gives the first option
//   - flatten                       # no options
//
// A layer's `name` is its kind and number unless given; `input` names the layer it reads when that
// is not the one before.

#include "config/codec.h"
#include "model/network.h"

namespace troupe::config {

// [x, y, z] or, for images of fewer axes, [x, y] or [x].
CodecOf<model::Extent> extent(std::int64_t least, std::int64_t most, std::int64_t fill);

// The same of both ends of each axis: a number for both of them, or [before, behind].
CodecOf<model::Margins> margins(std::int64_t most);

// [features], [x, channels], [x, y, channels] or [x, y, z, channels].
CodecOf<model::Shape> shape();

// A network's layers. Reader::remember is called with each layer's place at "layers.INDEX".
CodecOf<std::vector<model::Layer>> layers();

}  // namespace troupe::config
