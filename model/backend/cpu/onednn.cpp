#include "model/backend/cpu/onednn.h"

#include <unordered_map>
#include <utility>

namespace troupe::model::cpu {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

ArgumentPlace PrimitiveList::scratch(const dnnl::memory::desc& layout) {
  const ArgumentPlace place{true, scratch_bytes_};
  scratch_bytes_ += (layout.get_size() + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

void PrimitiveList::add(const dnnl::primitive& primitive, std::vector<Argument> arguments,
                        const dnnl::memory::desc& scratchpad) {
  if (scratchpad.get_size() > 0) {
    arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, scratch(scratchpad)});
  }
  steps_.push_back({primitive, std::move(arguments)});
}

ArgumentPlace PrimitiveList::reordered(const dnnl::memory::desc& from_layout, ArgumentPlace from,
                                       const dnnl::memory::desc& to_layout) {
  if (from_layout == to_layout) return from;
  const ArgumentPlace to = scratch(to_layout);
  reorder_into(from_layout, from, to_layout, to);
  return to;
}

void PrimitiveList::reorder_into(const dnnl::memory::desc& from_layout, ArgumentPlace from,
                                 const dnnl::memory::desc& to_layout, ArgumentPlace to) {
  const dnnl::reorder::primitive_desc description(engine_, from_layout, engine_, to_layout,
                                                  user_scratchpad());
  add(dnnl::reorder(description),
      {{DNNL_ARG_FROM, from_layout, from}, {DNNL_ARG_TO, to_layout, to}},
      description.scratchpad_desc());
}

void PrimitiveList::execute(std::span<void* const> operands, std::byte* scratch) const {
  dnnl::stream stream(engine_);
  std::unordered_map<int, dnnl::memory> arguments;
  for (const Step& step : steps_) {
    arguments.clear();
    for (const Argument& argument : step.arguments) {
      const ArgumentPlace& place = argument.place;
      void* data = place.in_scratch ? scratch + place.position : operands[place.position];
      arguments.emplace(argument.name, dnnl::memory(argument.layout, engine_, data));
    }
    step.primitive.execute(stream, arguments);
  }
  stream.wait();
}

void PrimitiveKernel::run(std::span<void* const> operands, const runtime::RandomPosition&,
                          std::byte* scratch) const {
  try {
    list_.execute(operands, scratch);
  } catch (const dnnl::error& error) {
    CHECK(false, std::string("a oneDNN primitive failed: ") + error.what());
  }
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace troupe::model::cpu
