#include "pipeline/data/dataset_options.h"

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

template <class T>
struct Word {
  T value;
  std::string_view text;
};

constexpr Word<DataSchema> kSchemas[] = {{DataSchema::kLcdFixed, "lcd-fixed"},
                                         {DataSchema::kLcdAngle, "lcd-angle"},
                                         {DataSchema::kCustom, "custom"}};
constexpr Word<DataSplit> kSplits[] = {
    {DataSplit::kAll, "all"}, {DataSplit::kTrain, "train"}, {DataSplit::kTest, "test"}};
constexpr Word<CacheMode> kCacheModes[] = {{CacheMode::kNone, "none"},
                                           {CacheMode::kMemory, "memory"}};
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

std::string_view text(DataSchema schema) { return text_of(schema, kSchemas); }
std::string_view text(DataSplit split) { return text_of(split, kSplits); }
std::string_view text(CacheMode mode) { return text_of(mode, kCacheModes); }
std::string_view text(BadEventPolicy policy) { return text_of(policy, kPolicies); }

std::optional<DataSchema> parse_schema(std::string_view word) {
  for (const Word<DataSchema>& schema : kSchemas) {
    if (schema.text == word) return schema.value;
  }
  return std::nullopt;
}

Preprocessing default_preprocessing(DataSchema schema) {
  Preprocessing preprocessing;
  if (schema == DataSchema::kLcdFixed) {
    preprocessing.threshold = 1e-6f;
    preprocessing.min_ecal = 0;
  }
  if (schema == DataSchema::kLcdAngle) {
    preprocessing.min_ecal = 10;
    preprocessing.power = 0.85;
  }
  return preprocessing;
}

DatasetNames default_names(DataSchema schema) {
  DatasetNames names;
  if (schema == DataSchema::kLcdFixed) {
    names.energy = "target";
    names.energy_column = 1;
  }
  if (schema == DataSchema::kLcdAngle) {
    names.energy = "energy";
    names.angle = "theta";
  }
  return names;
}

}  // namespace troupe::pipeline
