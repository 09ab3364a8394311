// Runs and verbs on data of other projects' formats.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class DataFormats : public ClusterRun {
 protected:
  // toy.h5 in another schema.
  void convert(const std::string& to, const std::string& out, const Words& more = {}) const {
    const ProcessEnd end =
        call(Words{"data", "convert", path("toy.h5"), path(out), "--to", to, "--json"} + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(last_line(end)["events"].integer(), 200u);
  }
  JsonValue info(const std::string& file, const Words& more = {}) const {
    const ProcessEnd end = call(Words{"data", "info", path(file), "--json"} + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return last_line(end);
  }
  Words on(const std::string& file, const std::string& schema) const {
    return {"--set", "data.train=" + path(file), "--set", "data.schema=" + schema,
            "--set", "train.iterations=3"};
  }
};

// The toy's three steps end in the same weights where preprocessing gives the same images, so the
// losses tell whether events and conditions are the same.
TEST_F(DataFormats, TrainingSeesTheSameEventsInEverySchema) {
  const auto losses = [&](const std::string& run) {
    std::vector<double> all;
    for (const JsonValue& line : json_lines(path(run + "/metrics.jsonl"))) {
      if (line["kind"].text() != "step") continue;
      for (const char* name : {"generation", "auxiliary", "ecal"}) {
        all.push_back(line["losses"][name].number());
      }
    }
    EXPECT_EQ(all.size(), 36u);  // 3 iterations of 4 steps
    return all;
  };
  const JsonValue fixed = summary_of("fixed", on("toy.h5", "lcd-fixed"));
  convert("nnlo", "n.h5");
  convert("tfrecord", "t.tfrecord");
  for (const auto& [file, schema] :
       {std::pair("n.h5", "nnlo"), std::pair("t.tfrecord", "tfrecord")}) {
    EXPECT_EQ(info(file)["schema"].text(), schema);
    EXPECT_EQ(info(file)["events"].integer(), 200u);
    const JsonValue other =
        summary_of(schema, on(file, schema) + Words{"--set", "data.preprocessing.threshold=1e-6"});
    EXPECT_EQ(other["ledger"]["sum"].text(), fixed["ledger"]["sum"].text());
    EXPECT_EQ(losses(schema), losses("fixed"));
  }
}

TEST_F(DataFormats, OrderCapAndRemainderGiveOneHashAloneAndWithWorkers) {
  const std::string usual = hash_of("usual", {"--set", "train.iterations=13"});
  for (const char* const setting : {"data.shuffle=false", "data.events=50", "train.remainder=carry",
                                    "train.remainder=partial"}) {
    const Words words{"--set", setting, "--set", "train.iterations=13", "--set", "train.epochs=9"};
    const std::string alone = hash_of(std::string("alone") + setting, words);
    EXPECT_NE(alone, usual) << setting;
    EXPECT_EQ(hash_of(std::string("three") + setting, words + Words{"--workers", "3"}), alone)
        << setting;
  }
  // A field that is newer than a run changes nothing where it has the value of before.
  EXPECT_EQ(hash_of("same", {"--set", "train.iterations=13", "--set", "data.shuffle=true", "--set",
                             "data.events=0", "--set", "train.remainder=drop"}),
            usual);
}

// Alone and shared out, whatever the bound, and changed from one to the other when it goes on. All
// events are in one window, so that "none" shuffles them as the others do.
TEST_F(DataFormats, EveryCacheGivesOneHash) {
  const Words to_13{"--set", "train.iterations=13"};
  const std::string usual = hash_of("usual", to_13);
  int runs = 0;
  for (const char* const cache : {"memory", "none", "disk", "shard"}) {
    for (const char* const workers : {"0", "2", "3"}) {
      const std::string name = fmt::format("run{}", ++runs);
      const Words words{"--set",     fmt::format("data.cache={}", cache),
                        "--set",     "data.shard_memory=64KiB",
                        "--workers", workers};
      EXPECT_EQ(hash_of(name, to_13 + words), usual) << cache << " " << workers;
    }
  }
  const Words to_20{"--set", "train.epochs=3", "--set", "train.iterations=20"};
  const std::string further = hash_of("further", to_20);
  EXPECT_EQ(resumed("run1", to_20 + Words{"--set", "data.cache=shard"})["state_hash"].text(),
            further);
  EXPECT_EQ(resumed("run8", to_20 + Words{"--set", "data.cache=memory"})["state_hash"].text(),
            further);
}

TEST_F(DataFormats, FileThatIsNotUnderstoodEndsWithWhatToDo) {
  {
    pipeline::Hdf5Scribe file(path("odd.h5"));
    file.add("cells", {10, 4, 4, 4}, std::vector<float>(640, 1.0f));
    file.add("truth/e", {10}, std::vector<float>(10, 20000.0f));
  }
  const ProcessEnd odd = call({"data", "info", path("odd.h5")});
  EXPECT_EQ(odd.exit_code, 4);
  EXPECT_THAT(odd.out, HasSubstr("odd.h5: HDF5 of no known schema"));
  EXPECT_THAT(odd.err, HasSubstr("it has cells, truth/e. Name its parts: troupe data info --image "
                                 "NAME --energy NAME"));
  EXPECT_EQ(call({"data", "info", path("odd.h5"), "--json"}).exit_code, 4);
  const Words names{"--image", "cells", "--energy", "truth/e", "--energy-unit", "0.001"};
  const JsonValue found = info("odd.h5", names);
  EXPECT_EQ(found["schema"].text(), "custom");
  EXPECT_EQ(found["events"].integer(), 10u);
  EXPECT_NEAR(found["energy_gev"]["mean"].number(), 20, 1e-6);
  EXPECT_EQ(found["ecal"]["mean"].number(), 64);
  expect_refused(call({"data", "info", path("toy.yaml")}), 4, {"not an HDF5 file"});
  expect_refused(call({"data", "info", path("odd.h5"), "--image", "cells"}), 2,
                 {"--energy: which part holds the energies?"});
  expect_refused(call({"data", "info", path("odd.h5"), "--shape", "4,x"}), 2, {"--shape 4,x"});
}

TEST_F(DataFormats, ConversionRefusesToReplaceAndLeavesNothing) {
  convert("idx", "images-idx4-float");
  EXPECT_TRUE(std::filesystem::exists(path("labels-idx1-float")));
  EXPECT_TRUE(std::filesystem::exists(path("images-idx4-float.origin.json")));
  std::filesystem::remove(path("images-idx4-float"));
  const Words again{"data", "convert", path("toy.h5"), path("images-idx4-float"), "--to", "idx"};
  expect_refused(call(again), 2, {"labels-idx1-float"});
  EXPECT_FALSE(std::filesystem::exists(path("images-idx4-float")));
  EXPECT_EQ(call(again + Words{"--force"}).exit_code, 0);
  EXPECT_EQ(info("images-idx4-float")["shape"].list().size(), 3u);
  expect_refused(call({"data", "convert", path("toy.h5"), path("x.h5")}), 2,
                 {"--to: which schema shall be written?"});
}

TEST_F(DataFormats, CachesAndMembersLeaveTheHashAsItIs) {
  const Words briefly{"--set", "train.iterations=3"};
  const std::string memory = hash_of("memory", briefly);
  for (const auto& [cache, members] : {std::pair("disk", "1"), std::pair("disk", "2"),
                                       std::pair("disk", "3"), std::pair("none", "2")}) {
    const Words words{"--set", fmt::format("data.cache={}", cache), "--workers", members};
    EXPECT_EQ(hash_of(fmt::format("{}-{}", cache, members), briefly + words), memory)
        << cache << " " << members;
  }
  // One file, for all members and runs, to whose bound they keep.
  int kept = 0;
  for (const auto& each : std::filesystem::directory_iterator(path("data/packed"))) {
    kept += each.path().extension() == ".events" ? 1 : 0;
  }
  EXPECT_EQ(kept, 1);
  const Words small{"--set", "data.cache=disk", "--set", "data.cache_limit=1KiB"};
  expect_refused(call(run_words("small", small)), 4, {"in use are more than data.cache_limit"});
  // A run goes on with the other cache.
  EXPECT_EQ(
      resumed("memory", {"--set", "data.cache=disk", "--set", "train.iterations=6"})["state_hash"]
          .text(),
      hash_of("whole", {"--set", "train.iterations=6"}));
}

class DataServer : public DataFormats {
 protected:
  DataServer()
      : server_(std::make_unique<Process>(
            Words{TROUPE_SOURCE_DIR "/tests/pipeline/file_server", served_.path()})) {
    CHECK(server_->wait_until([&] { return server_->out().ends_with('\n'); }), server_->err());
    ::setenv("no_proxy", "127.0.0.1", 1);
    address_ = "http://127.0.0.1:" + server_->out().substr(0, server_->out().size() - 1);
    std::filesystem::copy(path("toy.h5"), served_ / "toy.h5");
  }
  // It is no process that a run may leave.
  void TearDown() override {
    server_.reset();
    DataFormats::TearDown();
  }
  TemporaryFolder served_;
  std::unique_ptr<Process> server_;
  std::string address_;
};

TEST_F(DataServer, TrainsOnAFileOfAServerToTheHashOfTheFileItself) {
  const std::string local = hash_of("local", {"--set", "train.iterations=3"});
  const Words remote{"--set", "train.iterations=3", "--set",
                     "data.train=" + address_ + "/plain/toy.h5"};
  EXPECT_EQ(hash_of("remote", remote), local);
  EXPECT_EQ(hash_of("members", remote + Words{"--workers", "2"}), local);
  // Custom names may stand for the labels of another file on the server.
  EXPECT_EQ(
      call({"data", "convert", path("toy.h5"), served_ / "toy-images", "--to", "idx"}).exit_code,
      0);
  const Words custom{"--set", "train.iterations=3",
                     "--set", "data.schema=custom",
                     "--set", "data.names={image: images, energy: labels}",
                     "--set", "data.preprocessing={threshold: 1e-6, min_ecal: 0}"};
  EXPECT_EQ(
      hash_of("labels", custom + Words{"--set", "data.train=" + address_ + "/plain/toy-images"}),
      hash_of("own-labels", custom + Words{"--set", "data.train=" + (served_ / "toy-images")}));
  expect_refused(call(run_words("none", {"--set", "data.train=" + address_ + "/plain/none.h5"})), 4,
                 {"none.h5: there is no such file on the server (404)"});
}

TEST_F(DataServer, FetchCopiesAndChecks) {
  const Words fetch{"data", "fetch", address_ + "/plain/toy.h5", "--out", path("copies")};
  const ProcessEnd end = call(fetch + Words{"--json"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["files"].list().at(0).text(), path("copies/toy.h5"));
  EXPECT_EQ(info("copies/toy.h5")["events"].integer(), 200u);
  expect_refused(call(fetch), 2, {"toy.h5"});
  const std::string wrong = "md5:00000000000000000000000000000000";
  expect_refused(call(fetch + Words{"--force", "--checksum", wrong}), 4, {"its checksum is md5:"});
  expect_refused(call({"data", "fetch", "http://reader:secret@127.0.0.1/a.h5"}), 4,
                 {"http://127.0.0.1/a.h5: an address with a name or a password in it"});
  expect_refused(call({"data", "fetch", "mnits"}), 2,
                 {"mnits: neither an address", "the name of a set: fashion-mnist"});
  expect_refused(call({"data", "fetch", address_ + "/a", "--checksum", "md5:1"}), 2,
                 {"--checksum"});
  expect_refused(call({"data", "fetch", "fashion-mnist", "--out", path("copies"), "--mirror",
                       address_ + "/plain"}),
                 4, {"train-images-idx3-ubyte.gz: there is no such file on the server (404)"});
}

// From a mirror, whose first file is another than the set's.
TEST_F(DataServer, EveryPublicSetIsFetchedByNameAndChecked) {
  for (const auto& [set, file] : {std::pair("mnist", "train-images-idx3-ubyte.gz"),
                                  std::pair("calochallenge-1-photons", "dataset_1_photons_1.hdf5"),
                                  std::pair("calochallenge-1-pions", "dataset_1_pions_1.hdf5"),
                                  std::pair("calochallenge-2", "dataset_2_1.hdf5"),
                                  std::pair("calochallenge-3", "dataset_3_1.hdf5")}) {
    write_text(served_ / file, "another");
    expect_refused(
        call({"data", "fetch", set, "--out", path("copies"), "--mirror", address_ + "/plain"}), 4,
        {file + std::string(": its checksum is md5:"), "; expected md5:"});
    EXPECT_TRUE(std::filesystem::is_empty(path("copies"))) << set;
  }
}

}  // namespace
}  // namespace troupe
