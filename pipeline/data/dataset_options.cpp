#include "pipeline/data/dataset_options.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

template <class T>
struct Word {
  T value;
  std::string_view text;
};

constexpr Word<DataSplit> kSplits[] = {
    {DataSplit::kAll, "all"}, {DataSplit::kTrain, "train"}, {DataSplit::kTest, "test"}};
constexpr Word<CacheMode> kCacheModes[] = {{CacheMode::kNone, "none"},
                                           {CacheMode::kMemory, "memory"},
                                           {CacheMode::kDisk, "disk"},
                                           {CacheMode::kShard, "shard"}};
constexpr Word<BadEventPolicy> kPolicies[] = {{BadEventPolicy::kFail, "fail"},
                                              {BadEventPolicy::kSkip, "skip"}};

template <class T, std::size_t N>
std::string_view text_of(T value, const Word<T> (&words)[N]) {
  for (const Word<T>& word : words) {
    if (word.value == value) return word.text;
  }
  CHECK(false, "a value without a word");
}

}  // namespace

std::string_view text(DataSplit split) { return text_of(split, kSplits); }
std::string_view text(CacheMode mode) { return text_of(mode, kCacheModes); }
std::string_view text(BadEventPolicy policy) { return text_of(policy, kPolicies); }

std::string ImageShape::text() const {
  std::string all = fmt::format("{}", fmt::join(space, " x "));
  if (channels != 1) all += fmt::format(" x {}", channels);
  return all;
}

}  // namespace troupe::pipeline
