#include "pipeline/data/dataset_index.h"

#include <utility>

#include <fmt/format.h>

namespace troupe::pipeline {

using runtime::Hash128;
using runtime::Result;

namespace {

constexpr std::size_t kBadEventsTold = 8;

// The facts about a row that scanning finds besides its verdict.
struct RowFindings {
  Hash128 image_hash;
  std::string trouble;  // of a bad event
};

void finish(std::vector<RowFindings>& findings, FileIndex& index) {
  runtime::Hasher hasher;
  for (std::size_t row = 0; row < index.rows(); ++row) {
    hasher.add_value(index.energies[row]);
    hasher.add_value(index.angles[row]);
    hasher.add_value(findings[row].image_hash.high);
    hasher.add_value(findings[row].image_hash.low);
    for (const float value : index.columns_of(row)) hasher.add_value(value);
    if (index.states[row] != EventState::kBad) continue;
    ++index.bad;
    if (index.bad_events.size() < kBadEventsTold) {
      index.bad_events.push_back(std::move(findings[row].trouble));
    }
  }
  index.content = hasher.digest();
}

}  // namespace

Result<FileIndex> scan_file(const DatasetFile& file, const Preprocessing& preprocessing,
                            runtime::ThreadTeam& team, ReadScratch& scratch,
                            const BlockVisitor& visitor) {
  const BlockReader& images = file.images();
  const std::size_t rows = images.rows();
  const std::size_t cells = images.row_size();
  ASSIGN_OR_RETURN(const EventConditions conditions, file.read_conditions());
  FileIndex index;
  index.shape = file.shape();
  index.block_rows = images.block_rows();
  index.states.resize(rows);
  index.energies.resize(rows);
  index.angles.resize(rows);
  index.ecals.resize(rows);
  index.columns.assign(conditions.columns.begin(), conditions.columns.end());
  std::vector<RowFindings> findings(rows);
  const auto judge = [&](std::size_t row, std::span<const float> image) {
    const StoredEvent event{image, conditions.energies_gev[row], conditions.angles_rad[row]};
    const EventVerdict verdict = judge_event(event, preprocessing);
    // What is cut is not looked at further.
    std::optional<DatasetFile::ColumnFault> fault;
    if (verdict.state == EventState::kAccepted) {
      fault = file.fault_of_columns(conditions.columns_of(row));
    }
    index.states[row] = fault ? EventState::kBad : verdict.state;
    index.energies[row] = static_cast<float>(event.energy_gev / 100.0);
    index.angles[row] = static_cast<float>(event.angle_rad);
    index.ecals[row] = verdict.ecal;
    findings[row].image_hash = runtime::hash_of(std::as_bytes(image));
    if (fault) {
      findings[row].trouble = fmt::format("{}, event {}: {}", fault->place, row, fault->text);
    }
    if (fault || verdict.state != EventState::kBad) return;
    const BadEvent bad = describe_bad_event(event, preprocessing, index.shape);
    findings[row].trouble = fmt::format("{}, event {}: {}", file.place(bad.part), row, bad.text);
  };
  // Threads judge several blocks at once. Each row has its own places in the arrays, and finish()
  // goes over them in order of rows, so the result does not depend on threads.
  const auto judge_block = [&](std::uint32_t block, std::span<float> values, int) -> Result<void> {
    const std::size_t first = images.first_row(block);
    const std::size_t count = images.rows_of(block);
    for (std::size_t i = 0; i < count; ++i) judge(first + i, values.subspan(i * cells, cells));
    if (!visitor) return {};
    return visitor(block, std::span(index.states).subspan(first, count), values);
  };
  std::vector<std::uint32_t> blocks(images.blocks());
  for (std::uint32_t i = 0; i < blocks.size(); ++i) blocks[i] = i;
  RETURN_IF_ERROR(images.read(blocks, team, scratch, judge_block));
  finish(findings, index);
  return index;
}

}  // namespace troupe::pipeline
