#include "model/backend/device/channel_totals.h"

namespace troupe::model::device {
namespace {

std::int64_t elements_of(const cpu::ChannelSums& sums) { return as_int(sums.rows * sums.channels); }

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormTraining& norm) {
  const cpu::ChannelSums channels(norm.rows, norm.channels);
  const ChannelSizes sizes = sizes_of(channels);
  const std::int64_t chains = channels.chains(), size = 2 * chains + norm.channels;
  GroupScratch scratch(make.group);
  scratch.add<double>(size);
  return operation_kernel(scratch.bytes(), [=, sum = make.kernel("channel_sums"),
                                            means =
                                                TotalLauncher(make, channels, "batch_norm_means"),
                                            squares = make.kernel("batch_norm_squares"),
                                            statistics = TotalLauncher(make, channels,
                                                                       "batch_norm_statistics"),
                                            normalise = make.kernel("batch_norm_normalise")](
                                               const GroupCall& call) {
    const auto* sums = reinterpret_cast<const double*>(call.scratch);
    const std::int64_t count = call.group.count;
    sum(chains, count, call.with({0}).operand(sums, size).value(sizes).value(int{1}));
    Arguments of_means;
    means(count, of_means.operand(sums, size).value(sizes));
    squares(chains, count, call.with({0}).operand(sums, size).value(sizes));
    Arguments of_statistics;
    of_statistics.operand(sums, size);
    statistics(count, call.add(of_statistics, {4, 5, 6, 7}).value(sizes).value(norm.epsilon));
    normalise.elements(elements_of(channels), count, call.with({0, 1, 2, 3, 4, 5}).value(sizes));
  });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormInference& norm) {
  const cpu::ChannelSums channels(norm.rows, norm.channels);
  const ChannelSizes sizes = sizes_of(channels);
  GroupScratch scratch(make.group);
  scratch.add_shared<float>(norm.channels);
  return operation_kernel(
      scratch.bytes(), [=, invert = make.kernel("batch_norm_inverse"),
                        normalise = make.kernel("batch_norm_normalise")](const GroupCall& call) {
        const auto* deviation = reinterpret_cast<const float*>(call.scratch);
        invert(norm.channels, 1,
               call.with({4}).operand(deviation).value(as_int(norm.channels)).value(norm.epsilon));
        normalise.elements(elements_of(channels), call.group.count,
                           call.with({0, 1, 2, 5, 3}).operand(deviation).value(sizes));
      });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormBackward& norm) {
  const cpu::ChannelSums channels(norm.rows, norm.channels);
  const ChannelSizes sizes = sizes_of(channels);
  const std::int64_t chains = channels.chains(), size = 2 * chains, of_both = 2 * norm.channels;
  GroupScratch scratch(make.group);
  scratch.add<double>(size);
  const std::size_t means_at = scratch.add<float>(of_both);
  return operation_kernel(
      scratch.bytes(), [=, products = make.kernel("batch_norm_products"),
                        add = TotalLauncher(make, channels, "batch_norm_totals"),
                        backward = make.kernel("batch_norm_backward")](const GroupCall& call) {
        const auto* sums = reinterpret_cast<const double*>(call.scratch);
        const auto* means = reinterpret_cast<const float*>(call.scratch + means_at);
        const std::int64_t count = call.group.count;
        products(chains, count, call.with({0, 1, 3, 4}).operand(sums, size).value(sizes));
        Arguments of_totals;
        of_totals.operand(sums, size).operand(means, of_both);
        const int wanted = call.operands[6] != nullptr;
        add(count, call.add(of_totals, {6, 7}).value(sizes).value(wanted));
        backward.elements(
            elements_of(channels), count,
            call.add(call.with({0, 1, 2, 3, 4}).operand(means, of_both), {5}).value(sizes));
      });
}

}  // namespace troupe::model::device
