#include "pipeline/steps/bucket_arithmetic.h"

#include <utility>

#include "model/exact_sum.h"
#include "model/rounded_sum.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

using runtime::Buffer;

template <class Integer>
Buffer sum_of_integers(const Buffer& a, const Buffer& b) {
  Buffer sum = Buffer::allocate(a.size());
  model::add(a.as<Integer>(), b.as<Integer>(), sum.mutable_as<Integer>());
  return sum;
}

// Each sum is rounded once, so vectors of any width give the same bits.
void add_floats(const float* a, const float* b, std::size_t count, float* sum) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

#if defined(__x86_64__)
__attribute__((target("avx2"), flatten)) void add_floats_avx2(const float* a, const float* b,
                                                              std::size_t count, float* sum) {
  add_floats(a, b, count, sum);
}
#endif

Buffer sum_of_floats(const Buffer& a, const Buffer& b) {
  CHECK(a.size() == b.size());
  Buffer sum = Buffer::allocate(a.size());
  const std::size_t count = a.size() / sizeof(float);
  float* out = sum.mutable_as<float>().data();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) {
    add_floats_avx2(a.as<float>().data(), b.as<float>().data(), count, out);
    return sum;
  }
#endif
  add_floats(a.as<float>().data(), b.as<float>().data(), count, out);
  return sum;
}

Buffer sum_of_two(const Buffer& a, const Buffer& b, SumKind kind) {
  switch (kind) {
    case SumKind::kFloat32:
      return sum_of_floats(a, b);
    case SumKind::kInt16:
      return sum_of_integers<std::int16_t>(a, b);
    case SumKind::kInt64:
      break;
  }
  return sum_of_integers<std::int64_t>(a, b);
}

}  // namespace

BucketArithmetic::BucketArithmetic(std::optional<ReductionFormat> lossy,
                                   std::vector<std::size_t> slot_floats)
    : lossy_(lossy) {
  const bool drops = lossy && *lossy != ReductionFormat::kFp32;
  if (drops) feedback_.emplace(*lossy, std::move(slot_floats));
}

Buffer BucketArithmetic::sum_of(std::span<const Buffer> parts, SumKind kind) {
  CHECK(!parts.empty(), "a sum of something");
  Buffer sum = parts.front();
  for (const Buffer& part : parts.subspan(1)) sum = sum_of_two(sum, part, kind);
  return sum;
}

Buffer BucketArithmetic::add(std::uint32_t slot, const Bucket& bucket,
                             std::span<const Buffer> parts, Buffer own) {
  if (bucket.kind != SumKind::kFloat32 || !feedback_) {
    for (const Buffer& part : parts) own = sum_of_two(part, own, bucket.kind);
    return own;
  }
  Buffer sum = parts.empty() ? std::move(own) : Buffer::copy_of(own.bytes());
  for (const Buffer& part : parts) decode_add(*lossy_, part.bytes(), sum.mutable_as<float>());
  const std::span<const float> values = std::as_const(sum).as<float>();
  Buffer wire = Buffer::allocate(encoded_bytes(*lossy_, values.size()));
  feedback_->encode(slot, static_cast<std::size_t>(bucket.offset), values,
                    {wire.mutable_data(), wire.size()});
  return wire;
}

Buffer BucketArithmetic::sum_from(const Bucket& bucket, const Buffer& wire) const {
  if (bucket.kind != SumKind::kFloat32 || !feedback_) return wire;
  Buffer sum = Buffer::allocate(static_cast<std::size_t>(bucket.size) * sizeof(float));
  decode(*lossy_, wire.bytes(), sum.mutable_as<float>());
  return sum;
}

void BucketArithmetic::close(std::uint32_t slot, bool applied) {
  if (!feedback_) return;
  if (applied) {
    feedback_->commit(slot);
  } else {
    feedback_->roll_back(slot);
  }
}

}  // namespace troupe::pipeline
