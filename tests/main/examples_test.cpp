// The networks of other projects in config/examples train, on small data in their formats.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

const std::string kFolder = TROUPE_SOURCE_DIR "/config/examples";
constexpr std::size_t kEvents = 40;

class Examples : public ClusterRun {
 protected:
  // Two iterations of two small micro-batches; the hash of the state.
  std::string hash_of_example(const std::string& example, const std::string& data,
                              const Words& more = {}) const {
    const std::string run = example + std::to_string(more.size());
    Words words{"run", kFolder + "/" + example + ".yaml", "--out", path(run), "--json"};
    for (const std::string& setting :
         {"data.train=[" + path(data) + "]", std::string("train.iterations=2"),
          std::string("train.micro_batch=2"), std::string("train.micro_batches=2"),
          std::string("train.seed=1"), std::string("actors.validator.every=none"),
          std::string("actors.monitor.listen=none")}) {
      words = words + Words{"--set", setting};
    }
    const ProcessEnd end = call(words + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    if (end.exit_code != 0) return {};
    const JsonValue summary = last_line(end);
    EXPECT_EQ(summary["iterations"].integer(), 2u);
    return summary["state_hash"].text();
  }
  void expect_one_hash(const std::string& example, const std::string& data) {
    const std::string alone = hash_of_example(example, data);
    EXPECT_FALSE(alone.empty());
    EXPECT_EQ(hash_of_example(example, data, {"--workers", "2"}), alone) << example;
    trained_.push_back(example);
  }
  static std::vector<float> cells(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7919 % 97) / 97.0f;
    return values;
  }

  std::vector<std::string> trained_;
};

TEST_F(Examples, TrainAndEndInOneHashWithTwoWorkers) {
  {
    std::string images("\0\0\x08\x03\0\0\0\x28\0\0\0\x1c\0\0\0\x1c", 16);
    std::string labels("\0\0\x08\x01\0\0\0\x28", 8);
    for (std::size_t i = 0; i < kEvents * 28 * 28; ++i) {
      images.push_back(static_cast<char>(i % 251));
    }
    for (std::size_t i = 0; i < kEvents; ++i) labels.push_back(static_cast<char>(i % 10));
    write_text(path("train-images-idx3-ubyte"), images);
    write_text(path("train-labels-idx1-ubyte"), labels);

    pipeline::Hdf5Scribe top(path("top.h5"));
    top.add("Images", {kEvents, 150, 94, 5}, cells(kEvents * 150 * 94 * 5));
    std::vector<float> one_hot;
    for (std::size_t i = 0; i < 3 * kEvents; ++i) {
      one_hot.push_back(i % 3 == i / 3 % 3 ? 1.0f : 0.0f);
    }
    top.add("Labels", {kEvents, 3}, one_hot);

    pipeline::Hdf5Scribe photons(path("photons.hdf5"));
    photons.add("showers", {kEvents, 368}, cells(kEvents * 368));
    photons.add("incident_energies", {kEvents, 1}, std::vector<float>(kEvents, 4096.0f));
  }
  expect_one_hash("nnlo_mnist", "train-images-idx3-ubyte");
  expect_one_hash("nnlo_topclass", "top.h5");
  expect_one_hash("calo_shower_gan", "photons.hdf5");

  std::vector<std::string> all;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    all.push_back(file.path().stem().string());
  }
  std::ranges::sort(all);
  std::ranges::sort(trained_);
  EXPECT_EQ(trained_, all);
}

}  // namespace
}  // namespace troupe
