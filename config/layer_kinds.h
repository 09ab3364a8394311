#pragma once

// The table of layer kinds: the word of each in a topology file and the codec of its options.

#include <string>
#include <vector>

#include "config/codec.h"
#include "model/network.h"

namespace troupe::config {

inline constexpr std::int64_t kMostUnits = 1 << 24;  // features of one layer

// One kind of layer. The codec's value is the section of its options, which may be in short form or
// null; reading leaves the layer's name empty when none is given, and writing CHECKs that the layer
// is of this kind.
struct KindEntry {
  std::string word;  // in files; the same as model::kind_name
  CodecOf<model::Layer> codec;
};

// In the order they are described to users. Immutable; any thread.
const std::vector<KindEntry>& kind_table();
// The entry of a layer's kind; every alternative of model::LayerKind has one.
const KindEntry& kind_entry(const model::LayerKind& kind);
// The words of the table.
std::vector<std::string> layer_kinds();

}  // namespace troupe::config
