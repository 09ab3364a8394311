#include "model/memory_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "tests/model/example_networks.h"
#include "tests/model/random_network.h"

namespace troupe::model {
namespace {

InstructionLists instructions_of(const NetworkDescription& network, const ProgramOptions& options) {
  const NetworkShapes shapes = infer_shapes(network);
  return make_instructions(network, shapes, layout_parameters(network, shapes), options);
}

ProgramOptions batch_of(std::int64_t batch) {
  ProgramOptions options;
  options.batch = batch;
  return options;
}

// Plays the instructions on an arena that remembers which tensor each line of 64 bytes holds, and
// complains about every read of something else. Knows nothing of lives.
class Arena {
 public:
  Arena(const InstructionLists& lists, DataType type, const MemoryPlan& plan)
      : lists_(lists), type_(type), plan_(plan), holder_(plan.bytes / kLine, kNobody) {}

  // What is wrong with running these passes one after the other, if anything.
  std::optional<std::string> play(std::vector<Pass> passes) {
    for (const int input : {lists_.input, lists_.conditions, lists_.columns}) {
      if (input >= 0) hold(input);
    }
    const bool backward = passes.size() > 1 && compiled(passes.back());
    if (backward) {
      for (const int gradient : lists_.output_gradients) hold(gradient);
    }
    for (const Pass pass : passes) {
      for (const Instruction& instruction : lists_.passes[static_cast<std::size_t>(pass)]) {
        play(instruction);
      }
    }
    expect(lists_.input, "the input at the end");
    for (const int output : lists_.outputs) expect(output, "an output at the end");
    if (!backward) return problem_;
    for (const int gradient : lists_.output_gradients) expect(gradient, "an output gradient");
    if (passes.back() != Pass::kBackwardInput) return problem_;
    expect(lists_.input_gradient, "the input gradient");
    if (lists_.columns >= 0) expect(lists_.columns_gradient, "the columns' gradient");
    return problem_;
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr int kNobody = -1;

  bool compiled(Pass pass) const { return lists_.compiled[static_cast<std::size_t>(pass)]; }

  void play(const Instruction& instruction) {
    const std::string place = operation_name(instruction.operation);
    for (const Operand& operand : instruction.operands) {
      if (operand.location != Location::kArena) continue;
      if (operand.access != Access::kWrite) expect(operand.tensor, place + " reads");
    }
    for (const Operand& operand : instruction.operands) {
      if (operand.location != Location::kArena) continue;
      if (operand.access != Access::kRead) hold(operand.tensor);
    }
    for (const Operand& operand : instruction.operands) {
      if (operand.location == Location::kArena && !is_changed_in_place(instruction, operand))
        expect(operand.tensor, place + " overwrites its own");
    }
  }
  bool is_changed_in_place(const Instruction& instruction, const Operand& operand) const {
    if (!is_elementwise(instruction.operation)) return false;
    const auto offset = [&](const Operand& of) {
      return plan_.offsets[static_cast<std::size_t>(of.tensor)];
    };
    const Operand& result = instruction.operands.back();
    return &operand == &result - 1 && offset(operand) == offset(result);
  }

  template <class Visit>
  void each_line(int tensor, Visit visit) {
    const auto index = static_cast<std::size_t>(tensor);
    const std::size_t bytes =
        static_cast<std::size_t>(lists_.tensors[index].elements) * bytes_of(type_);
    if (plan_.offsets[index] % kLine != 0) problem_ = "an offset that is not a multiple of 64";
    for (std::size_t line = plan_.offsets[index] / kLine;
         line * kLine < plan_.offsets[index] + bytes; ++line) {
      if (line >= holder_.size()) {
        problem_ = lists_.tensors[index].name + " ends beyond the arena";
        return;
      }
      visit(holder_[line]);
    }
  }
  void hold(int tensor) {
    each_line(tensor, [&](int& holder) { holder = tensor; });
  }
  void expect(int tensor, const std::string& what) {
    each_line(tensor, [&](int& holder) {
      if (holder != tensor) {
        problem_ = what + " " + lists_.tensors[static_cast<std::size_t>(tensor)].name;
      }
    });
  }

  const InstructionLists& lists_;
  const DataType type_;
  const MemoryPlan& plan_;
  std::vector<int> holder_;
  std::optional<std::string> problem_;
};

std::optional<std::string> play_all(const InstructionLists& lists, DataType type,
                                    const MemoryPlan& plan) {
  for (const std::vector<Pass>& passes :
       {std::vector{Pass::kForwardTraining, Pass::kBackwardParameters},
        std::vector{Pass::kForwardTraining, Pass::kBackwardInput},
        std::vector{Pass::kForwardInference}}) {
    if (!lists.compiled[static_cast<std::size_t>(passes.front())]) continue;
    if (auto problem = Arena(lists, type, plan).play(passes)) return problem;
  }
  return std::nullopt;
}

// The last layer reads the conditions or the columns, mostly as the only one.
NetworkDescription told(NetworkDescription network, const std::string& input) {
  if (network.outputs.empty()) network.outputs = {network.layers.back().name};
  auto& numbers = input == "columns" ? network.columns : network.conditions;
  if (numbers.empty()) numbers = {"eta", "phi"};
  network.layers.push_back(layer("told", Dense{3}, input));
  network.outputs.emplace_back("told");
  return network;
}

TEST(MemoryPlan, NothingNeededIsOverwrittenInRandomNetworks) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    NetworkDescription network = random_network(seed);
    if (seed % 3 == 0) network = told(std::move(network), "conditions");
    if (seed % 3 == 1) network = told(std::move(network), "columns");
    ProgramOptions options = batch_of(1 + static_cast<std::int64_t>(seed % 5));
    options.backward_parameters = seed % 7 != 0;
    options.backward_input = seed % 5 != 0;
    options.forward_training = seed % 11 != 0;
    const InstructionLists lists = instructions_of(network, options);
    const DataType type = seed % 2 == 0 ? DataType::kFloat32 : DataType::kFloat64;
    const std::vector<TensorLife> lives = tensor_lives(lists, type);
    const MemoryPlan plan = plan_memory(lives);
    const auto problem = play_all(lists, type, plan);
    ASSERT_FALSE(problem) << *problem << ", seed " << seed;
    ASSERT_GE(plan.bytes, least_bytes(lives));
    ASSERT_LE(plan.bytes, bytes_without_sharing(lives));
  }
}

// The places of tensors of `lists` when some share theirs, as they do in `shared`.
MemoryPlan places_of(const InstructionLists& lists, const InstructionLists& shared,
                     const MemoryPlan& plan) {
  MemoryPlan places = plan;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    for (std::size_t i = 0; i < lists.passes[pass].size(); ++i) {
      const auto& operands = lists.passes[pass][i].operands;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (operands[k].location != Location::kArena) continue;
        const int place = shared.passes[pass][i].operands[k].tensor;
        places.offsets[static_cast<std::size_t>(operands[k].tensor)] =
            plan.offsets[static_cast<std::size_t>(place)];
      }
    }
  }
  return places;
}

