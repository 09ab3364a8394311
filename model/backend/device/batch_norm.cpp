#include "model/backend/cpu/channel_vectors.h"
#include "model/backend/device/operation_kernel.h"

namespace troupe::model::device {
namespace {

// The same chains of sums as on a host, which follow from the period; in parts for `fastest`.
template <class Norm>
BatchNormSizes sizes_of(const Maker& make, const Norm& norm) {
  const std::int64_t period = cpu::channel_period(norm.channels, norm.rows * norm.channels);
  const std::int64_t rows_at_once = period / norm.channels;
  const SumParts parts = make.parts_of((norm.rows + rows_at_once - 1) / rows_at_once, rows_at_once);
  return {.rows = as_int(norm.rows),
          .channels = as_int(norm.channels),
          .period = as_int(period),
          .parts = as_int(parts.count),
          .part_rows = as_int(parts.length * rows_at_once),
          .epsilon = 0.0};
}
std::int64_t chains_of(const BatchNormSizes& sizes) {
  return std::int64_t{sizes.period} * sizes.parts;
}

std::int64_t elements_of(const BatchNormSizes& sizes) {
  return std::int64_t{sizes.rows} * sizes.channels;
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormTraining& norm) {
  BatchNormSizes sizes = sizes_of(make, norm);
  sizes.epsilon = norm.epsilon;
  const std::int64_t chains = chains_of(sizes), size = 2 * chains + sizes.channels;
  GroupScratch scratch(make.group);
  scratch.add<double>(size);
  return operation_kernel(scratch.bytes(), [=, sum = make.kernel("batch_norm_sums"),
                                            means = make.kernel("batch_norm_means"),
                                            squares = make.kernel("batch_norm_squares"),
                                            statistics = make.kernel("batch_norm_statistics"),
                                            normalise = make.kernel("batch_norm_normalise")](
                                               const GroupCall& call) {
    const auto* sums = reinterpret_cast<const double*>(call.scratch);
    const std::int64_t count = call.group.count;
    sum(chains, count, call.with({0}).operand(sums, size).value(sizes));
    Arguments of_means;
    means(sizes.channels, count, of_means.operand(sums, size).value(sizes));
    squares(chains, count, call.with({0}).operand(sums, size).value(sizes));
    Arguments of_statistics;
    of_statistics.operand(sums, size);
    statistics(sizes.channels, count, call.add(of_statistics, {4, 5, 6, 7}).value(sizes));
    normalise(elements_of(sizes), count, call.with({0, 1, 2, 3, 4, 5}).value(sizes).value(int{1}));
  });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormInference& norm) {
  BatchNormSizes sizes = sizes_of(make, norm);
  sizes.epsilon = norm.epsilon;
  return operation_kernel(
      0, [=, normalise = make.kernel("batch_norm_normalise")](const GroupCall& call) {
        normalise(elements_of(sizes), call.group.count,
                  call.with({0, 1, 2, 5, 3, 4}).value(sizes).value(int{0}));
      });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormBackward& norm) {
  const BatchNormSizes sizes = sizes_of(make, norm);
  const std::int64_t chains = chains_of(sizes), size = 2 * chains, channels = 2 * sizes.channels;
  GroupScratch scratch(make.group);
  scratch.add<double>(size);
  const std::size_t totals_at = scratch.add<double>(channels);
  return operation_kernel(
      scratch.bytes(),
      [=, products = make.kernel("batch_norm_products"), add = make.kernel("batch_norm_totals"),
       backward = make.kernel("batch_norm_backward")](const GroupCall& call) {
        const auto* sums = reinterpret_cast<const double*>(call.scratch);
        const auto* totals = reinterpret_cast<const double*>(call.scratch + totals_at);
        const std::int64_t count = call.group.count;
        products(chains, count, call.with({0, 1, 3, 4}).operand(sums, size).value(sizes));
        Arguments of_totals;
        of_totals.operand(sums, size).operand(totals, channels);
        const int wanted = call.operands[6] != nullptr;
        add(sizes.channels, count, call.add(of_totals, {6, 7}).value(sizes).value(wanted));
        backward(elements_of(sizes), count,
                 call.add(call.with({0, 1, 2, 3, 4}).operand(totals, channels), {5}).value(sizes));
      });
}

}  // namespace troupe::model::device
