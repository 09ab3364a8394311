#include "actors/wire_state.h"

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string>

#include "pipeline/state_fields.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::actors {
namespace {

using pipeline::ParameterPart;
using runtime::WireReader;
using runtime::WireWriter;

static_assert(std::endian::native == std::endian::little, "arrays travel as they stand in memory");

constexpr std::size_t kMostName = 4096;

// How many values the header has of a state.
struct CountVisitor {
  std::size_t values = 0;

  void parameters(std::size_t, ParameterPart, const std::vector<float>&) {}
  void scales(const std::vector<std::vector<std::int16_t>>&) { ++values; }
  template <class T>
  void number(const std::string&, const T&) {
    ++values;
  }
  void text(const std::string&, const std::string&) { ++values; }
  void hash(const std::string&, const runtime::Hash128&) { ++values; }
};

std::size_t values_of(const pipeline::TrainingState& state) {
  CountVisitor visitor;
  pipeline::visit_state(state, visitor);
  return visitor.values;
}

struct PackVisitor {
  WireWriter& out;

  void parameters(std::size_t, ParameterPart, const std::vector<float>& values) {
    out.attach(runtime::Buffer::copy_of(std::as_bytes(std::span(values))));
  }
  void scales(const std::vector<std::vector<std::int16_t>>& slots) {
    CHECK(slots.size() <= kMostSlots, "a schedule of more slots than may travel");
    out.list(slots.size());
    for (const auto& slot : slots) {
      out.list(slot.size());
      for (const std::int16_t scale : slot) out.integer(scale);
    }
  }
  void number(const std::string&, std::uint64_t value) { out.number(value); }
  void number(const std::string&, std::uint32_t value) { out.number(value); }
  void number(const std::string&, double value) { out.real(value); }
  void text(const std::string&, const std::string& value) { out.text(value); }
  void hash(const std::string&, const runtime::Hash128& value) { out.hash(value); }
};

struct UnpackVisitor {
  WireReader& in;

  void parameters(std::size_t, ParameterPart, std::vector<float>& values) {
    const runtime::Buffer frame = in.attachment();
    if (frame.size() % sizeof(float) != 0) return in.fail("an array that ends within a float");
    values.resize(frame.size() / sizeof(float));
    // A copy, so the frame may lie anywhere.
    if (!values.empty()) std::memcpy(values.data(), frame.data(), frame.size());
  }
  void scales(std::vector<std::vector<std::int16_t>>& slots) {
    slots.resize(in.list_up_to(kMostSlots));
    for (auto& slot : slots) slot = unpack_exponents(in);
  }
  void number(const std::string&, std::uint64_t& value) { value = in.number(); }
  void number(const std::string&, std::uint32_t& value) { value = in.number32(); }
  void number(const std::string&, double& value) { value = in.real(); }
  void text(const std::string&, std::string& value) { value = in.text(kMostName); }
  void hash(const std::string&, runtime::Hash128& value) { value = in.hash(); }
};

// An optimiser keeps any number of arrays, each of the weights' size.
bool has_whole_arrays(const pipeline::NetworkState& network) {
  const std::size_t weights = network.weights.size();
  return weights == 0 ? network.optimiser_arrays.empty()
                      : network.optimiser_arrays.size() % weights == 0;
}

}  // namespace

void pack_state(WireWriter& out, const pipeline::TrainingState& state) {
  CHECK(state.numerics_class.size() <= kMostName, "a numerics class of more than may travel");
  out.list(values_of(state));
  PackVisitor visitor{out};
  pipeline::visit_state(state, visitor);
}

void unpack_state(WireReader& in, pipeline::TrainingState& state) {
  in.list(values_of(state));
  UnpackVisitor visitor{in};
  pipeline::visit_state(state, visitor);
  if (!has_whole_arrays(state.generator) || !has_whole_arrays(state.discriminator)) {
    in.fail("optimiser arrays that are not of the weights' size");
  }
  if (state.slot >= state.scales.size()) in.fail("a slot beyond the schedule");
}

std::vector<std::int16_t> unpack_exponents(WireReader& in) {
  std::vector<std::int16_t> exponents(in.list_up_to(SIZE_MAX));
  for (std::int16_t& exponent : exponents) {
    exponent = static_cast<std::int16_t>(in.integer(INT16_MIN, INT16_MAX));
  }
  return exponents;
}

}  // namespace troupe::actors
