#include "model/backend/device/sums.h"

namespace troupe::model::device {

DeviceSums::DeviceSums(Device& device)
    : device_(device),
      zero_fill_(device, "zero_fill", Queue::kBeside),
      add_exactly_(device, "add_exactly", Queue::kBeside),
      add_floats_(device, "add_floats", Queue::kBeside) {}

template <class T, class Launch>
std::span<const std::uint32_t> DeviceSums::make(std::span<const Vectors> vectors,
                                                std::span<const SumPart> parts,
                                                std::size_t elements, const Launch& launch) const {
  std::size_t of_parts = 0;
  for (const SumPart& part : parts) of_parts += static_cast<std::size_t>(part.size);
  CHECK(of_parts == elements, "the parts make up the sum");
  const std::size_t sum_bytes = elements * sizeof(T);
  const std::size_t all = sum_bytes + parts.size() * sizeof(std::uint32_t);
  if (bytes_ < all) {
    there_.reset();
    there_ = device_.allocate(all);
    device_.wait_for(device_.mark());  // its zeros
    made_ = device_.allocate_host(all);
    bytes_ = all;
  }
  const auto words = static_cast<std::int64_t>(all / sizeof(float));
  Arguments of_zeros;
  zero_fill_.elements(words, 1,
                      of_zeros.operand(reinterpret_cast<const float*>(there_.get())).value(words));
  const auto* sums = reinterpret_cast<const T*>(there_.get());
  const auto* largest = reinterpret_cast<const std::uint32_t*>(there_.get() + sum_bytes);
  for (const SumPart& part : parts) {
    for (const Vectors& block : vectors) {
      Arguments arguments;
      arguments.operand(block.first + part.begin, block.stride)
          .operand(sums)
          .operand(largest)
          .value(long{part.size})
          .value(as_int(block.count));
      launch(part, arguments);
    }
    sums += part.size;
    ++largest;
  }
  device_.read(Queue::kBeside, there_.get(), made_.get(), all);
  return {reinterpret_cast<const std::uint32_t*>(made_.get() + sum_bytes), parts.size()};
}

void DeviceSums::add_exactly(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                             std::uint32_t micro_batches, std::span<std::int64_t> sum,
                             std::span<QuantiseReport> reports) const {
  const std::scoped_lock lock(mutex_);
  const auto largest = make<std::int64_t>(
      vectors, parts, sum.size(), [&](const SumPart& part, Arguments& arguments) {
        add_exactly_(part.size, 1, arguments.value(scale_factor(part.k)));
      });
  add({reinterpret_cast<const std::int64_t*>(made_.get()), sum.size()}, sum);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    reports[i].merge(report_of(largest[i], parts[i].k, micro_batches));
  }
}

void DeviceSums::add_floats(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                            std::span<float> sum, std::span<QuantiseReport> reports) const {
  const std::scoped_lock lock(mutex_);
  const auto largest = make<float>(
      vectors, parts, sum.size(),
      [&](const SumPart& part, Arguments& arguments) { add_floats_(part.size, 1, arguments); });
  const auto* made = reinterpret_cast<const float*>(made_.get());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += made[i];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    reports[i].non_finite |= report_of(largest[i], kNoExponent, 1).non_finite;
  }
}

}  // namespace troupe::model::device
