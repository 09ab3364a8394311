#pragma once

// Which message bodies can leave the process. A body that can has a list of its fields beside it
// (runtime/base/fields.h) and is made known once: types.add<Batch>(). Payloads of the message
// travel by themselves. Where receivers rely on their number or sizes, a function checks them:
//
//   const char* fault_of(const Batch& body, std::span<const runtime::Buffer> payloads);

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/message.h"
#include "runtime/transport/wire_fields.h"
#include "runtime/transport/wire_format.h"

namespace troupe::runtime {

// Filled by one thread, then read by any.
class WireTypes {
 public:
  // Says what is wrong with a body where only this process can know it, such as its size; "":
  // nothing.
  template <class Body>
  using Fault = std::function<std::string(const Body& body)>;

  // CHECKs that no other body has its name. `fault` is asked of each that was unpacked, on the
  // thread that unpacks; null: there is none.
  template <class Body>
  void add(Fault<Body> fault = nullptr);
  template <class... Bodies>
  void add_all() {
    (add<Bodies>(), ...);
  }

  // Whether bodies of that name can travel.
  bool knows(std::string_view name) const { return types_.contains(name); }

  // Writes the body as one value. CHECKs that its type was added.
  void pack(const Message& message, WireWriter& out) const;

  // Reads one body and makes a message of it. Errors (kInternal): an unknown name, or what
  // in.problem() says too; the reader is not ok() then. What may follow the body in the header is
  // left to the caller, who asks in.finished().
  Result<Message> unpack(std::string_view name, WireReader& in, std::vector<Buffer> payloads) const;

 private:
  struct Type {
    void (*pack)(WireWriter& out, const Message& message);
    std::function<Message(WireReader& in, std::vector<Buffer> payloads)> unpack;
  };
  void add_type(std::string_view name, Type type);

  std::map<std::string, Type, std::less<>> types_;
};

template <class Body>
void WireTypes::add(Fault<Body> fault) {
  const auto unpack = [fault = std::move(fault)](WireReader& in, std::vector<Buffer> payloads) {
    Body body{};
    read_fields(in, body);
    if constexpr (requires { fault_of(body, std::span<const Buffer>(payloads)); }) {
      const char* const wrong = fault_of(body, std::span<const Buffer>(payloads));
      if (in.ok() && wrong != nullptr) in.fail(wrong);
    }
    if (in.ok() && fault) {
      if (const std::string wrong = fault(body); !wrong.empty()) in.fail(wrong);
    }
    return in.ok() ? Message::of(std::move(body), std::move(payloads)) : Message();
  };
  const auto pack = [](WireWriter& out, const Message& message) {
    write_fields(out, *message.as<Body>());
  };
  add_type(Body::kName, {pack, unpack});
}

}  // namespace troupe::runtime
