#include "tests/actors/wire_parts.h"

#include <memory>

namespace troupe::actors {

runtime::Error draw_error(Draw& draw) { return {runtime::ErrorKind::kLostPeers, draw.text(200)}; }

pipeline::ViewId draw_id(Draw& draw) { return {draw.number32(), draw.number32()}; }

ViewMessage draw_view(Draw& draw) {
  pipeline::View view;
  view.id = draw_id(draw);
  view.first_step = 1 + draw.number();
  const std::size_t members = 1 + draw.up_to(9);
  for (std::uint32_t member = draw.number32() / 2; view.ring.size() < members; ++member) {
    view.ring.insert(view.ring.begin() + draw.index(view.ring.size()), member);
    view.reached.push_back(view.first_step - draw.up_to(1));
  }
  view.reached[draw.up_to(members - 1)] = view.first_step;
  view.owners.resize(1 + draw.up_to(20));
  for (std::uint32_t& owner : view.owners) owner = draw.number32();
  return {std::make_shared<const pipeline::View>(std::move(view))};
}

Feed draw_feed(Draw& draw) {
  Feed feed;
  feed.replica = draw.number32();
  feed.number = draw.number32();
  feed.view = draw_view(draw).view;
  feed.missing.resize(draw.up_to(2));
  for (Feed::Missing& missing : feed.missing) {
    missing.iteration = draw.number();
    missing.micro_batches.resize(draw.up_to(9));
    for (std::uint32_t& index : missing.micro_batches) index = draw.number32();
  }
  feed.iteration = draw.number();
  return feed;
}

runtime::WireTypes wire_types() {
  runtime::WireTypes types;
  add_wire_messages(types);
  return types;
}

std::string problem_of(const Parts& parts) {
  static const runtime::WireTypes kTypes = wire_types();
  runtime::WireReader in(parts.header, parts.attachments);
  const auto message = kTypes.unpack(parts.name, in, parts.payloads);
  in.finished();
  return in.problem();
}

}  // namespace troupe::actors
