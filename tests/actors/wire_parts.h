#pragma once

// For tests of what crosses the wire: content drawn at random, and bodies as they are on their way.

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "actors/message_fields.h"
#include "model/exact_sum.h"

namespace troupe::actors {

// Seeded, so that a failure comes again.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t number() { return engine_() >> (engine_() % 64); }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
  std::size_t up_to(std::size_t most) { return engine_() % (most + 1); }
  std::ptrdiff_t index(std::size_t most) { return static_cast<std::ptrdiff_t>(up_to(most)); }
  // Any bits: NaNs, infinities, denormals.
  double real() { return std::bit_cast<double>(engine_()); }
  // For a float, or none.
  std::int16_t exponent() {
    return flag() ? model::kNoExponent
                  : static_cast<std::int16_t>(model::kLeastExponent + static_cast<int>(up_to(276)));
  }
  bool flag() { return engine_() % 2 == 1; }
  runtime::Hash128 hash() { return {engine_(), engine_()}; }
  std::string text(std::size_t most) {
    std::string text(up_to(most), ' ');
    for (char& c : text) c = static_cast<char>(engine_());
    return text;
  }
  std::vector<float> floats(std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(engine_()));
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

pipeline::ViewId draw_id(Draw& draw);
// What a node of the run knows.
runtime::WireTypes wire_types();

// A message as it crosses the wire.
struct Parts {
  std::string name;
  std::vector<std::byte> header;
  std::vector<runtime::Buffer> attachments;
  std::vector<runtime::Buffer> payloads;

  std::int64_t bytes() const {
    std::size_t sum = header.size();
    for (const runtime::Buffer& attachment : attachments) sum += attachment.size();
    return static_cast<std::int64_t>(sum);
  }
};

template <class Body>
Parts parts_of(Body body, std::vector<runtime::Buffer> payloads = {}) {
  const runtime::Message message = runtime::Message::of(std::move(body), payloads);
  runtime::WireWriter out;
  wire_types().pack(message, out);
  const runtime::Buffer header = out.take_header();
  return {std::string(message.name()),
          {header.bytes().begin(), header.bytes().end()},
          out.take_attachments(),
          std::move(payloads)};
}

// The problem; "" when a message was made.
std::string problem_of(const Parts& parts);

template <class Body>
Body round_trip(Body body, std::vector<runtime::Buffer> payloads = {}) {
  const Parts parts = parts_of(std::move(body), std::move(payloads));
  runtime::WireReader in(parts.header, parts.attachments);
  auto message = wire_types().unpack(Body::kName, in, parts.payloads);
  EXPECT_TRUE(in.finished()) << in.problem();
  CHECK(message.ok(), "a message that does not come back");
  return std::move(*message->template as<Body>());
}

}  // namespace troupe::actors
