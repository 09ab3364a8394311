#include "pipeline/leaving/onnx_graph.h"

#include <bit>

#include "runtime/base/overloaded.h"

namespace troupe::pipeline {
namespace {

static_assert(std::endian::native == std::endian::little, "raw data are little endian");

void describe(onnx::ValueInfoProto& value, const std::string& name,
              const std::vector<std::int64_t>& shape, const std::string& about) {
  value.set_name(name);
  value.set_doc_string(about);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("N");
  for (const std::int64_t size : shape) type.mutable_shape()->add_dim()->set_dim_value(size);
}

}  // namespace

std::string OnnxGraph::node(const char* operation, const std::vector<std::string>& inputs,
                            const std::string& output,
                            const std::vector<OnnxAttribute>& attributes) {
  onnx::NodeProto& node = *graph_.add_node();
  node.set_op_type(operation);
  node.set_name(output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  for (const auto& [key, content] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(key);
    std::visit(runtime::Overloaded{[&](std::int64_t value) {
                                     attribute.set_type(onnx::AttributeProto::INT);
                                     attribute.set_i(value);
                                   },
                                   [&](float value) {
                                     attribute.set_type(onnx::AttributeProto::FLOAT);
                                     attribute.set_f(value);
                                   },
                                   [&](const std::string& value) {
                                     attribute.set_type(onnx::AttributeProto::STRING);
                                     attribute.set_s(value);
                                   },
                                   [&](const std::vector<std::int64_t>& values) {
                                     attribute.set_type(onnx::AttributeProto::INTS);
                                     for (const std::int64_t value : values)
                                       attribute.add_ints(value);
                                   }},
               content);
  }
  return output;
}

std::string OnnxGraph::floats(const std::string& name, const std::vector<std::int64_t>& shape,
                              const std::vector<float>& values) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t size : shape) tensor.add_dims(size);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return name;
}

std::string OnnxGraph::integers(const std::string& name, const std::vector<std::int64_t>& values) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size() * sizeof(std::int64_t));
  return name;
}

void OnnxGraph::input(const std::string& name, const std::vector<std::int64_t>& shape,
                      const std::string& about) {
  describe(*graph_.add_input(), name, shape, about);
}

void OnnxGraph::output(const std::string& name, const std::vector<std::int64_t>& shape,
                       const std::string& about) {
  describe(*graph_.add_output(), name, shape, about);
}

}  // namespace troupe::pipeline
