#include "actors/provisioner.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::actors {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using runtime::TimePoint;

constexpr auto kTurn = std::chrono::seconds(1);
// From the end of the run until nodes that are still there are left to people.
constexpr auto kLetGoWithin = std::chrono::minutes(2);
constexpr auto kTellBillEvery = std::chrono::seconds(10);
constexpr auto kNoteWorkEvery = std::chrono::minutes(1);

// "8", "+4" or "-2" of so many.
std::optional<std::uint32_t> changed_count(std::uint32_t count, std::string_view change) {
  const bool adds = change.starts_with('+'), takes = change.starts_with('-');
  if (adds || takes) change.remove_prefix(1);
  std::uint32_t number = 0;
  const char* const end = change.data() + change.size();
  const auto read = std::from_chars(change.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number > 100'000) return std::nullopt;
  if (adds) return count + number;
  if (takes) return number > count ? 0 : count - number;
  return number;
}

telemetry::NodeFacts facts_of(const PoolNode& node) {
  const bool is_dead = node.is_gone() && !node.cause.empty();
  return {.name = node.name,
          .host = node.where,
          .role = kPoolRole,
          .state = is_dead ? "dead" : word_of(node.state),
          .cause = node.cause};
}

Treasurer::Wanted wanted_of(const PoolTools& tools, const PoolBook& book) {
  Treasurer::Wanted wanted;
  for (const PoolTools::Pool& pool : tools.pools()) {
    wanted[pool.limits.name] = *book.wanted(pool.limits.name);
  }
  return wanted;
}

// Why no member has come from the pool's nodes, of which the last counts.
std::string wait_for(const std::vector<PoolNode>& nodes, const std::string& pool) {
  std::string told = "no node is wanted (troupe burst asks for some)";
  for (const PoolNode& node : nodes) {
    if (node.pool != pool) continue;
    const telemetry::NodeFacts facts = facts_of(node);
    told = fmt::format("{} is {}{}", node.name, facts.state,
                       facts.cause.empty() ? "" : fmt::format(" ({})", facts.cause));
  }
  return told;
}

}  // namespace

Provisioner::Provisioner(ProvisionerOptions options, std::shared_ptr<RunOutcome> outcome)
    : options_(std::move(options)),
      outcome_(std::move(outcome)),
      tools_(options_.pools),
      book_(tools_.limits()),
      treasurer_(options_.treasurer) {}

void Provisioner::start(Context& context) {
  on<NodeChange>(&Provisioner::receive_change);
  on<Kept>(&Provisioner::receive_kept);
  on<ViewMessage>(&Provisioner::receive_view);
  on<Pace>(&Provisioner::receive_pace);
  on<runtime::RequestAsked>(&Provisioner::receive_burst);
  on<NoMoreNodes>(&Provisioner::receive_no_more);
  on<Turn>(&Provisioner::receive_turn);
  treasurer_.begin(context.now());
  for (const PoolNode& node : options_.adopted) {
    book_.adopt(node, context.now());
    treasurer_.note(node, context.now());
    if (!node.is_gone()) tools_.adopt(node);
  }
  for (const auto& [name, nodes] : options_.wanted) {
    const auto can = book_.want(name, nodes);
    if (!can.ok()) context.log().warning(can.error().message);
  }
  context.after(runtime::Duration{0});
}

void Provisioner::timer(Context& context, runtime::TimerId) {
  ask_for_turn(context);
  context.after(kTurn);
}

// A tool may have taken seconds. A message to itself comes behind those that have come meanwhile,
// while a timer would go before them, and another node would be asked for although the run ends.
void Provisioner::ask_for_turn(Context& context) {
  if (std::exchange(turn_is_due_, true)) return;
  context.send_control(context.name(), Message::of(Turn{}));
}

void Provisioner::receive_turn(Context& context, const Turn&) {
  turn_is_due_ = false;
  act(context);
  if (!ends_by_) return;
  if (book_.all_gone() || context.now() >= *ends_by_) return finish(context);
  std::vector<PoolNode> left = book_.nodes();
  std::erase_if(left, [](const PoolNode& node) { return node.is_gone(); });
  waits_.tell_last(context, left, *ends_by_);
}

void Provisioner::finish(Context& context) {
  const auto& state = outcome_->state;
  if (state != nullptr) treasurer_.reach(state->iteration);
  outcome_->bill = treasurer_.bill(wanted_of(tools_, book_), context.now());
  const auto noted = options_.note_work(treasurer_.contributed(), treasurer_.first_forecast());
  if (!noted.ok()) context.log().warning(noted.error().message);
  context.finish();
}

void Provisioner::stop(Context& context) {
  is_closed_ = true;
  ends_by_ = context.now() + kLetGoWithin;
  book_.end(context.now());
}

