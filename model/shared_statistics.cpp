#include "model/shared_statistics.h"

#include <algorithm>

namespace troupe::model {
namespace {

void add_rounds(std::vector<StatisticsRound>& rounds, const NetworkDescription& network, int run,
                bool of_generator, bool forward) {
  const auto add = [&](std::size_t i) {
    const auto* norm = std::get_if<BatchNorm>(&network.layers[i].kind);
    if (norm == nullptr || !norm->sync) return;
    rounds.push_back({run, of_generator, static_cast<int>(i), forward});
  };
  const std::size_t layers = network.layers.size();
  for (std::size_t i = 0; i < layers; ++i) add(forward ? i : layers - 1 - i);
}

}  // namespace

std::vector<StatisticsRound> statistics_rounds(const GanDescription& gan, SlotKind slot) {
  std::vector<StatisticsRound> rounds;
  if (slot == SlotKind::kWorkers || slot == SlotKind::kStatistics) return rounds;
  const bool both = slot == SlotKind::kG;
  int run = 0;
  if (both) add_rounds(rounds, gan.generator, run++, true, true);
  add_rounds(rounds, gan.discriminator, run++, false, true);
  add_rounds(rounds, gan.discriminator, run++, false, false);
  if (both) add_rounds(rounds, gan.generator, run++, true, false);
  return rounds;
}

std::vector<SlotKind> with_rounds(const GanDescription& gan,
                                  const std::vector<SlotKind>& schedule) {
  std::vector<SlotKind> all;
  for (const SlotKind slot : schedule) {
    all.insert(all.end(), statistics_rounds(gan, slot).size(), SlotKind::kStatistics);
    all.push_back(slot);
  }
  return all;
}

ScheduledWork work_at(const std::vector<SlotKind>& schedule, std::uint32_t place) {
  const auto is_step = [](SlotKind slot) { return slot != SlotKind::kStatistics; };
  const auto here = schedule.begin() + place;
  const auto step = std::find_if(here, schedule.end(), is_step);
  CHECK(step != schedule.end(), "a step behind its rounds");
  const auto steps_before = std::count_if(schedule.begin(), step, is_step);
  ScheduledWork work{*step, -1, static_cast<std::uint32_t>(steps_before)};
  if (step == here) return work;
  const auto before = std::find_if(std::reverse_iterator(here), schedule.rend(), is_step);
  work.round = static_cast<int>(before - std::reverse_iterator(here));
  return work;
}

}  // namespace troupe::model
