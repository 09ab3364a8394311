#include "pipeline/steps/bucket_arithmetic.h"

#include <utility>

#include "model/exact_sum.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

using runtime::Buffer;

Buffer sum_of_integers(const Buffer& a, const Buffer& b) {
  Buffer sum = Buffer::allocate(a.size());
  model::add(a.as<std::int64_t>(), b.as<std::int64_t>(), sum.mutable_as<std::int64_t>());
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

}  // namespace

BucketArithmetic::BucketArithmetic(std::optional<ReductionFormat> lossy,
                                   std::vector<std::size_t> slot_floats)
    : lossy_(lossy) {
  const bool drops = lossy && *lossy != ReductionFormat::kFp32;
  if (drops) feedback_.emplace(*lossy, std::move(slot_floats));
}

Buffer BucketArithmetic::sum_of(std::span<const Buffer> parts, bool floats) {
  CHECK(!parts.empty(), "a sum of something");
  Buffer sum = parts.front();
  for (const Buffer& part : parts.subspan(1)) {
    sum = floats ? sum_of_floats(sum, part) : sum_of_integers(sum, part);
  }
  return sum;
}

Buffer BucketArithmetic::encode(std::uint32_t slot, const Bucket& bucket,
                                std::span<const float> values) {
  Buffer wire = Buffer::allocate(encoded_bytes(*lossy_, values.size()));
  feedback_->encode(slot, static_cast<std::size_t>(bucket.offset), values,
                    {wire.mutable_data(), wire.size()});
  return wire;
}

Buffer BucketArithmetic::begin(std::uint32_t slot, const Bucket& bucket, Buffer own) {
  if (!bucket.floats || !feedback_) return own;
  return encode(slot, bucket, own.as<float>());
}

Buffer BucketArithmetic::add(std::uint32_t slot, const Bucket& bucket, const Buffer& part,
                             const Buffer& own) {
  if (!bucket.floats) return sum_of_integers(part, own);
  if (!feedback_) return sum_of_floats(part, own);
  Buffer sum = Buffer::copy_of(own.bytes());
  decode_add(*lossy_, part.bytes(), sum.mutable_as<float>());
  return encode(slot, bucket, sum.as<float>());
}

Buffer BucketArithmetic::sum_from(const Bucket& bucket, const Buffer& wire) const {
  if (!bucket.floats || !feedback_) return wire;
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
