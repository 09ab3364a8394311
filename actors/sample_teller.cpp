#include "actors/sample_teller.h"

#include <string>
#include <utility>

#include "runtime/node/rhythm.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Message;

void SampleTeller::start(Context& context, std::string_view out_port) {
  port_ = context.out(out_port);
}

void SampleTeller::add(Context& context, std::string_view name, double value) {
  if (!is_heard()) return;
  kept_.samples.push_back({std::string(name), value});
  if (kept_.samples.size() == kMostSamples) tell_all(context);
}

void SampleTeller::note_members(std::size_t members) {
  every_ = runtime::rhythm_among(members, kTellEvery);
}

void SampleTeller::tell(Context& context) {
  if (!is_heard() || (told_ && context.now() - *told_ < every_)) return;
  tell_all(context);
}

void SampleTeller::tell_all(Context& context) {
  if (!is_heard() || kept_.samples.empty()) return;
  told_ = context.now();
  context.send(port_, Message::of(std::exchange(kept_, {})));
}

}  // namespace troupe::actors
