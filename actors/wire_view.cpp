#include "actors/wire_view.h"

#include <memory>
#include <set>
#include <utility>

namespace troupe::actors {
namespace {

using runtime::WireReader;
using runtime::WireWriter;

// Those that lie behind a View's first iteration.
constexpr std::size_t kMostAssignments = 16;

template <class Number>
void pack_all(WireWriter& out, const std::vector<Number>& numbers) {
  out.list(numbers.size());
  for (const Number number : numbers) out.number(number);
}

// Null: none.
const char* fault_of(const pipeline::View& view) {
  if (view.ring.empty() || view.owners.empty()) return "a View of nobody";
  if (view.reached.size() != view.ring.size()) return "a View that does not tell what all reached";
  const std::set<std::uint32_t> members(view.ring.begin(), view.ring.end());
  if (members.size() != view.ring.size()) return "a View with a member twice";
  bool is_reached = false;
  for (std::size_t i = 0; i < view.ring.size(); ++i) {
    const std::uint64_t step = view.reached[i];
    if (step > view.first_step) return "a View behind what its members have reached";
    if (view.is_new(view.ring[i])) continue;
    if (view.first_step - step > 1) return "a View of members far behind it";
    is_reached = is_reached || step == view.first_step;
  }
  return is_reached ? nullptr : "a View from a step on that nobody has reached";
}

}  // namespace

void pack_id(WireWriter& out, const pipeline::ViewId& id) {
  out.list(2);
  out.number(id.term);
  out.number(id.number);
}

pipeline::ViewId unpack_id(WireReader& in) {
  in.list(2);
  const std::uint32_t term = in.number32();
  return {term, in.number32()};
}

void pack_numbers(WireWriter& out, const std::vector<std::uint32_t>& numbers) {
  pack_all(out, numbers);
}

std::vector<std::uint32_t> unpack_numbers32(WireReader& in, std::size_t most) {
  std::vector<std::uint32_t> numbers(in.list_up_to(most));
  for (std::uint32_t& number : numbers) number = in.number32();
  return numbers;
}

void pack_view(WireWriter& out, const pipeline::View& view) {
  CHECK(view.ring.size() <= kMostViewMembers && view.owners.size() <= kMostMicroBatches,
        "a View that no member can read");
  out.list(7);
  pack_id(out, view.id);
  out.number(view.first_step);
  pack_numbers(out, view.ring);
  pack_all(out, view.reached);
  pack_numbers(out, view.owners);
  out.list(view.later.size());
  for (const pipeline::View::Assignment& assignment : view.later) {
    out.list(2);
    out.number(assignment.from);
    pack_numbers(out, assignment.owners);
  }
  pack_numbers(out, view.learners);
}

ViewPointer unpack_view(WireReader& in) {
  pipeline::View view;
  in.list(7);
  view.id = unpack_id(in);
  view.first_step = in.number();
  view.ring = unpack_numbers32(in, kMostViewMembers);
  view.reached.resize(in.list_up_to(kMostViewMembers));
  for (std::uint64_t& step : view.reached) step = in.number();
  view.owners = unpack_numbers32(in, kMostMicroBatches);
  view.later.resize(in.list_up_to(kMostAssignments));
  for (pipeline::View::Assignment& assignment : view.later) {
    in.list(2);
    assignment.from = in.number();
    assignment.owners = unpack_numbers32(in, kMostMicroBatches);
  }
  view.learners = unpack_numbers32(in, kMostViewMembers);
  if (const char* const fault = fault_of(view)) in.fail(fault);
  return std::make_shared<const pipeline::View>(std::move(view));
}

}  // namespace troupe::actors