TEST(SharedPlaces, NothingNeededIsOverwrittenInRandomNetworks) {
  int with_sharing = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const InstructionLists lists = instructions_of(random_network(seed), batch_of(2));
    InstructionLists shared = lists;
    share_places(shared);
    const std::vector<TensorLife> lives = tensor_lives(shared, DataType::kFloat32);
    const MemoryPlan plan = plan_memory(lives);
    const auto problem = play_all(lists, DataType::kFloat32, places_of(lists, shared, plan));
    ASSERT_FALSE(problem) << *problem << ", seed " << seed;
    const std::size_t before = bytes_without_sharing(tensor_lives(lists, DataType::kFloat32));
    ASSERT_LE(bytes_without_sharing(lives), before);
    if (bytes_without_sharing(lives) < before) ++with_sharing;
  }
  EXPECT_GT(with_sharing, 100);
}

// The tensors of the operands of an instruction, -1 for those outside the arena.
std::vector<int> tensors_of(const InstructionLists& lists, Pass pass, const std::string& name) {
  std::vector<int> tensors;
  for (const Instruction& each : lists.passes[static_cast<std::size_t>(pass)]) {
    if (operation_name(each.operation) != name) continue;
    for (const Operand& operand : each.operands) {
      tensors.push_back(operand.location == Location::kArena ? operand.tensor : -1);
    }
  }
  return tensors;
}

NetworkDescription dropping_network() {
  NetworkDescription network{"n", Shape::image({5, 5, 5}, 2), {}, {"last"}};
  network.layers = {layer("first", convolution(2, {3, 3, 3}, Padding::kSame)),
                    layer("leaky", Activation{ActivationKind::kLeakyRelu, 0.3}),
                    layer("drop", Dropout{0.2}),
                    layer("last", convolution(2, {3, 3, 3}, Padding::kSame))};
  return network;
}

