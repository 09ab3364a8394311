#include "runtime/transport/node_name.h"

#include "runtime/base/utf8.h"

namespace troupe::runtime {

bool is_node_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostNodeName && printable(text) == text;
}

}  // namespace troupe::runtime
