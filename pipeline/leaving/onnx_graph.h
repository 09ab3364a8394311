#pragma once

// A graph of ONNX in the making.

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe::pipeline {

using OnnxAttribute =
    std::pair<const char*,
              std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>>>;

// Adds to a graph that outlives it. Values are called by their names, which are unique.
class OnnxGraph {
 public:
  explicit OnnxGraph(onnx::GraphProto& graph) : graph_(graph) {}

  // A node with one output, which it is named for. Returns the name.
  std::string node(const char* operation, const std::vector<std::string>& inputs,
                   const std::string& output, const std::vector<OnnxAttribute>& attributes = {});
  // Constants. Return the name.
  std::string floats(const std::string& name, const std::vector<std::int64_t>& shape,
                     const std::vector<float>& values);
  std::string number(const std::string& name, double value) {
    return floats(name, {}, {static_cast<float>(value)});
  }
  std::string integers(const std::string& name, const std::vector<std::int64_t>& values);
  // An input or output of floats, whose first axis is the events ("N") and the others `shape`.
  void input(const std::string& name, const std::vector<std::int64_t>& shape,
             const std::string& about);
  void output(const std::string& name, const std::vector<std::int64_t>& shape,
              const std::string& about);

 private:
  onnx::GraphProto& graph_;
};

}  // namespace troupe::pipeline