TEST(SharedPlaces, DropoutBehindARectifierAndTheirGradientsNeedNoMemoryOfTheirOwn) {
  InstructionLists lists = instructions_of(dropping_network(), batch_of(2));
  share_places(lists);
  const int image = tensors_of(lists, Pass::kForwardTraining, "convolution_forward")[3];
  EXPECT_EQ(tensors_of(lists, Pass::kForwardTraining, "dropout_forward"),
            (std::vector{image, image}));
  for (const Pass pass : {Pass::kBackwardParameters, Pass::kBackwardInput}) {
    const int gradient = tensors_of(lists, pass, "convolution_backward_input")[2];
    EXPECT_NE(gradient, image);
    EXPECT_EQ(tensors_of(lists, pass, "dropout_backward"), (std::vector{gradient, gradient}));
    EXPECT_EQ(tensors_of(lists, pass, "activation_backward"),
              (std::vector{image, gradient, gradient}));
  }
}

TEST(SharedPlaces, WhatOthersReadIsKept) {
  NetworkDescription network = dropping_network();
  const auto shares = [&] {
    InstructionLists lists = instructions_of(network, batch_of(2));
    share_places(lists);
    const auto operands = tensors_of(lists, Pass::kForwardTraining, "dropout_forward");
    const int slope = tensors_of(lists, Pass::kBackwardParameters, "activation_backward")[0];
    EXPECT_EQ(slope, operands[0]) << "what is dropped for one reader is not for the other";
    return operands[0] == operands[1];
  };
  ASSERT_TRUE(shares());
  network.outputs = {"last", "leaky"};
  EXPECT_FALSE(shares());
  network = dropping_network();
  network.layers.push_back(layer("beside", Dense{1}, "leaky"));
  network.outputs = {"last", "beside"};
  EXPECT_FALSE(shares());
  // The slope of others is told by their value, of which dropout keeps no trace.
  network = dropping_network();
  network.layers[1] = layer("leaky", Activation{ActivationKind::kTanh});
  EXPECT_FALSE(shares());
}

TEST(MemoryPlan, OverlapOfTwoTensorsIsNoticedByTheCheckOfTheseTests) {
  const InstructionLists lists = instructions_of(small_discriminator(), batch_of(2));
  MemoryPlan plan = plan_memory(tensor_lives(lists, DataType::kFloat32));
  ASSERT_FALSE(play_all(lists, DataType::kFloat32, plan));
  plan.offsets[static_cast<std::size_t>(lists.outputs[0])] =
      plan.offsets[static_cast<std::size_t>(lists.input)];
  EXPECT_TRUE(play_all(lists, DataType::kFloat32, plan));
}

TEST(MemoryPlan, ReferenceModelsShareMostOfTheirMemory) {
  for (const NetworkDescription& network : {gan3d_25_generator(), gan3d_25_discriminator(),
                                            gan3d_51_generator(), gan3d_51_discriminator()}) {
    const InstructionLists lists = instructions_of(network, batch_of(4));
    const std::vector<TensorLife> lives = tensor_lives(lists, DataType::kFloat32);
    const MemoryPlan plan = plan_memory(lives);
    const auto problem = play_all(lists, DataType::kFloat32, plan);
    EXPECT_FALSE(problem) << *problem;
    EXPECT_LT(plan.bytes, bytes_without_sharing(lives) / 2);
    EXPECT_LT(plan.bytes, least_bytes(lives) * 11 / 10);
  }
}

TEST(MemoryPlan, TensorsSideBySideInTimeGetTheSamePlaceAndTogetherInTimeDoNot) {
  const std::vector<TensorLife> lives{{100, {{0, 1}}}, {200, {{2, 3}}}, {64, {{1, 2}}}, {500, {}}};
  const MemoryPlan plan = plan_memory(lives);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_NE(plan.offsets[2], plan.offsets[0]);
  EXPECT_EQ(plan.bytes, 256u + 64u);
  EXPECT_EQ(least_bytes(lives), 256u + 64u);
  EXPECT_EQ(bytes_without_sharing(lives), 128u + 256u + 64u);
}

TEST(MemoryPlan, EveryIntervalOfATensorCounts) {
  const std::vector<TensorLife> lives{{64, {{0, 1}, {8, 9}}}, {64, {{4, 5}}}, {64, {{9, 9}}}};
  const MemoryPlan plan = plan_memory(lives);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_NE(plan.offsets[0], plan.offsets[2]);
}

}  // namespace
}  // namespace troupe::model
