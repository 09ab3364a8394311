#pragma once

// Helpers of the tests of the topology language.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "config/topology_fields.h"
#include "config/topology_file.h"
#include "tests/support/temporary_folder.h"

namespace troupe::config {

// The shortest topology there is.
inline const std::string kLeast = "model: {zoo: toy}\ndata: {train: [a.h5]}\n";

inline std::string source_path(const std::string& path) {
  return std::string(TROUPE_SOURCE_DIR) + "/" + path;
}

inline runtime::Result<LoadedTopology> parse(const std::string& text,
                                             const std::vector<std::string>& overrides = {}) {
  return parse_topology(text, "t.yaml", "/folder", overrides);
}

// The error's message; "" when there is none.
inline std::string message_of(const runtime::Result<LoadedTopology>& result) {
  return result.ok() ? std::string() : result.error().message;
}

// A topology that must be right.
inline LoadedTopology parsed(const std::string& text,
                             const std::vector<std::string>& overrides = {}) {
  auto result = parse(text, overrides);
  EXPECT_TRUE(result.ok()) << message_of(result);
  return result.ok() ? *result : LoadedTopology{};
}

inline Topology two_replicas() {
  Topology topology;
  topology.replica.count = 2;
  return topology;
}

// YAML that must be right.
inline YamlValue parse_well(std::string_view text) {
  Problems problems;
  YamlValue value = parse_yaml(text, "y", problems);
  EXPECT_TRUE(problems.empty()) << problems.error().message;
  return value;
}

// Everything a topology says, without where it came from.
inline std::string values_of(const Topology& topology) {
  return print_yaml(topology_record().write(topology, Selection::kAll));
}

inline const std::vector<std::string>& shipped_topologies() {
  static const std::vector<std::string> kPaths{
      source_path("config/topologies/quickstart.yaml"),
      source_path("config/topologies/calo_unet_12.yaml"),
      source_path("config/topologies/calo_unet_25.yaml"),
      source_path("config/topologies/dcgan_mnist.yaml"),
      source_path("config/topologies/demo.yaml"),
      source_path("config/topologies/digits.yaml"),
      source_path("config/topologies/gan3d_12_dense.yaml"),
      source_path("config/topologies/gan3d_12_sums.yaml"),
      source_path("config/topologies/gan3d_25.yaml"),
      source_path("config/topologies/gan3d_25_dense.yaml"),
      source_path("config/topologies/gan3d_51.yaml"),
      source_path("config/topologies/particle_12.yaml"),
      source_path("config/topologies/three_hosts.yaml"),
      source_path("config/topologies/toy.yaml"),
  };
  return kPaths;
}

}  // namespace troupe::config
