#pragma once

// The table of layer kinds: the word of each in a topology file and the codec of its options.

#include <memory>
#include <string>
#include <vector>

#include "config/codec.h"
#include "model/network.h"

namespace troupe::config {

inline constexpr std::int64_t kMostUnits = 1 << 24;  // features of one layer

// One kind of layer, without its type. The value is the section of its options, which may be in
// short form or null; reading leaves the layer's name empty when none is given.
class KindCodec {
 public:
  virtual ~KindCodec() = default;
  // Whether a layer is of this kind.
  virtual bool is(const model::LayerKind& kind) const = 0;
  virtual void read(const YamlValue& value, model::Layer& into, Reader& reader) const = 0;
  // CHECKs that the layer is of this kind.
  virtual YamlValue write(const model::Layer& layer) const = 0;
  virtual TypeDescription describe() const = 0;
  // The kind's name in files; the same as model::kind_name.
  std::string word;
};

using KindTable = std::vector<std::unique_ptr<const KindCodec>>;

// In the order they are described to users. Immutable; any thread.
const KindTable& kind_table();
// The entry of a layer's kind; every alternative of model::LayerKind has one.
const KindCodec& kind_codec(const model::LayerKind& kind);
// The words of the table.
std::vector<std::string> layer_kinds();

}  // namespace troupe::config