void Provisioner::receive_change(Context& context, const NodeChange& change) {
  if (change.state == "joining" || change.state == "running") {
    if (const auto member = config::member_number(change.name)) members_[*member] = change.name;
    const std::string node = options_.launched_on(change.name);
    if (node.empty()) return;
    book_.member_came(node, change.name, context.now());
    if (change.state == "running") book_.member_trains(change.name, context.now());
  } else {
    book_.member_gone(change.name, context.now());
  }
  tell_changes(context);
}

void Provisioner::receive_kept(Context& context, const Kept& kept) {
  if (!kept.for_good) return book_.ask_member_again(kept.node);
  const std::string pool = book_.member_kept(kept.node, context.now());
  if (pool.empty()) return;
  context.log().warning(fmt::format("{} stays: {}", kept.node, kept.why));
  const auto noted = options_.note_wanted(pool, *book_.wanted(pool));
  if (!noted.ok()) context.log().warning(noted.error().message);
  tell_changes(context);
}

void Provisioner::receive_view(Context&, const ViewMessage& message) {
  treasurer_.enter(message.view, [&](std::uint32_t member) {
    const auto name = members_.find(member);
    const std::string node =
        options_.launched_on(name == members_.end() ? config::member_name(member) : name->second);
    return node.substr(0, node.rfind('.'));
  });
}

void Provisioner::receive_pace(Context& context, const Pace& pace) {
  treasurer_.note(pace, context.now());
}

Result<std::string> Provisioner::burst(const runtime::HeadRequest& request) {
  ASSIGN_OR_RETURN(const std::uint32_t before, book_.wanted(request.name));
  if (treasurer_.decides()) {
    return Error{ErrorKind::kUsage,
                 "the limits in cluster.burst decide how many nodes this run takes; stop it, and "
                 "resume it with others or without any"};
  }
  const auto wanted = changed_count(before, request.change);
  if (!wanted) {
    return Error{ErrorKind::kUsage,
                 fmt::format("'{}' is no number of nodes such as 8, +4 or -2", request.change)};
  }
  RETURN_IF_ERROR(book_.want(request.name, *wanted));
  if (const auto noted = options_.note_wanted(request.name, *wanted); !noted.ok()) {
    CHECK(book_.want(request.name, before).ok());
    return noted.error();
  }
  return fmt::format("pool {}: {} nodes are wanted, {} before; {} are there or on their way",
                     request.name, *wanted, before, book_.present(request.name));
}

void Provisioner::receive_burst(Context& context, const runtime::RequestAsked& asked) {
  auto answer = is_closed_ ? Result<std::string>(Error{ErrorKind::kLostPeers, "the run ends"})
                           : burst(asked.request);
  if (answer.ok()) context.log().info(fmt::format("{} ({})", *answer, asked.by));
  asked.reply->answer(std::move(answer));
  act(context);
}

void Provisioner::receive_no_more(Context&, const NoMoreNodes&) {
  is_closed_ = true;
  book_.close();
}

void Provisioner::ask_prices(Context& context) {
  for (const auto& [name, price] : tools_.ask_prices(context)) {
    if (treasurer_.knows_price(name) && treasurer_.price(name, context.now()) == price) continue;
    treasurer_.set_price(name, price, context.now());
    // Heads to come count what they find at the price of the journal.
    for (PoolNode node : book_.nodes()) {
      if (node.pool != name || !is_costing(node.state)) continue;
      if (const auto noted = write_down(context, node); !noted.ok()) {
        context.log().warning(noted.error().message);
      }
    }
  }
}

Result<void> Provisioner::write_down(Context& context, PoolNode& node) {
  node.paid = treasurer_.note(node, context.now());
  node.price_per_node_hour = treasurer_.price(node.pool, context.now());
  return options_.note_node(node);
}

void Provisioner::decide(Context& context) {
  const auto decision = treasurer_.decide(wanted_of(tools_, book_), context.now());
  if (!decision) return;
  if (decision->must_end && !std::exchange(told_to_end_, true)) {
    const Error why{ErrorKind::kLostPeers,
                    decision->reason + "; raise cluster.burst.budget and resume the run"};
    context.send_control("coordinator", Message::of(MemberFailed{"provisioner", why}));
  }
  tell_deadline(context, *decision);
  if (!decision->changes) return;
  context.log().info(decision->reason);
  for (std::size_t i = 0; i < tools_.pools().size(); ++i) {
    const std::string& name = tools_.pools()[i].limits.name;
    const std::uint32_t nodes = decision->forecast.nodes[i];
    if (*book_.wanted(name) == nodes) continue;
    CHECK(book_.want(name, nodes).ok(), "a decision keeps to what a pool has");
    const auto noted = options_.note_wanted(name, nodes);
    if (!noted.ok()) context.log().warning(noted.error().message);
  }
  tell_bill(context, decision->reason);
}

