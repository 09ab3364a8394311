#include "runtime/transport/wire_types.h"

#include <utility>

#include <fmt/format.h>

namespace troupe::runtime {

void WireTypes::add_type(std::string_view name, Type type) {
  const bool added = types_.emplace(std::string(name), std::move(type)).second;
  CHECK(added, "two bodies with one name");
}

void WireTypes::pack(const Message& message, WireWriter& out) const {
  const auto type = types_.find(message.name());
  CHECK(type != types_.end(), fmt::format("'{}' is no body that can travel", message.name()));
  type->second.pack(out, message);
}

Result<Message> WireTypes::unpack(std::string_view name, WireReader& in,
                                  std::vector<Buffer> payloads) const {
  const auto type = types_.find(name);
  if (type == types_.end()) {
    in.fail("a message of a kind that is not known here");
    return Error{ErrorKind::kInternal, in.problem()};
  }
  Message message = type->second.unpack(in, std::move(payloads));
  if (in.ok()) return message;
  return Error{ErrorKind::kInternal, fmt::format("{}: {}", type->first, in.problem())};
}

}  // namespace troupe::runtime