// Nobody trains without it.
void Provisioner::tell_bill(Context& context, const std::string& decision) {
  const TimePoint now = context.now();
  if (decision.empty() && bill_told_ && now - *bill_told_ < kTellBillEvery) return;
  bill_told_ = now;
  telemetry::BillFacts bill = treasurer_.bill(wanted_of(tools_, book_), now);
  bill.decision = decision;
  context.send_control("monitor",
                       Message::of(EventMetrics{{0.0, treasurer_.step(), std::move(bill)}}));
  if (work_noted_ && now - *work_noted_ < kNoteWorkEvery) return;
  work_noted_ = now;
  const auto noted = options_.note_work(treasurer_.contributed(), treasurer_.first_forecast());
  if (!noted.ok()) context.log().warning(noted.error().message);
}

void Provisioner::tell_deadline(Context& context, const pipeline::BurstDecision& decision) {
  const bool is_late = told_late_ ? !decision.is_in_time : decision.is_too_late;
  if (std::exchange(told_late_, is_late) == is_late) return;
  if (is_late) {
    context.log().warning("cluster.burst.finish_within cannot be kept: " + decision.reason);
  } else {
    context.log().info("cluster.burst.finish_within can be kept again: " + decision.reason);
  }
  if (!decision.changes) tell_bill(context, decision.reason);
}

// Behind what was done there may be more.
void Provisioner::act(Context& context) {
  tools_.look(context, book_, ends_by_.has_value());
  // Nodes cost something until they end.
  if (!ends_by_) {
    ask_prices(context);
    if (!is_closed_) decide(context);
    tell_bill(context, "");
  }
  const std::vector<PoolOrder> orders = book_.next(context.now());
  std::optional<AskForNode> asked;
  std::map<std::string, std::vector<ListedNode>> stops;  // by pool
  for (const PoolOrder& order : orders) {
    if (const auto* stop = std::get_if<StopNode>(&order)) {
      stops[stop->pool].push_back({stop->node, stop->id});
    } else if (const auto* members = std::get_if<LetMembersGo>(&order)) {
      context.send_control("coordinator",
                           Message::of(LetGo{members->members, members->node + " is given back"}));
    } else {
      asked = std::get<AskForNode>(order);
      book_.set_id(asked->node, tools_.id_for(*asked));
    }
  }
  const std::optional<Error> unwritten = tell_changes(context);
  for (const auto& [name, nodes] : stops) tools_.stop(context, book_, name, nodes);
  if (asked) ask_for(context, *asked, unwritten);
  context.post_progress();
  tell_changes(context);
  if (!is_closed_ && treasurer_.waits_for_a_node()) tell_wait(context);
  if (asked || !stops.empty()) ask_for_turn(context);
}

void Provisioner::ask_for(Context& context, const AskForNode& asked,
                          const std::optional<Error>& unwritten) {
  if (unwritten) return book_.start_failed(asked.node, *unwritten, context.now());
  const auto token = [&]() -> Result<std::string> {
    if (treasurer_.decides() && !treasurer_.knows_price(asked.pool)) {
      return Error{ErrorKind::kUsage, "its price is not known, and the budget has to do for it"};
    }
    return options_.token();
  };
  tools_.start(context, book_, asked, token());
}

void Provisioner::tell_wait(Context& context) {
  std::vector<std::string> reasons;
  bool is_any_on_its_way = false;
  for (const PoolTools::Pool& pool : tools_.pools()) {
    const std::string& name = pool.limits.name;
    is_any_on_its_way = is_any_on_its_way || book_.present(name) > 0;
    if (treasurer_.decides() && !treasurer_.knows_price(name)) {
      const std::string fault = tools_.price_fault(name);
      reasons.push_back(
          (fault.empty() ? fmt::format("pool {}: nothing has told the price of a node yet", name)
                         : fault) +
          ", and while that is not known the limits of the run want none");
    } else {
      reasons.push_back(fmt::format("pool {}: {}", name, wait_for(book_.nodes(), name)));
    }
  }
  waits_.tell_first(context, fmt::format("{}", fmt::join(reasons, "; ")), is_any_on_its_way);
}

std::optional<Error> Provisioner::tell_changes(Context& context) {
  std::optional<Error> unwritten;
  for (PoolNode& node : book_.take_changed()) {
    // Nobody asked for its end. One that was never started was told of.
    const bool is_loss = node.is_gone() && !node.cause.empty();
    if (is_loss && !node.id.empty()) {
      const std::string words = tools_.last_words(node);
      if (!words.empty()) node.cause += "; " + words;
      context.log().warning(fmt::format("{} is gone: {}", node.name, node.cause));
    }
    if (auto noted = write_down(context, node); !noted.ok()) unwritten = noted.error();
    context.send_control("monitor", Message::of(NodeChange{facts_of(node)}));
  }
  if (unwritten) context.log().warning(unwritten->message);
  return unwritten;
}

std::string Provisioner::waiting_for() const {
  return ends_by_ ? "nodes of its pools to end" : "wishes for nodes";
}

}  // namespace troupe::actors
